"""The dialects in which models write calls. Read `json_calls` first, then `stream.readers.text.table`.

`json_calls`, `xml_calls`, `pythonic`, `headed` and `harmony` read the bodies of calls; `reasoning` reads blocks of
reasoning, `blocks` code fences and what is dropped. `pythonic` also uses `json_calls`, `harmony` uses `pythonic` and
`reasoning`.
"""
