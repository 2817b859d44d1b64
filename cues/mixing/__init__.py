"""Cues into live speech: mixer, pool, pacer, and the planning between them and the compiled loops."""
