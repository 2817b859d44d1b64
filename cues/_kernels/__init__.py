"""The compiled loops of meters and mixer; numba and llvmlite appear nowhere else.

Read `layout` (what lies where in a session's memory), `loops` (one sample after the other), `mixing` (a frame) and
`entries` (how Python calls it); `metering` has the meters' loops. `building` compiles all to one object file by what
`tools` has of numba; `object_file` keeps it, and loads it by `machine_code`, without numba. All of it is private.
"""
