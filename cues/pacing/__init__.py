"""Speech released in real time: the pacer and its jitter-buffer depth. Read `pacer` first."""
