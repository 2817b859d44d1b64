"""The dialects in which models write calls. Read `json_calls` first, then `stream.readers.text.dialect_table`.

`json_calls`, `xml_calls`, `pythonic`, `headed`, `tokens` and `harmony` read the bodies of calls; `reasoning` reads
blocks of reasoning, `blocks` code fences and markers that are dropped. Each has its rows of the table, `ROWS`.
"""
