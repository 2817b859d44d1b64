"""Cues into live speech, sample for sample.

Read `mixer` (what a pipeline calls), `scheduler` (commands and time become state), `state` (that state, one row of
memory), then what the scheduler plans with: `voice`, `waiting`, `slots`, `speech_gain`, `level`, `limiter`. `backends`
mix a row; `frames` checks and converts what a caller hands in; `pool` is many sessions, `offline` a file.
"""
