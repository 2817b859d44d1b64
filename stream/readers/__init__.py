"""From what a model server sends to events: no I/O, no clock, one object a stream.

Three floors, each of which knows those before it: `text` finds calls and reasoning in a model's text, `calls` keeps the
order of all calls, `formats` has a file for each wire format. Follow one token from the top; each step hands on to the
next:

1. `formats/any_format` (`AnyReader`) finds the format and its reader. `formats/framing` cuts bytes into messages.
2. `formats/chat_completions`, `ollama`, `responses`, `realtime`, `anthropic`, `gemini` know where in a message
   text, reasoning and calls stand; `raw_text` reads bare text. `message_reader` handles what they find, and the end of
   a stream; `block_reader` adds what formats with typed events share. `failures` unwraps the errors and
   `finish_reasons` knows the reasons of every format.
3. `text/machine`: text without a marker is an event at once, and nearly all text ends here. Each marker goes to the
   dialect that owns it, by `text/dialect_table`.
4. `text/dialects/…`: the readers of bodies, written as if all the text were there. Begin with `json_calls`; the others
   are variations. They use the `Parser` (`text/parser`); `text/__init__` has the order of what is below it.
5. Calls that came as fields: `calls/fragments` puts together fragments that have an index, `calls/item_calls` those
   that have an item or block of their own.
6. `calls/order`: all calls and all text in the order of the stream, without what a server sends twice; `arguments`
   checks and compares arguments. `CallOrder.take` is what `feed` returns.

`options` are the caller's. To add a dialect or a format, see CONTRIBUTING.
"""
