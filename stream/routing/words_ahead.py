"""The words that are on their way to the listener, and what follows them."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cues.cue import Cue
from cues.errors import MixerClosedError
from cues.mixing.voice import Wait
from stream.routing.turn_state import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cues import Mixer, Voice

__all__ = ["Follower", "Output", "WordsAhead"]

_SPEECH_END_S = 0.2  # A voice of which nobody knows more has finished after this silence.
_LONGEST_S = 2.0  # Of a silence before words that are announced.
_FADE_S = 0.05  # Longer than the fade-out of words, which sounds behind their end.
_REST_S = 0.02  # Longer than what a resampler holds back until the end of the words.
_LONGEST_GAP_S = 0.6  # Longest wait for the next text's voice after the words before it; it may have joined them.


class Output(NamedTuple):
    """The mixer; in samples, how long it has stood still, and up to where speech is queued."""

    mixer: Mixer
    idle: int
    queued_until: int

    def since(self, mark: Mark) -> int:
        """The samples since a mark; what passed while the output stood still counts."""
        return self.mixer.position - mark.position + max(0, self.idle - mark.idle)


class Mark(NamedTuple):
    """A moment: the mixer's position, and how long it had stood still, samples."""

    position: int
    idle: int


class Follower(NamedTuple):
    """A cue that follows the words.

    Those with the highest `rank` come first: their priority, and whether they tell of a failure. `then` gets the output
    sample at which the words end, and whether more of them come after it.
    """

    cue: str
    rank: tuple[int, bool]
    then: Callable[[int, bool], None]


class WordsAhead:
    """Calls back when the words that are on their way have been heard.

    Words are on their way if they are queued or heard, if `go_on` knows of them, or for a while after a text that has
    no sound yet. `go_on` returns whether more words come; `None` if only listening shows it. One cue follows the words,
    the latest of those with the highest rank. If nobody calls `poll` after each frame, `is_polled` is false, and none
    can.
    """

    def __init__(self, output: Callable[[], Output]) -> None:
        self._output = output
        self.go_on: Callable[[], bool | None] = lambda: None
        self.follow_text = True  # whether a voice speaks a text soon
        self.is_polled = False
        self._follower: Follower | None = None
        self._hold: Voice | None = None  # a silence that waits, so that frames are due until then
        self._going_on: Mark | None = None
        self._texts: deque[Mark] = deque()  # whose voices are awaited
        self._voice_from: int | None = None  # where the first one's may begin; `None` while other words are heard
        self._gap: Mark | None = None  # behind those words
        self._queued_until, self._queued_at = 0, Mark(0, 0)  # the end of the queue, and when it last moved on

    @property
    def is_followed(self) -> bool:
        """Whether a cue waits."""
        return self._follower is not None

    def forget(self) -> None:
        """Drop what waits, and await no words: the turn has ended."""
        self._going_on = self._voice_from = self._gap = None
        self._queued_until = 0
        self._texts.clear()
        self._take()

    def drop(self, cues: Collection[str] | None = None) -> None:
        """Drop what waits if it is one of these cues; `None` is any."""
        if self._follower is not None and (cues is None or self._follower.cue in cues):
            self._take()

    def text(self, *, is_new: bool) -> None:
        """Note text: what waits takes the next pause.

        `is_new` says that it is the first after a call or an outcome: its voice is awaited even while earlier words are
        heard.
        """
        mixer, idle, queued_until = self._output()
        are_ahead = self.are_ahead()
        if self.follow_text and (is_new or not are_ahead):
            self._texts.append(Mark(mixer.position, idle))
            if not are_ahead:
                self._voice_from = mixer.position
        if (follower := self._take()) is not None:
            follower.then(max(queued_until, mixer.position), True)

    def are_ahead(self) -> bool:
        """Whether words are on their way."""
        output, are_spoken = self._output(), self.are_spoken()
        while self._texts and self._is_late(output):
            self._voice_came()
        if self._texts and self._voice_from is None and not are_spoken:
            self._voice_from = output.mixer.position + round(_FADE_S * output.mixer.sample_rate)
            self._gap = Mark(output.mixer.position, output.idle)
        if self._voice_from is not None and output.mixer.heard >= self._voice_from:
            self._voice_came()
        return are_spoken or bool(self._texts)

    def _is_late(self, output: Output) -> bool:
        """Whether to await the first text's voice no more: it is too late, or has joined the words before it."""
        rate = output.mixer.sample_rate
        is_long = self._gap is not None and output.since(self._gap) >= _LONGEST_GAP_S * rate
        return is_long or output.since(self._texts[0]) >= _LONGEST_S * rate

    def _voice_came(self) -> None:
        """Await the voice of the next text."""
        self._texts.popleft()
        self._voice_from = self._gap = None

    def speech(self) -> None:
        """Note that speech was queued. After 0.2 s in which none was, it is taken for the first text's voice."""
        output = self._output()
        if output.queued_until > self._queued_until:
            rate, n_new = output.mixer.sample_rate, output.queued_until - max(self._queued_until, output.mixer.position)
            was_quiet = output.since(self._queued_at) >= _SPEECH_END_S * rate
            if self._texts and was_quiet and n_new >= _REST_S * rate:
                self._voice_came()
            self._queued_at = Mark(output.mixer.position, output.idle)
        self._queued_until = output.queued_until

    def are_spoken(self) -> bool:
        """Whether words are on their way from a voice that speaks."""
        output, go_on = self._output(), self.go_on()
        mixer, idle, queued_until = output
        self._going_on = (self._going_on or Mark(mixer.position, idle)) if go_on else None
        if queued_until > mixer.position:
            return True
        if mixer.heard < 0 and not go_on:
            return False
        silence = mixer.position - max(mixer.heard, queued_until) + idle
        if self._going_on is not None:
            silence = min(silence, output.since(self._going_on))
        longest_s = {True: _LONGEST_S, None: _SPEECH_END_S, False: 0.0}[go_on]
        return silence < longest_s * mixer.sample_rate

    def follow(self, follower: Follower) -> None:
        """Have a cue follow the words; at once without words, or into the next pause if nobody polls."""
        mixer, _, queued_until = self._output()
        if not self.is_polled or not self.are_ahead():
            follower.then(max(queued_until, mixer.position), self.are_ahead())
        elif self._follower is None:
            silence = Cue(name="silence", samples=np.zeros(1, dtype=np.float32), sample_rate=mixer.sample_rate)
            with contextlib.suppress(MixerClosedError):
                self._hold = mixer.play(silence, loop=False, wait=Wait(not_before=NEVER))
                self._follower = follower
        elif follower.rank >= self._follower.rank:
            self._follower = follower

    def poll(self) -> None:
        """Look whether the words have ended."""
        is_open = self._follower is not None or self._going_on is not None or self._texts
        if is_open and not self.are_ahead() and (follower := self._take()) is not None:
            follower.then(self._output().mixer.position, False)

    def _take(self) -> Follower | None:
        """What waits, which waits no longer."""
        follower, self._follower = self._follower, None
        if self._hold is not None:
            self._hold.stop()
            self._hold = None
        return follower
