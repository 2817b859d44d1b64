"""A model's text: where calls and reasoning stand in it, and what they say.

From the ground up: `scanner` finds the end of a JSON value, `patterns` makes search patterns. `dialect` is a row of the
table, with what its readers hand up and down. `parser` reads text that comes in pieces as if all of it were there;
`literals` reads Python's literals. `dialects` read the bodies of calls, `dialect_table` says which marker
opens which body, and `machine` dispatches the markers.
"""
