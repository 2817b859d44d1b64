"""The pacer: releases mixed frames a little ahead of real time, so that a cue of this moment is heard at this moment.

A speech synthesizer runs ahead of real time. Whoever mixes before the point that paces puts a cue behind all speech
that is already queued; so the queue is in here, in front of the mixer.
"""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from cues.errors import CueTypeError, CueValueError, MixerClosedError
from cues.mixing.voice import LONGEST_RELEASE_MS, checked_fade_ms
from cues.pacing.concealment import Breaks
from cues.pacing.jitter_buffer import Lead
from cues.signal.pcm import bytes_of_pcm16, float_of_pcm16
from cues.units import checked_number, checked_whole_number, ms_to_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from cues.mixing.mixer import Mixer

    Samples = NDArray[np.float32]

__all__ = ["Pacer"]

_LONGEST_LEAD_MS = 10_000.0
_LONGEST_KEPT_MS = 3_600_000.0


class Pacer:
    """A queue of speech in front of a mixer, emptied at the speed of the clock.

    A frame is due while what was released and has not been heard yet, the frame included, is at most the lead. Without
    speech, frames of silence are made while a cue sounds or is scheduled, and none otherwise. It does no I/O, sleeps
    never and starts nothing: call `due` from your loop, and `wait_s` says when the next call is worth it.

    Where an utterance runs dry in the midst of sound, it dies away within 10 ms instead of breaking off, as far as a
    frame goes out there, and what comes after the hole fades in within 5 ms.

    The lead is as short as your loop allows. It begins with two frames. Each call of `due` that comes too late (the
    released frames have run out although more were waiting) makes it a frame longer; `cues.pacing.jitter_buffer` says
    when it shrinks. A change of the lead changes when frames are released, never what is in them.

    When the mixer is closed, the pacer goes on: speech passes as it is, so that a loop that is still running meets no
    error. `clear` drops what is queued. A new pacer needs a mixer that is open.

    Parameters
    ----------
    mixer : of the session; its `lead_samples` follows the lead.
    frame_samples : length of every released frame, samples, 1 … 10 s of them.
    lead_ms : how far ahead of real time frames are released at most; at least one frame, at most 10,000 ms.
    first_lead_ms : the lead to begin with; at least one frame, at most `lead_ms`, which keeps it constant. `None`: two
        frames, which leave one frame's time for the call that is due, or `lead_ms` where that is less.
    continuous : release frames of silence too, so that output samples are time.
    clock : seconds on a clock that never goes back.

    Attributes
    ----------
    underruns : times that speech which had not ended came too late, or not in time for a whole frame.

    Raises
    ------
    CueTypeError, CueValueError : for a parameter outside of these limits.
    MixerClosedError : for a mixer that is closed already.

    Examples
    --------
    >>> import numpy as np
    >>> import cues
    >>> now = 0.0
    >>> pacer = cues.Pacer(cues.Mixer(), frame_samples=480, lead_ms=80.0, clock=lambda: now)
    >>> pacer.push(np.zeros(24000, dtype=np.float32))
    >>> len(pacer.due()), pacer.queued_samples
    (2, 23040)
    >>> now = 0.05  # 10 ms too late
    >>> len(pacer.due()), pacer.late_calls, pacer.lead_samples
    (3, 1, 1440)
    """

    def __init__(
        self,
        mixer: Mixer,
        *,
        frame_samples: int = 480,
        lead_ms: float = 80.0,
        first_lead_ms: float | None = None,
        continuous: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _check_mixer(mixer)
        if not callable(clock):
            raise CueTypeError(f"clock is {clock!r}; it must be a function that returns seconds")
        most_samples = ms_to_samples(_LONGEST_LEAD_MS, mixer.sample_rate)
        self._frame = checked_whole_number("frame_samples", frame_samples, 1, most_samples)
        least_ms = 1000.0 * self._frame / mixer.sample_rate
        lead_ms = checked_number("lead_ms", lead_ms, least_ms, _LONGEST_LEAD_MS)
        first_lead_ms = min(2.0 * least_ms, lead_ms) if first_lead_ms is None else first_lead_ms
        first_lead_ms = checked_number("first_lead_ms", first_lead_ms, least_ms, lead_ms)
        self._mixer, self._continuous = mixer, continuous
        self._lead = Lead(
            first_samples=ms_to_samples(first_lead_ms, mixer.sample_rate),
            most_samples=ms_to_samples(lead_ms, mixer.sample_rate),
            frame_samples=self._frame,
            sample_rate=mixer.sample_rate,
        )
        self._clock = clock
        self._queue: deque[Samples] = deque()
        self._queued = 0
        self._odd_byte = b""
        self._heard_from: float | None = None  # when what was released last began to run out
        self._released = 0  # samples since then
        self._speaking = False
        self._dry = False
        self._breaks = Breaks(mixer.sample_rate)
        self._more_waits = False  # something that could have been released before what was released runs out
        self.underruns = 0
        mixer.lead_samples = self._lead.samples

    @property
    def lead_samples(self) -> int:
        """How far ahead of real time frames are released now, samples."""
        return self._lead.samples

    @property
    def late_calls(self) -> int:
        """Times that `due` was called too late: what was released had run out, and more was waiting."""
        return self._lead.late_calls

    @property
    def queued_samples(self) -> int:
        """Speech that waits to be released, samples."""
        return self._queued

    def __repr__(self) -> str:
        rate = self._mixer.sample_rate
        queued_ms, lead_ms = 1000.0 * self.queued_samples / rate, 1000.0 * self.lead_samples / rate
        return f"<Pacer at {rate} Hz, {queued_ms:.0f} ms queued, lead {lead_ms:.0f} ms, {self.underruns} underruns>"

    def push(self, samples: ArrayLike) -> None:
        """Queue speech: float, shape `(n_samples,)`, full scale ±1.0, any length. It is copied."""
        speech = np.asarray(samples)
        if speech.dtype.kind != "f":
            raise CueTypeError(f"speech has dtype {speech.dtype}; it must be floating point (int16 bytes: push_pcm16)")
        if speech.ndim != 1:
            raise CueValueError(f"speech has shape {speech.shape}; it must be 1-D: one channel")
        if len(speech):
            with np.errstate(over="ignore"):
                self._queue.append(np.array(speech, dtype=np.float32))
            self._more_waits = self._more_waits or self._ahead(self._clock()) > 0.0
            self._queued += len(speech)
            self._speaking = True
            self._dry = False

    def push_pcm16(self, data: bytes) -> None:
        """Queue speech as int16 little-endian bytes, or an int16 array; a sample may be cut in two by the network."""
        whole = self._odd_byte + bytes_of_pcm16(data)
        even = len(whole) - len(whole) % 2
        self._odd_byte = whole[even:]
        self.push(float_of_pcm16(whole[:even]))

    def end(self) -> None:
        """Say that the utterance is complete: what is left may go out short of a frame, and silence is no underrun."""
        self._speaking = False
        self._odd_byte = b""

    def clear(self, keep_ms: float = 0.0) -> int:
        """Drop queued speech and return how many samples that were.

        Parameters
        ----------
        keep_ms : what of it still goes out first, 0 … 3,600,000 ms; the length of the fade that `mixer.release` was
            asked for.
        """
        keep_ms = checked_number("keep_ms", keep_ms, 0.0, _LONGEST_KEPT_MS)
        keep = min(self._queued, ms_to_samples(keep_ms, self._mixer.sample_rate))
        dropped = self._queued - keep
        kept = self._pop(keep)
        self._queue.clear()
        self._queued = 0
        self._breaks.forget()
        self._more_waits = self._more_waits and (keep > 0 or self._active)
        if keep:
            self._queue.append(kept)
            self._queued = keep
        self.end()
        return dropped

    def interrupt(self, fade_ms: float = 30.0) -> int:
        """Barge-in: fade out what sounds, drop the rest, and return how many samples of speech were never spoken.

        Speech that is pushed afterwards is muted until `mixer.resume()` or the next cue, so that what an answer's task
        still writes is not heard. `fade_ms` is that of `Mixer.release`.
        """
        fade_ms = checked_fade_ms(fade_ms, LONGEST_RELEASE_MS)  # the speech that it fades must not end before it
        self._mixer.release(fade_ms=fade_ms)
        return self.clear(keep_ms=fade_ms)

    def due(self) -> list[Samples]:
        """Return the mixed frames that are to be handed to the transport now, oldest first."""
        mixer = self._mixer
        return [mixer.mix(speech) if len(speech) else mixer.silence(self._frame) for speech in self._due()]

    def due_speech(self) -> Iterator[Samples]:
        """Yield the same frames before they are mixed, for an output that mixes by itself: mix each before the next."""
        for speech in self._due():
            yield speech if len(speech) else np.zeros(self._frame, dtype=np.float32)

    def _due(self) -> Iterator[Samples]:
        """The frames that are due, unmixed; an empty one for a frame without speech."""
        now = self._clock()
        self._lead.asked(self._ahead(now), more_waits=self._more_waits)
        self._mixer.lead_samples = self._lead.samples
        while (speech := self._next(now)) is not None:
            yield speech
        self._more_waits = self._queued > 0 or self._active

    def wait_s(self) -> float | None:
        """Seconds until `due` has something to give: 0.0 if it has now, None while there is nothing to say."""
        if not self._queued and not self._active:
            return None
        return max(0.0, (self._ahead(self._clock()) - self._limit()) / self._mixer.sample_rate)

    @property
    def _active(self) -> bool:
        """Whether frames are due although no speech is queued."""
        return self._continuous or self._mixer.active

    def _limit(self) -> int:
        """How many samples may be out and unheard when the next frame is released."""
        limit = self._lead.samples - self._frame
        if self._queued >= self._frame or not self._speaking:
            return limit
        # Too little for a frame, and more is to come: wait as long as nothing is missed.
        return min(self._frame, limit)

    def _ahead(self, now: float) -> float:
        """Samples released and not yet heard; negative where they ran out that long ago."""
        if self._heard_from is None:
            return 0.0
        return self._released - (now - self._heard_from) * self._mixer.sample_rate

    def _next(self, now: float) -> Samples | None:
        """The next frame, unmixed, if one is due; an empty one where there is no speech."""
        if not self._queued:
            self._note_underrun(now)
            if not self._active:
                if self._dry:
                    self._breaks.broken_off(0)
                return None
        if math.floor(self._ahead(now)) > self._limit():
            return None
        if self._ahead(now) <= 0.0:
            self._heard_from, self._released = now, 0
        self._released += self._frame
        self._lead.released(self._frame)
        end = self._breaks.broken_off(self._frame) if not self._queued and self._speaking else None
        if not self._queued:
            if end is None:
                return _NO_SPEECH
            self.underruns += not self._dry
            self._dry = True
            return end
        n_speech = min(self._queued, self._frame)
        frame = self._breaks.returned(self._pop(self._frame))
        self._breaks.passed(frame[:n_speech])
        if n_speech < self._frame and self._speaking:
            self.underruns += 1
            end = self._breaks.broken_off(self._frame - n_speech)
            if end is not None:
                frame[n_speech:] = end
        return frame

    def _note_underrun(self, now: float) -> None:
        """Count once that an utterance ran dry before its end."""
        if self._speaking and not self._dry and self._heard_from is not None and self._ahead(now) <= 0.0:
            self.underruns += 1
            self._dry = True

    def _pop(self, n_samples: int) -> Samples:
        """Take `n_samples` from the queue, zeros where it is too short."""
        if self._queue and len(self._queue[0]) >= n_samples:
            head = self._queue[0]
            frame = head[:n_samples]
            self._drop_head(n_samples)
            return frame
        frame = np.zeros(n_samples, dtype=np.float32)
        filled = 0
        while self._queue and filled < n_samples:
            head = self._queue[0]
            n = min(len(head), n_samples - filled)
            frame[filled : filled + n] = head[:n]
            self._drop_head(n)
            filled += n
        return frame

    def _drop_head(self, n_samples: int) -> None:
        """Take `n_samples` off the first piece of the queue."""
        head = self._queue.popleft()
        if n_samples < len(head):
            self._queue.appendleft(head[n_samples:])
        self._queued -= n_samples


_NO_SPEECH: Samples = np.zeros(0, dtype=np.float32)


def _check_mixer(mixer: object) -> None:
    # Not by its class: what stands in front of a mixer and mixes like one will do.
    if not all(hasattr(mixer, name) for name in ("sample_rate", "active", "mix", "silence")):
        raise CueTypeError(f"mixer is {mixer!r}; it must be a cues.Mixer")
    if getattr(mixer, "closed", False):
        raise MixerClosedError("the mixer is closed; a new session needs a new Mixer")
