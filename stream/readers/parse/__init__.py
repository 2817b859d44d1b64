"""The parser that the readers of bodies are written with, from the ground up.

`scanner` finds the end of a JSON value, `patterns` makes search patterns. `dialect` is a row of the table, with what
its readers hand up and down. `parser` is the parser; `values` reads JSON with it, and Python's literals.
"""
