"""The child process that runs espeak-ng: JSON strings in, one per line; audio packets out.

A packet is a JSON line `{"sample_rate", "n_bytes", "words", "last"}` and `n_bytes` of little-endian int16. The first
packet says that the engine is ready.
"""

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
WORDS_PER_MINUTE = 165

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


def main(voice: str) -> None:
    """Speak the phrases of standard input until it ends."""
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    data_folder = espeakng_loader.get_data_path().encode()
    sample_rate = library.espeak_Initialize(AUDIO_OUTPUT_SYNCHRONOUS, BUFFER_MS, data_folder, 0)
    if sample_rate <= 0:
        sys.exit("espeak-ng could not be initialized")
    if library.espeak_SetVoiceByName(voice.encode()) != 0:
        sys.exit(f"espeak-ng has no voice {voice!r}; it names them like en-us, de or fr")
    library.espeak_SetParameter(RATE_PARAMETER, WORDS_PER_MINUTE, 0)
    engine = Engine(library, sample_rate)
    engine.send(b"", [], last=True)
    for line in sys.stdin.buffer:
        engine.speak(json.loads(line))


class Engine:
    """One espeak-ng engine that writes its speech to standard output.

    espeak-ng reports no time for some words ("the" of "in the"). Such a word gets a time between its neighbors', so
    audio is held back until the next time is known.
    """

    def __init__(self, library: ctypes.CDLL, sample_rate: int) -> None:
        self._library = library
        self._sample_rate = sample_rate
        self._callback = Callback(self._on_audio)
        self._words: list[str] = []
        self._places: list[int] = []  # of the words in the text, characters
        self._times: list[int] = []  # of the words that are placed, samples of the phrase
        self._held: list[bytes] = []
        self._n_words_sent = self._n_sent = 0
        library.espeak_SetSynthCallback(self._callback)

    def speak(self, phrase: str) -> None:
        """Speak one phrase; its last packet holds no audio."""
        self._words = phrase.split()
        marked = [ssml(word) for word in self._words]
        head = "<speak>"
        ends = itertools.accumulate((len(word) + 1 for word in marked), initial=len(head))
        self._places = list(ends)[:-1]
        self._times = []
        self._n_words_sent = self._n_sent = 0
        text = f"{head}{' '.join(marked)}</speak>".encode() + b"\0"
        self._library.espeak_Synth(text, len(text), 0, POS_CHARACTER, 0, CHARS_UTF8 | SSML, None, None)
        self._library.espeak_Synchronize()
        self._place(len(self._words), self._n_sent + sum(map(len, self._held)) // 2)
        self._send_held()
        self.send(b"", [(word, 0) for word in self._words[self._n_words_sent :]], last=True)

    def send(self, data: bytes, words: list[tuple[str, int]], *, last: bool) -> None:
        """Write one packet."""
        header = {"sample_rate": self._sample_rate, "n_bytes": len(data), "words": words, "last": last}
        sys.stdout.buffer.write(json.dumps(header).encode() + b"\n" + data)
        sys.stdout.buffer.flush()

    def _on_audio(self, samples: Any, n_samples: int, events: Any) -> int:
        for place in itertools.count():
            if events[place].type == EVENT_LIST_TERMINATED:
                break
            if events[place].type == EVENT_WORD:
                ordinal = bisect.bisect_right(self._places, events[place].text_position - 1) - 1
                if ordinal >= len(self._times):  # otherwise inside a word: "21" is "twenty one"
                    self._place(ordinal, events[place].sample)
                    self._send_held()
        if n_samples > 0:
            self._held.append(ctypes.string_at(samples, 2 * n_samples))
        return 0

    def _place(self, ordinal: int, start: int) -> None:
        """Give the word `ordinal` its time, and those before it without one a time by their letters."""
        known = max(len(self._times) - 1, 0)
        since = self._times[-1] if self._times else 0
        ends = list(itertools.accumulate(map(len, self._words[known:ordinal]), initial=0))
        between = [since + (start - since) * end // ends[-1] for end in ends[:-1]]
        self._times[known:] = [*between, start]

    def _send_held(self) -> None:
        for data in self._held:
            end = self._n_sent + len(data) // 2
            n_before = self._n_words_sent
            self._n_words_sent = max(n_before, bisect.bisect_left(self._times, end))
            placed = zip(self._words[n_before:], self._times[n_before : self._n_words_sent], strict=False)
            self.send(data, [(word, max(time - self._n_sent, 0)) for word, time in placed], last=False)
            self._n_sent = end
        self._held.clear()


def ssml(word: str) -> str:
    """A word as SSML; runs of other scripts get a voice that can read them.

    >>> ssml("A&東京")
    'A&amp;<voice xml:lang="cmn">東京</voice>'
    """
    marked = escape(word)
    for script, language in FOREIGN_SCRIPTS:
        marked = script.sub(rf'<voice xml:lang="{language}">\g<0></voice>', marked)
    return marked


if __name__ == "__main__":
    main(sys.argv[1])
