"""Speech at the pace of real time: the pacer, its jitter-buffer depth, and concealment of underruns.

Read `pacer` first; it asks the other two.
"""
