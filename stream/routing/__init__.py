"""From events to cues: which one sounds, when, and what it waits for."""
