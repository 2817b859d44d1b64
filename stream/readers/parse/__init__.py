"""The parser that the readers of bodies are written with, from the ground up.

`scanner` finds the end of a JSON value, `literals` reads Python's, `markers` and `shapes` make search patterns; `line`
and `draft` are the parser's state, `outcomes` its exceptions. `dialect` is a row of the table, `interfaces` are the
layers above. `parser` is the parser; `json_values` reads JSON with it.
"""
