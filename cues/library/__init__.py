"""Cues by name: audio files and packs in, a bank out, with a cache between; lint and export beside it.

Read `pack` and `audiofile` (what a user hands in), `shaping` and `normalize` (what is done to it), `bank` and
`cache`; then `lint` and `export`.
"""
