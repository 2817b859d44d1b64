"""Cues by name: packs, files, cache and export."""
