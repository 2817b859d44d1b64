"""Speakers, which turn text into audio, and the choice of one. Read `speaker` first: their protocol."""

import os
from collections.abc import Mapping

from stream.checks import check_choice, header_value
from stream.errors import SpeakerError
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
        `CUES_SPEECH_URL`, `CUES_SPEECH_MODEL` and `CUES_SPEECH_VOICE` describe the speech server, and
        `CUES_SPEECH_API_KEY` is its key; `OPENAI_API_KEY` goes to OpenAI alone.

    Raises
    ------
    StreamValueError, SpeakerError
        If `name` is unknown, no HTTP header can hold the key, or the chosen speaker cannot be started.
    """
    check_choice("speaker", name, SPEAKERS)
    from stream.speech.espeak import EspeakSpeaker
    from stream.speech.openai_speech import OpenAISpeaker
    from stream.speech.voice_like import VoiceLikeSpeaker

    url = environment.get("CUES_SPEECH_URL")
    speaker: Speaker
    if name == "openai" or (name == "auto" and url):
        speaker = OpenAISpeaker(
            url,
            model=environment.get("CUES_SPEECH_MODEL", "gpt-4o-mini-tts"),
            voice=environment.get("CUES_SPEECH_VOICE", "alloy"),
            api_key=header_value("CUES_SPEECH_API_KEY", environment.get("CUES_SPEECH_API_KEY", "")),
        )
    else:
        speaker = VoiceLikeSpeaker() if name == "voice-like" else EspeakSpeaker(language or "en-us")
    try:
        await speaker.start()
    except SpeakerError:
        if name != "auto" or url or language is not None:
            raise
        return VoiceLikeSpeaker()  # it has no dependencies
    return speaker
