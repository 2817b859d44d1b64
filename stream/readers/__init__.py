"""From what a model server sends to events: no I/O, no clock, one object a stream.

Follow one token, file by file; each hands on to the next:

1. `ollama_reader` (bytes become lines in `ndjson`), `openai_reader`, `text_reader`: what a caller feeds. The first two
   say where in a message text, reasoning and calls stand; `message_reader` says what becomes of them, and how a stream
   ends.
2. `passing` (`Speech.passes`): text without a marker is an event at once. Nearly all of it ends here.
3. `text_machine`: where there is a marker, it asks the row of `dialects` that knows it. `dialects/__init__` is the
   table (`Dialect`, `Table`); `markers` makes its search pattern, `shapes` say what must follow a marker.
4. `dialects/…`: the readers of bodies, written as if all the text were there, over the primitives of `tape`, which wait
   where it is not. `json_scanner` finds the end of a JSON value, `literals` reads Python's, `draft` makes the calls,
   `malformed` skips what cannot be read. Begin with `json_calls`; the others are variations.
5. `tool_calls`: calls that came as fields, put together from fragments.
6. `turn`: both kinds of calls, and text, in the order of the stream; `rounds` drops what a server sends twice,
   `arguments` checks and compares arguments. `Turn.take` is what `feed` returns.

`options` are the caller's. To add a dialect, see CONTRIBUTING.
"""
