"""A speaker without dependencies: a deterministic voice-like signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream.speech.speaker import SAMPLE_RATE, PhraseSpeaker, Speech, Word

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["VoiceLikeSpeaker"]


class VoiceLikeSpeaker(PhraseSpeaker):
    """Speaks syllables, melody and pauses of the text, without words; the same on every machine."""

    name = "voice-like generator"

    async def speak(self, phrase: str) -> AsyncIterator[Speech]:
        """The signal for one phrase, in one piece."""
        from cues.synthesis.voicelike import speak_voice_like

        samples, words = speak_voice_like(phrase, sample_rate=SAMPLE_RATE)
        yield Speech(samples, tuple(Word(word.text, word.start_samples) for word in words))
