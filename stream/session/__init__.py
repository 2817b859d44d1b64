"""The live session: a model's answer in, speech with cues out, in real time. Read `voice_session` first."""

from stream.session.history import ChatHistory
from stream.session.spoken_phrases import phrases
from stream.session.voice_session import Sink, VoiceSession

__all__ = ["ChatHistory", "Sink", "VoiceSession", "phrases"]
