"""The compiled loops of meters and mixer; numba and llvmlite appear nowhere else.

Read `layout` (what lies where in a session's memory), `loops` (one sample after the other), `mixing` (a frame) and
`entries` (how Python calls it). `building` compiles those to an object file, `object_file` keeps it, and `machine_code`
loads it, without numba. `compiling` and `memory` are their tools; the meters' loops are in `metering` and `clicks`.
"""
