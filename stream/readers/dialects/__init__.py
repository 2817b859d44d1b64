"""The dialects in which models write calls. Read `json_calls` first, then `rows`.

`json_calls`, `xml_calls`, `pythonic`, `headed` and `harmony` read the bodies of calls; `reasoning` reads blocks of
reasoning, `blocks` code fences and what is dropped. They build on `parse` alone, `pythonic` also on `json_calls`,
`harmony` on `pythonic` and `reasoning`. `rows` is the table: which marker opens which body.
"""
