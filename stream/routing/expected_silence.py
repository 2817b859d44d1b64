"""The silence that a listener is about to hear, as a quantity; all times are passed in, seconds on any one clock."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from stream.routing.tool_times import KEPT, Took, left_s, took

__all__ = ["Expected", "ExpectedSilence"]

_FIRST_MODEL_S, _FIRST_VOICE_S = 0.7, 0.3  # Usual times to a first token and a first sample, until they are learned.
_CHARS_PER_S = 15.0  # A voice of 150 words a minute, six characters each.


class Expected(NamedTuple):
    """The silence to come, seconds, `None` if a tool's time is not known; and the speech to be heard before it."""

    silence_s: float | None
    speech_s: float


class _Part:
    """The model or the voice: how long it took before, and since when it is awaited."""

    def __init__(self, first_s: float) -> None:
        self._first, self._took_s = Took(first_s, first_s), deque[float](maxlen=KEPT)
        self.since_s: float | None = None

    @property
    def usual(self) -> Took:
        return took(self._took_s) or self._first

    def came(self, now_s: float) -> None:
        if self.since_s is not None:
            self._took_s.append(max(now_s - self.since_s, 0.0))
        self.since_s = None

    def left(self, now_s: float) -> float | None:
        return left_s(self.usual, 0.0 if self.since_s is None else now_s - self.since_s)


class ExpectedSilence:
    """Expected silence = what is left of the tools, the model and the voice − speech still to be heard.

    The model is awaited from `ask`, and comes with `text` or `called`; the voice is awaited from a text, and comes with
    `heard`.

    Examples
    --------
    >>> silence = ExpectedSilence()
    >>> silence.text("Let me look.", 10.0)
    >>> silence, speech = silence.after(10.0, [(Took(4.0, 9.0), 0.0)])  # a tool that takes 4 s, called just now
    >>> round(silence, 1), round(speech, 1)
    (3.9, 1.1)
    """

    def __init__(self) -> None:
        self._model, self._voice = _Part(_FIRST_MODEL_S), _Part(_FIRST_VOICE_S)
        self._speech_until_s = 0.0

    def ask(self, now_s: float) -> None:
        """The model has the question, or the last result."""
        self._model.since_s, self._voice.since_s = now_s, None

    def called(self, now_s: float) -> None:
        """The model has called a tool; speech of before does not show how long the answer's takes."""
        self._model.came(now_s)
        self._voice.since_s = None

    def text(self, text: str, now_s: float) -> None:
        """The model has sent text for speech."""
        self._model.came(now_s)
        if self._voice.since_s is None:
            self._voice.since_s = now_s
        begins_s = now_s + self._voice.usual.median_s
        self._speech_until_s = max(self._speech_until_s, begins_s) + len(text) / _CHARS_PER_S

    def voice_left_s(self, now_s: float) -> float:
        """How soon the words of a text that has come are expected, seconds."""
        return self._voice.left(now_s) or 0.0

    def heard(self, now_s: float) -> None:
        """The first word of a text is heard."""
        self._voice.came(now_s)

    def cut(self) -> None:
        """The turn has ended: nothing more is to be heard, and nobody is awaited."""
        self._speech_until_s = 0.0
        self._model.since_s = self._voice.since_s = None

    def after(self, now_s: float, running: Iterable[tuple[Took | None, float]], queued_s: float = 0.0) -> Expected:
        """The silence after the speech of now; each call that runs gives what it takes and for how long it has run."""
        speech_s = max(self._speech_until_s - now_s, queued_s, 0.0)
        tools = [left_s(usual, elapsed_s) for usual, elapsed_s in running]
        # The model is asked again when the tools are done.
        parts = [*tools, self._model.usual.median_s if tools else self._model.left(now_s)]
        if None in parts:
            return Expected(None, speech_s)
        total_s = max((left or 0.0 for left in tools), default=0.0) + (parts[-1] or 0.0) + self._voice.usual.median_s
        return Expected(max(total_s - speech_s, 0.0), speech_s)
