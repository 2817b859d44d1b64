"""A speaker without dependencies: a deterministic voice-like signal."""

import asyncio
from collections.abc import AsyncIterator

from stream.speech.speaker import SAMPLE_RATE, PhraseSpeaker, Speech, Word

__all__ = ["VoiceLikeSpeaker"]


class VoiceLikeSpeaker(PhraseSpeaker):
    """Speaks syllables, melody and pauses of the text, without words; the same on every machine."""

    name = "voice-like generator"

    async def speak(self, phrase: str) -> AsyncIterator[Speech]:
        """The signal for one phrase, word by word; the loop runs between them, since a syllable takes about 1 ms."""
        from cues.synthesis.voicelike import words_voice_like

        for word, samples in words_voice_like(phrase, sample_rate=SAMPLE_RATE):
            yield Speech(samples, (Word(word, 0),))
            await asyncio.sleep(0)
