"""Speakers, which turn text into audio. Read `speaker` first: the protocol that all of them share."""
