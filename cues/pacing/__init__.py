"""Frames on time: the pacer and what sounds when speech is late."""
