"""Measurements: loudness, true peak, clicks, pitch, similarity, roughness, telephone band.

Read `kweighting` (the filter), `levels` (energies to LUFS), `loudness` (whole sounds) and `meter` (its streaming twin);
the others are independent. A package `cues.measure` would replace the function of that name.
"""
