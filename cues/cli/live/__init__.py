"""Turns of `cues demo` and `cues speak`, with live output to the loudspeakers."""
