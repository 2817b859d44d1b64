"""The compiled loops of meters and mixer; numba and llvmlite appear nowhere else.

Read `layout` (what lies where in a session's memory), `loops` (one sample after the other), `mixing` (a frame) and
`entries` (how Python calls it); `metering` has the meters' loops. `building` compiles all to one object file,
`object_file` keeps it, and `loading` and `machine_code` load it, without numba. `compiling` and `memory` are tools.
"""
