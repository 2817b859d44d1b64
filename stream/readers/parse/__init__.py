"""The parser that bodies of calls are written with."""
