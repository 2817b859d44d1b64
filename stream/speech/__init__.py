"""Speakers, which turn text into audio. Read `speaker` first: the protocol that all of them share."""

from stream.speech.choice import SPEAKERS, choose_speaker

__all__ = ["SPEAKERS", "choose_speaker"]
