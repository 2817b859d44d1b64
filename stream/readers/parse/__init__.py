"""The parser that the readers of bodies are written with, from the ground up.

`scanner` finds the end of a JSON value, `literals` reads Python's, `patterns` makes search patterns; `state` is what
the parser remembers. `dialect` is a row of the table, with the outcomes of its readers and the layers above. `parser`
is the parser; `json_values` reads JSON with it.
"""
