"""From what a model server sends to events: no I/O, no clock, one object a stream.

Follow one token; each file hands on to the next:

1. `formats` (`AnyReader`) finds the format and its reader. `framing` cuts bytes into messages.
2. One file a format: `openai_reader`, `ollama_reader`, `responses_reader`, `realtime_reader`, `anthropic_reader`,
   `gemini_reader`, `live_reader`; `text_reader` for bare text. They know where in a message text, reasoning and calls
   stand. `message_reader` handles them, and the end of a stream; `block_reader` adds what formats with typed events
   share.
3. `fast_path` (`FastPath.delta`): text without a marker is an event at once. Nearly all text ends here.
4. `machine`: dispatches at a marker to the row of `dialects/rows` that has it. `malformed` skips what cannot be read.
5. `dialects/…`: the readers of bodies, written as if all the text were there. Begin with `json_calls`; the others are
   variations.
6. `parse/…`: the `Parser` that they get, and the scanners below it. `parse/__init__` has the order.
7. Calls that came as fields: `tool_calls` puts fragments with an index together, `item_calls` those that have an item
   or block of their own.
8. `turn`: all kinds of calls, and text, in the order of the stream; `rounds` drops what a server sends twice,
   `arguments` checks and compares arguments, and puts Gemini's together. `Turn.take` is what `feed` returns.

`options` are the caller's. `failures` unwraps errors and `finish_reasons` knows reasons, of every format; `values`
reads what may have any type, and decodes voices. To add a dialect or a format, see CONTRIBUTING.
"""
