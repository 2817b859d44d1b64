"""From events to cues: which cue sounds, and when. Read `router`, then `rules` and `player`."""
