"""Speech released in real time: the pacer, its jitter-buffer depth and its underrun concealment. Read `pacer` first."""
