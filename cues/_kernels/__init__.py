"""The numba loops of meters and mixer; numba appears nowhere else.

Read `layout` (what lies where in a session's memory), `loops` (one sample after the other), `mixing` (a frame) and
`entries` (how Python calls it); `compiling` and `memory` are their tools.
"""
