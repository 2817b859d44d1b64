"""Measurements: loudness, true peak, clicks, pitch, similarity, and what a telephone leaves of a sound.

Read `kweighting` (the filter), `levels` (from energies to LUFS), `loudness` (whole sounds) and `meter` (its streaming
twin); the others stand alone. `cues.measure` is a function, so this room has another name.
"""
