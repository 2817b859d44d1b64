"""`cues live`: the assistant in a browser.

`conversation` is the loop of one page, `app` HTTP and the WebSocket; `worklet.js` plays the frames of `worker.js`.
"""
