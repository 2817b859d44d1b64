"""From events to cues: which cue sounds, and when.

`router` gets the events. `call_cues` chooses the cues of calls by the `rules`, and `player` plays them on the mixer.
After each event `waiting_sound` follows the phase of the turn (`turn_state`).
"""
