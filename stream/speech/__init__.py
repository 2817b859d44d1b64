"""Speakers, which turn text into audio. Read `speaker` first: their protocol."""

from stream.speech.choice import SPEAKERS, choose_speaker

__all__ = ["SPEAKERS", "choose_speaker"]
