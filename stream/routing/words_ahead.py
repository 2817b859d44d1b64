"""The words that are on their way to the listener, and what follows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cues.cue import Cue
from cues.errors import MixerClosedError
from cues.mixing.voice import Wait
from stream.routing.turn_state import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from cues import Mixer, Voice

__all__ = ["Output", "WordsAhead"]

_SPEECH_END_S = 0.2  # A voice of which nobody knows more has finished after this silence.
_LONGEST_S = 2.0  # Of a silence before words that are announced.


class Output(NamedTuple):
    """The mixer; its position and, in samples, how long it has stood still since; up to where speech is queued."""

    mixer: Mixer
    now: int
    queued_until: int


class _Follower(NamedTuple):
    """What follows the words; `hold` is a silence that waits, so that frames are due until then."""

    then: Callable[[int], None]
    is_speech: bool
    hold: Voice


class WordsAhead:
    """Calls back when the words that are on their way have been heard.

    That are those that are queued or heard, those of which `go_on` knows, and for a while those of a text without a
    sound. `go_on` returns whether more words come; `None` if only listening shows it.
    """

    def __init__(self, output: Callable[[], Output]) -> None:
        self._output = output
        self.go_on: Callable[[], bool | None] = lambda: None
        self._followers: list[_Follower] = []
        self._go_on_from: int | None = None
        self._text_at: int | None = None

    def forget(self) -> None:
        """Drop what waits, and await no words: the turn has ended."""
        self._go_on_from = self._text_at = None
        self._take()

    def text(self) -> None:
        """Note text: what waits follows the words before it; where their end is not known, a phrase is dropped."""
        mixer, now, queued_until = self._output()
        if not self.are_ahead():
            self._text_at = now
        if queued_until > mixer.position:
            for follower in self._take():
                follower.then(queued_until)
        for follower in self._followers:
            if follower.is_speech:
                follower.hold.stop()
        self._followers = [follower for follower in self._followers if not follower.is_speech]

    def are_ahead(self) -> bool:
        """Whether words are on their way."""
        mixer, now, _ = self._output()
        if self._text_at is not None:
            is_late = now - self._text_at >= _LONGEST_S * mixer.sample_rate
            self._text_at = None if is_late or mixer.heard >= self._text_at else self._text_at
        return self.are_spoken() or self._text_at is not None

    def are_spoken(self) -> bool:
        """Whether words are on their way from a voice that speaks."""
        (mixer, now, queued_until), go_on = self._output(), self.go_on()
        self._go_on_from = (now if self._go_on_from is None else self._go_on_from) if go_on else None
        if queued_until > mixer.position:
            return True
        if mixer.heard < 0 and not go_on:
            return False
        silence = now - max(mixer.heard, queued_until, self._go_on_from or 0)
        longest_s = {True: _LONGEST_S, None: _SPEECH_END_S, False: 0.0}[go_on]
        return silence < longest_s * mixer.sample_rate

    def follow(self, then: Callable[[int], None], is_speech: bool) -> None:
        """Call `then` with the output sample at which the words end, once that is known; at once without words."""
        mixer, _, _ = self._output()
        if not self.are_ahead():
            then(mixer.position)
            return
        silence = Cue(name="silence", samples=np.zeros(1, dtype=np.float32), sample_rate=mixer.sample_rate)
        try:
            hold = mixer.play(silence, loop=False, wait=Wait(not_before=NEVER))
        except MixerClosedError:
            return
        self._followers.append(_Follower(then, is_speech, hold))

    def poll(self) -> None:
        """After each frame: look whether the words have ended."""
        is_open = self._followers or self._go_on_from is not None
        if is_open and not self.are_ahead():
            mixer, _, _ = self._output()
            for follower in self._take():
                follower.then(mixer.position)

    def _take(self) -> list[_Follower]:
        """What waits, which waits no longer."""
        followers, self._followers = self._followers, []
        for follower in followers:
            follower.hold.stop()
        return followers
