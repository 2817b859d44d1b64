"""The bank of cues: audio files and packs, the cache of finished cues, lint and export.

Read `pack` and `audiofile` (input), `shaping` (processing), `bank` and `cache`, `lint` and `export`.
"""
