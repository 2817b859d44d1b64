"""Sample-accurate mixing of cues into live speech.

Read `mixer` (the public class), `scheduler` (applies commands) and `state` (the row that the kernels read), then the
scheduler's parts: `voice`, `waiting`, `slots`, `speech_gain`, `level`, `limiter`. `backends` mix a row; `frames` checks
and converts input; `pool` mixes many sessions, `offline` a recording.
"""
