"""Synthesis of cues. Read `spec` (a cue as data), `catalog` (built-in cues) and `render`, then `motifs`."""
