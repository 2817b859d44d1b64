"""Cues that a session's own voice speaks, once, before the session begins."""

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np

from cues.arrays import Samples
from cues.cue import Cue
from cues.library.phrases import SPEECH_LU, phrase, spoken_cue
from cues.synthesis.catalog import usually_loops
from stream.checks import are_texts
from stream.errors import SpeakerError, StreamTypeError, StreamValueError
from stream.speech.speaker import SAMPLE_RATE, Speaker

__all__ = ["STOCK", "phrases", "spoken"]

STOCK: Mapping[str, Mapping[str, Sequence[str]]] = {
    "en": {"working": ("One moment.", "Still looking.")},
    "de": {"working": ("Einen Moment.", "Ich suche noch.")},
    "es": {"working": ("Un momento.", "Sigo buscando.")},
    "fr": {"working": ("Un instant.", "Je cherche encore.")},
}
"""Phrases by language and cue."""


async def phrases(
    speaker: Speaker,
    texts: Mapping[str, Sequence[str] | None] | None = None,
    *,
    language: str = "en",
    speech_lufs: float = -20.0,
    limit_s: float = 20.0,
) -> dict[str, Cue]:
    """Cues whose sound is speech, by name: `bank | await phrases(speaker, …)` is the bank of a session.

    A list's phrases sound in turn, never while words are heard: the answer's first word ends one within 5 ms. They are
    not in the chat history.

    Parameters
    ----------
    speaker : Speaker
        Started, and not speaking.
    texts : mapping of str to sequence of str, optional
        Each cue's phrases. `None` for a cue takes the stock phrases of `language`; without `texts`, all of these.
    language : str
        One of `STOCK`, for stock phrases: `"en"`, `"de"`, `"es"`, `"fr"`, also as `"en-us"`.
    speech_lufs : float
        Loudness of the session's speech, as of its bank, LUFS.
    limit_s : float
        Longest time for one phrase, seconds.

    Raises
    ------
    StreamTypeError, StreamValueError
        If `texts` is not as above, or there are no stock phrases for a cue.
    SpeakerError
        If the speaker fails, says nothing, or takes longer than `limit_s`.
    """
    cues = {}
    for name, listed in wanted(texts, language).items():
        takes = [await spoken(speaker, text, limit_s=limit_s) for text in listed]
        made = [phrase(name, take, SAMPLE_RATE, target_lufs=speech_lufs + SPEECH_LU) for take in takes]
        cues[name] = spoken_cue(name, made, loop=usually_loops(name))
    return cues


def wanted(texts: Mapping[str, Sequence[str] | None] | None, language: str) -> dict[str, Sequence[str]]:
    """The phrases of each cue; stock ones if none are given."""
    stock = STOCK.get(language.lower().partition("-")[0], {})
    found = {
        name: stock.get(name) if listed is None else listed for name, listed in (texts or stock or {"": None}).items()
    }
    for name, listed in found.items():
        if listed is None:
            known = f"there are some for {', '.join(STOCK)}, each for {', '.join(STOCK['en'])}"
            raise StreamValueError(f"no stock phrases in {language!r} for {name or 'any cue'}; {known}")
        if isinstance(listed, str) or not are_texts(listed) or not all(map(str.strip, listed)) or not listed:
            raise StreamTypeError(f"texts[{name!r}] is {listed!r}; it must be a list of phrases")
    return {name: listed for name, listed in found.items() if listed}


async def spoken(speaker: Speaker, text: str, *, limit_s: float) -> Samples:
    """The speech of one text: float32, shape `(n_samples,)`, 24 kHz."""
    pieces: list[Samples] = []
    is_whole = False
    try:
        async with asyncio.timeout(limit_s):
            for word in text.split():
                await speaker.send(f" {word}")
            await speaker.finish()
            pieces += [speech.samples async for speech in speaker]
        is_whole = True
    except TimeoutError:
        raise SpeakerError(f"{speaker.name} has not spoken {text!r} within {limit_s:g} s") from None
    finally:
        if not is_whole and hasattr(speaker, "cancel"):
            await speaker.cancel()  # or its next answer would begin with the rest of this text
    samples = np.concatenate([np.zeros(1, dtype=np.float32), *pieces])
    if not samples.any():
        raise SpeakerError(f"{speaker.name} has said nothing for {text!r}")
    return samples
