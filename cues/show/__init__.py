"""Preview of cues: audition, pictures, the sound board, notebooks.

Read `audition` (sound), `plots` (matplotlib) and `board` (the HTML page); the other files serve these.
"""
