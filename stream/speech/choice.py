"""Chooses a speaker by name, or the best one available."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stream.errors import SpeakerError, StreamValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream.speech.speaker import Speaker

__all__ = ["SPEAKERS", "choose_speaker"]

SPEAKERS = ("auto", "openai", "espeak", "voice-like")


async def choose_speaker(
    name: str = "auto", *, language: str | None = None, environment: Mapping[str, str] = os.environ
) -> Speaker:
    """A started speaker.

    Parameters
    ----------
    name : str
        One of `SPEAKERS`. `"auto"` takes the speech server of `CUES_SPEECH_URL`, else espeak-ng if it is installed and
        runs, else the voice-like generator.
    language : str or None
        Name of espeak-ng's voice, such as `"de"`; the default is American English. Other speakers ignore it.
    environment : Mapping[str, str]
        `CUES_SPEECH_URL`, `CUES_SPEECH_MODEL` and `CUES_SPEECH_VOICE` describe the speech server.

    Raises
    ------
    StreamValueError, SpeakerError
        If `name` is unknown, or the chosen speaker cannot be started.
    """
    if name not in SPEAKERS:
        raise StreamValueError(f"speaker is {name!r}; it must be one of {', '.join(SPEAKERS)}")
    url = environment.get("CUES_SPEECH_URL")
    if name == "openai" or (name == "auto" and url):
        return await _started(_openai(url, environment))
    if name == "espeak":
        return await _started(_espeak(language))
    if name == "auto":
        try:
            return await _started(_espeak(language))
        except SpeakerError:
            if language is not None:
                raise
            # The next choice has no dependencies.
    from stream.speech.voice_like import VoiceLikeSpeaker

    return VoiceLikeSpeaker()


def _espeak(language: str | None) -> Speaker:
    from stream.speech.espeak import EspeakSpeaker

    return EspeakSpeaker(language or "en-us")


def _openai(url: str | None, environment: Mapping[str, str]) -> Speaker:
    from stream.speech.openai_speech import OpenAISpeaker

    return OpenAISpeaker(
        url,
        model=environment.get("CUES_SPEECH_MODEL", "gpt-4o-mini-tts"),
        voice=environment.get("CUES_SPEECH_VOICE", "alloy"),
        api_key=environment.get("OPENAI_API_KEY") or ("none" if url else None),
    )


async def _started(speaker: Speaker) -> Speaker:
    await speaker.start()
    return speaker
