"""`cues live`: the assistant in a browser.

Read `conversation` (the loop of one page: a question, a model's stream, a session, frames), then `line` (frames and
events for the page), `app` (HTTP and the WebSocket) and `server`. The page is in `web`: `worklet.js` plays the frames,
`worker.js` receives them, `live.js` and `timeline.js` show what happens.
"""
