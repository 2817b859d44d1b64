"""The child process that runs espeak-ng: JSON strings in, one per line; audio packets out.

A packet is a JSON line `{"sample_rate", "n_bytes", "words", "last"}` and `n_bytes` of little-endian int16. The first
packet says that the engine is ready.
"""

from __future__ import annotations

import bisect
import ctypes
import itertools
import json
import re
import sys
from typing import Any
from xml.sax.saxutils import escape

# Names and numbers as in espeak-ng's speak_lib.h.
AUDIO_OUTPUT_SYNCHRONOUS = 2
POS_CHARACTER = 1
CHARS_UTF8 = 1
SSML = 0x10
EVENT_LIST_TERMINATED = 0
EVENT_WORD = 1
RATE_PARAMETER = 1
BUFFER_MS = 60

# An English voice reads "Chinese letter" for these scripts; a voice of their language reads the text.
FOREIGN_SCRIPTS = (
    (re.compile("[㐀-鿿豈-﫿]+"), "cmn"),
    (re.compile("[぀-ヿ]+"), "ja"),
    (re.compile("[가-힯]+"), "ko"),
    (re.compile("[Ѐ-ӿ]+"), "ru"),
    (re.compile("[Ͱ-Ͽ]+"), "el"),
)


class Event(ctypes.Structure):
    """`espeak_EVENT`."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position_ms", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    ]


Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(Event))


def main(voice: str, words_per_minute: str) -> None:
    """Speak the phrases of standard input until it ends."""
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    data_folder = espeakng_loader.get_data_path().encode()
    sample_rate = library.espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, BUFFER_MS, data_folder, 0)
    if sample_rate <= 0:
        sys.exit("espeak-ng could not be initialized")
    if library.espeak_SetVoiceByName(voice.encode()) != 0:
        sys.exit(f"espeak-ng has no voice {voice!r}")
    library.espeak_SetParameter(RATE_PARAMETER, int(words_per_minute), 0)
    engine = Engine(library, sample_rate)
    engine.send(b"", [], last=True)
    for line in sys.stdin.buffer:
        engine.speak(json.loads(line))


class Engine:
    """One espeak-ng engine that writes its speech to standard output."""

    def __init__(self, library: ctypes.CDLL, sample_rate: int) -> None:
        self._library = library
        self._sample_rate = sample_rate
        self._callback = Callback(self._on_audio)
        self._words: list[str] = []
        self._starts: list[int] = []
        self._n_words_started = 0
        self._n_sent = 0
        library.espeak_SetSynthCallback(self._callback)

    def speak(self, phrase: str) -> None:
        """Speak one phrase; its last packet holds no audio."""
        self._words = phrase.split()
        marked = [ssml(word) for word in self._words]
        head = "<speak>"
        ends = itertools.accumulate((len(word) + 1 for word in marked), initial=len(head))
        self._starts = list(ends)[:-1]
        self._n_words_started = self._n_sent = 0
        text = f"{head}{' '.join(marked)}</speak>".encode() + b"\0"
        self._library.espeak_Synth(text, len(text), 0, POS_CHARACTER, 0, CHARS_UTF8 | SSML, None, None)
        self._library.espeak_Synchronize()
        self.send(b"", [], last=True)

    def send(self, data: bytes, words: list[tuple[str, int]], *, last: bool) -> None:
        """Write one packet."""
        header = {"sample_rate": self._sample_rate, "n_bytes": len(data), "words": words, "last": last}
        sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + data)
        sys.stdout.buffer.flush()

    def _on_audio(self, samples: Any, n_samples: int, events: Any) -> int:
        words = []
        for place in itertools.count():
            if events[place].type == EVENT_LIST_TERMINATED:
                break
            if events[place].type == EVENT_WORD:
                words += self._started(events[place])
        if n_samples > 0:
            self._n_sent += n_samples
            self.send(ctypes.string_at(samples, 2 * n_samples), words, last=False)
        return 0

    def _started(self, event: Event) -> list[tuple[str, int]]:
        """The word that starts at an event; none inside a word ("21" is "twenty one")."""
        ordinal = bisect.bisect_right(self._starts, event.text_position - 1) - 1
        if ordinal < self._n_words_started:
            return []
        self._n_words_started = ordinal + 1
        return [(self._words[ordinal], max(event.sample - self._n_sent, 0))]


def ssml(word: str) -> str:
    """A word as SSML; runs of other scripts get a voice that can read them.

    Examples
    --------
    >>> ssml("A&東京")
    'A&amp;<voice xml:lang="cmn">東京</voice>'
    """
    marked = escape(word)
    for script, language in FOREIGN_SCRIPTS:
        marked = script.sub(rf'<voice xml:lang="{language}">\g<0></voice>', marked)
    return marked


if __name__ == "__main__":
    main(*sys.argv[1:3])
