"""Cues to hear and to see: audition, pictures, the sound board, notebooks.

Read `audition` (what is played), `plots` (matplotlib) and `board` (the HTML page); the rest is theirs.
"""
