"""Speakers: what turns text into audio. All stand behind one small protocol, so that any of them can be taken."""
