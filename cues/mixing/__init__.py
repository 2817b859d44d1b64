"""Sample-accurate mixing of cues into live speech.

Read `mixer` (the public class), `scheduler` (applies commands) and `state` (the row that the kernels read), then the
scheduler's parts: `voice`, `waiting`, `slots`, `speech_gain`, `level`, `limiter`. `backends` mix a row; `frames` checks
and converts input; `pool` mixes many sessions, `offline` a recording.

After `warm_up`, most frames run no Python: each mixer's `mix` is then a compiled method (`backends.compiled`). A frame
in which the plan changes goes through `Mixer._mix`: `frames` lets the scheduler plan, cuts the frame at the next
change, and has each part mixed by `backends.selection`.
"""
