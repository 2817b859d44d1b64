"""From what a model server sends to events: no I/O, no clock, one object a stream.

Follow one token; each file hands on to the next:

1. `ollama_reader` (`framing` cuts bytes into messages), `openai_reader`, `text_reader`: what a caller feeds. The first
   two know where in a message text, reasoning and calls stand; `message_reader` handles them, and the end of a stream.
2. `fast_path` (`FastPath.delta`): text without a marker is an event at once. Nearly all text ends here.
3. `machine`: dispatches at a marker to the row of `dialects/rows` that has it. `malformed` skips what cannot be read.
4. `dialects/…`: the readers of bodies, written as if all the text were there. Begin with `json_calls`; the others are
   variations.
5. `parse/…`: the `Parser` that they get, and the scanners below it. `parse/__init__` has the order.
6. `tool_calls`: calls that came as fields, put together from fragments.
7. `turn`: both kinds of calls, and text, in the order of the stream; `rounds` drops what a server sends twice,
   `arguments` checks and compares arguments. `Turn.take` is what `feed` returns.

`options` are the caller's. To add a dialect, see CONTRIBUTING.
"""
