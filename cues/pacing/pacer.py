"""The pacer: releases mixed frames slightly ahead of real time.

A speech synthesizer runs ahead of real time. A cue mixed into queued speech would sound after all of it. So the queue
comes first and the mixer second.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from cues.arrays import Samples
from cues.errors import CueTypeError, CueValueError, MixerClosedError
from cues.mixing.mixer import Mixer
from cues.mixing.voice import LONGEST_RELEASE_MS, checked_fade_ms
from cues.pacing.jitter_buffer import JitterBufferDepth
from cues.signal.concealment import Concealment
from cues.signal.fades import MIN_FADE_MS, raised_cosine
from cues.signal.pcm import bytes_of_pcm16, float_of_pcm16
from cues.units import checked_number, checked_whole_number, ms_to_samples

__all__ = ["Pacer"]

_OF_MIXER = ("sample_rate", "active", "sounds", "holds_sound", "muted_from", "mix", "silence")
_LONGEST_LEAD_MS = 10_000.0
_LONGEST_KEPT_MS = 3_600_000.0


# More than 250 lines and 20 methods: half of it is documentation; queue, lead and concealment meet in each frame.
class Pacer:
    """A speech queue in front of a mixer, released in real time.

    A frame is due while the released, unheard samples, the frame included, are at most the lead. Without speech, frames
    of silence are released while a cue sounds or is scheduled; until it sounds, each one when half a frame is left to
    hear, so that speech that comes meanwhile is heard soon. The pacer does no I/O, never sleeps and starts no task:
    call `due` from your loop; `wait_s` gives the time until the next call.

    "The mixing thread" is the one that calls `due`; `push`, `push_pcm16` and `end` may be called from one other.
    Properties: The mixing thread only.

    On underrun, speech fades out over 10 ms; it fades in over 5 ms when it resumes. Without a cue, a last frame fades
    it out, which is due when half a frame is left to hear; if `due` is called too late for it, the speech is cut off.
    `interrupt` fades it out even if no more of it is queued. Before the output stops, a frame brings what the mixer's
    limiter has delayed.

    The lead adapts to your loop. A call of `due` that comes after the released frames ran out, while more were queued,
    makes it one frame longer; `cues.pacing.jitter_buffer` describes when it shrinks. The lead changes when frames are
    released, never their samples.

    After the mixer is closed, speech passes unchanged, so a loop that still runs raises no error. `clear` drops the
    queue.

    Parameters
    ----------
    mixer : Mixer
        The session's open mixer; its `lead_samples` follows the lead.
    frame_samples : int
        Length of each released frame, samples; at most 10 s.
    lead_ms : float
        Largest lead; one frame … 10,000 ms.
    first_lead_ms : float, optional
        Lead at the start; one frame … `lead_ms`. With `lead_ms`, the lead is constant. None is two frames, or `lead_ms`
        if that is less.
    silence_lead_ms : float, optional
        Largest lead of frames without speech, one frame … `lead_ms`: speech that arrives after them is heard sooner.
        None is `lead_ms`.
    continuous : bool
        Release frames of silence too, so that output samples are time.
    clock : callable
        Monotonic clock, seconds.

    Attributes
    ----------
    underruns : int
        How often unfinished speech came too late for a whole frame.

    Raises
    ------
    CueTypeError, CueValueError
        If a parameter is outside of these limits.
    MixerClosedError
        If `mixer` is closed.

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
        silence_lead_ms: float | None = None,
        continuous: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # Checked by its attributes: a wrapper around a mixer is allowed.
        if not all(hasattr(mixer, name) for name in _OF_MIXER):
            raise CueTypeError(f"mixer is {mixer!r}; it must be a cues.Mixer")
        if getattr(mixer, "closed", False):
            raise MixerClosedError("the mixer is closed; a new session needs a new Mixer")
        if not callable(clock):
            raise CueTypeError(f"clock is {clock!r}; it must be a function that returns seconds")
        most_samples = ms_to_samples(_LONGEST_LEAD_MS, mixer.sample_rate)
        self._frame = checked_whole_number("frame_samples", frame_samples, 1, most_samples)
        least_ms = 1000.0 * self._frame / mixer.sample_rate
        lead_ms = checked_number("lead_ms", lead_ms, least_ms, _LONGEST_LEAD_MS)
        first_lead_ms = min(2.0 * least_ms, lead_ms) if first_lead_ms is None else first_lead_ms
        first_lead_ms = checked_number("first_lead_ms", first_lead_ms, least_ms, lead_ms)
        silence_lead_ms = lead_ms if silence_lead_ms is None else silence_lead_ms
        silence_lead_ms = checked_number("silence_lead_ms", silence_lead_ms, least_ms, lead_ms)
        self._silence_lead = ms_to_samples(silence_lead_ms, mixer.sample_rate)
        self._mixer, self._continuous = mixer, continuous
        self._depth = JitterBufferDepth(
            first_samples=ms_to_samples(first_lead_ms, mixer.sample_rate),
            most_samples=ms_to_samples(lead_ms, mixer.sample_rate),
            frame_samples=self._frame,
            sample_rate=mixer.sample_rate,
        )
        self._clock = clock
        self._muted_from = 0  # sample of the output at which an interrupt's fade is over
        self._queue: deque[Samples] = deque()
        self._pushed = self._taken = 0  # each is written by one thread only
        self._ends: deque[int] = deque()  # counts of pushed samples at which an utterance ended
        self._last_end = 0  # the latest of them; of the thread that pushes
        self._odd_byte = b""
        self._heard_from: float | None = None  # when playback of the released samples began
        self._released = 0  # samples since then
        self._speaking = self._ended = False
        self._dry = self._resumes = False
        self._concealment = Concealment(mixer.sample_rate)
        self._fade_in = raised_cosine(ms_to_samples(MIN_FADE_MS, mixer.sample_rate)).astype(np.float32)
        self._onset = _NO_SPEECH  # the rest of the fade-in of what is pushed next
        self._more_waits = False  # whether more could be released before the released samples run out
        self.underruns = 0
        mixer.lead_samples = self._depth.samples

    @property
    def lead_samples(self) -> int:
        """The lead now, samples."""
        return self._depth.samples

    @property
    def late_calls(self) -> int:
        """How often `due` was called after the released frames ran out while more were queued."""
        return self._depth.late_calls

    @property
    def queued_samples(self) -> int:
        """Queued speech, samples."""
        return self._pushed - self._taken

    @property
    def unheard_samples(self) -> int:
        """Released samples that have not been heard yet, by the clock."""
        return max(0, math.ceil(self._ahead(self._clock())))

    @property
    def is_silent(self) -> bool:
        """Whether nothing is queued or sounds, and the released speech has ended in silence."""
        speech_stops = self._concealment.is_open and self.unheard_samples > 0
        return not (self.queued_samples or self._active or speech_stops or self._mixer.holds_sound)

    @property
    def is_dry(self) -> bool:
        """Whether unfinished speech has run out."""
        return self._dry

    def push(self, samples: ArrayLike) -> None:
        """Queue speech: float, shape `(n_samples,)`, full scale ±1.0, any length. It is copied.

        The mixing thread, or one other.

        Raises
        ------
        CueTypeError, CueValueError
            If `samples` is not 1-D float; nothing is queued.
        """
        try:
            speech = np.asarray(samples)
        except ValueError as error:
            raise CueValueError("speech is lists of unequal lengths; it must be 1-D: one channel") from error
        if speech.dtype.kind != "f":
            raise CueTypeError(f"speech has dtype {speech.dtype}; it must be floating point (int16 bytes: push_pcm16)")
        if speech.ndim != 1:
            raise CueValueError(f"speech has shape {speech.shape}; it must be 1-D: one channel")
        if len(speech):
            n_fading = self._muted_from and self._muted_from - self._mixer.position - self.queued_samples
            if n_fading > 0:
                self._queue.append(np.zeros(n_fading, dtype=np.float32))
                self._pushed += n_fading
            with np.errstate(over="ignore"):
                speech = np.array(speech, dtype=np.float32)
            n_onset = min(len(self._onset), len(speech))
            speech[:n_onset] *= self._onset[:n_onset]
            self._onset = self._onset[n_onset:]
            self._queue.append(speech)
            ahead = self._ahead(self._clock())
            self._more_waits = self._more_waits or ahead > 0.0
            if self._speaking and not (self._dry or self.queued_samples) and ahead <= -1.0:
                self._resumes = True  # nobody has called `due` since the speech ran out
            self._speaking = True
            self._dry = False
            self._pushed += len(speech)  # last: the thread of `due` takes what is counted

    def push_pcm16(self, data: bytes) -> None:
        """Queue speech as int16 little-endian bytes or an int16 array; a chunk may end inside a sample.

        The mixing thread, or one other.
        """
        whole = self._odd_byte + bytes_of_pcm16(data)
        even = len(whole) - len(whole) % 2
        self._odd_byte = whole[even:]
        self.push(float_of_pcm16(whole[:even]))

    def end(self) -> None:
        """End the utterance: release an incomplete last frame, and count no underrun after it.

        Speech that ends in mid-sound, as that of a voice that failed, fades out over 10 ms: under the next utterance,
        which fades in meanwhile, if one is queued in time. An utterance that begins in mid-sound after an end fades in.
        The mixing thread, or one other.
        """
        if self._last_end != self._pushed:
            self._last_end = self._pushed
            self._ends.append(self._pushed)
        self._speaking, self._ended = False, True
        self._odd_byte = b""

    def clear(self, keep_ms: float = 0.0) -> int:
        """Drop queued speech and return how many samples were dropped. The mixing thread only.

        Parameters
        ----------
        keep_ms : float
            Speech to keep for the fade of `mixer.release`, 0 … 3,600,000 ms.
        """
        keep_ms = checked_number("keep_ms", keep_ms, 0.0, _LONGEST_KEPT_MS)
        keep = ms_to_samples(keep_ms, self._mixer.sample_rate)
        self._put_back(self._speech(min(self.queued_samples, keep)))
        return self._clear(keep)

    def _clear(self, keep: int) -> int:
        queued = self.queued_samples
        keep = min(queued, keep)
        kept = self._pop(keep)
        self._pop(queued - keep)
        while self._between:
            self._ends.popleft()
        self._put_back(kept)
        self._concealment.reset()
        self._more_waits = self._more_waits and (keep > 0 or self._active)
        self._speaking = self._ended = False  # the mixer fades what is kept
        self._odd_byte = b""
        return queued - keep

    def interrupt(self, fade_ms: float = 30.0) -> int:
        """Barge-in: fade out, drop the queue and return how many samples of speech were dropped.

        The mixing thread only. Speech pushed afterwards is muted until `mixer.resume()` or the next cue, so a late
        chunk of the old answer is not heard; its first 5 ms fade in. `fade_ms` is that of `Mixer.release`.
        """
        fade_ms = checked_fade_ms(fade_ms, LONGEST_RELEASE_MS)  # as the mixer limits it: keep speech for the whole fade
        self._mixer.release(fade_ms=fade_ms)
        # Not `fade_ms`: the mixer keeps to the first release, and a steep ramp ends before its fade begins.
        n_fade = max(self._mixer.muted_from - self._mixer.position, 0)
        self._forget_after_hole(self._ahead(self._clock()))
        self._put_back(self._speech(min(self.queued_samples, n_fade)))
        is_open = (self._speaking or self._ended) and (self.queued_samples or self.unheard_samples)
        if is_open and self.queued_samples < n_fade:
            end = self._concealment.fade_out(n_fade - self.queued_samples)
            if end is not None:
                self.push(end)
        dropped = self._clear(n_fade)
        self._muted_from = self._mixer.position + n_fade  # speech that comes meanwhile waits until then
        self._onset = self._fade_in  # it may begin in mid-sound, and a cue may have ended the muting
        return dropped

    def take(self) -> Samples:
        """Take the queued speech back. The mixing thread only."""
        return self._speech(self.queued_samples)

    def recall(self, n_instead: int = 0) -> int:
        """Note that the output dropped the unheard samples, and return how many these are. The mixing thread only.

        `n_instead` is how many samples it plays instead, such as a fade.
        """
        n_unheard = self.unheard_samples
        self._heard_from, self._released = self._clock() if n_instead else None, n_instead
        self._concealment.fade_out(0)  # the next sound begins in silence
        return n_unheard

    def drain(self, n_frames: int) -> list[Samples]:
        """Return the next `n_frames` mixed frames at once, due or not, and drop the rest of the queue.

        The mixing thread only. They are the last sound of a session, such as the fade of `interrupt`.
        """
        speech = (self._pop(min(self._frame, self.queued_samples)) for _ in range(n_frames))
        frames = [self._mixer.mix(self._padded(piece)) for piece in speech]
        self.clear()
        return frames

    def due(self) -> list[Samples]:
        """Return the mixed frames that are due now, oldest first. The mixing thread only."""
        mixer = self._mixer
        return [mixer.mix(speech) if len(speech) else mixer.silence(self._frame) for speech in self._due()]

    def due_speech(self) -> Iterator[Samples]:
        """Yield the due frames unmixed, for an output that mixes each itself. The mixing thread only."""
        for speech in self._due():
            yield speech if len(speech) else np.zeros(self._frame, dtype=np.float32)

    def _due(self) -> Iterator[Samples]:
        """The due frames, unmixed; empty for a frame without speech."""
        now = self._clock()
        self._depth.called(self._ahead(now), more_waits=self._more_waits)
        self._mixer.lead_samples = self._depth.samples
        while (speech := self._next(now)) is not None:
            yield speech
        self._more_waits = self.queued_samples > 0 or self._sounds

    def wait_s(self) -> float | None:
        """Seconds until a frame is due, ≥ 0.0; None if nothing is queued, sounds or fades. The mixing thread only."""
        if not (self.queued_samples or self._active or self.fades_out or self._mixer.holds_sound):
            return None
        return max(0.0, (self._ahead(self._clock()) - self._limit(self.queued_samples)) / self._mixer.sample_rate)

    def dry_s(self) -> float:
        """Seconds until `due` releases the last unfinished speech, ≥ 0.0. The mixing thread only."""
        if not self._speaking or self._dry:
            return 0.0
        n_part = self.queued_samples % self._frame
        ahead = math.floor(self._ahead(self._clock())) + self.queued_samples - n_part
        return max(0, ahead - self._limit(n_part)) / self._mixer.sample_rate

    @property
    def _active(self) -> bool:
        """Whether frames are due without queued speech."""
        return self._continuous or self._mixer.active

    @property
    def _sounds(self) -> bool:
        """Whether frames without speech are heard, or kept as time; a cue that waits is neither."""
        return self._continuous or self._mixer.sounds

    @property
    def fades_out(self) -> bool:
        """Whether a frame is due to fade out speech that stopped in mid-sound."""
        return self._heard_from is not None and self._stops

    @property
    def _stops(self) -> bool:
        """Whether the released speech clicks if no more follows; a voice that failed ends in mid-sound, too."""
        return (self._speaking or self._ended) and self._concealment.is_open

    def _limit(self, queued: int) -> int:
        """The most released, unheard samples at which the next frame is due, with so much speech queued."""
        limit = self._depth.samples - self._frame
        if queued < self._frame and self._speaking and not self._dry:
            # An incomplete frame of an unfinished utterance: wait for the rest until the last moment. A fade-out alone
            # waits for longer: speech that comes frame by frame has no more than a frame left each time.
            return min(self._frame if queued or self._active else self._frame // 2, limit)
        if queued:
            return limit
        # While a cue only waits, less silence lies before the speech or the cue that comes.
        return min(self._silence_lead - self._frame if self._sounds else self._frame // 2, limit)

    def _ahead(self, now: float) -> float:
        """Released, unheard samples; negative after they ran out."""
        if self._heard_from is None:
            return 0.0
        return self._released - (now - self._heard_from) * self._mixer.sample_rate

    def _next(self, now: float) -> Samples | None:
        """The next frame if one is due, unmixed; empty without speech."""
        if self._resumes:
            self._resumes = False
            self.underruns += 1
            self._concealment.fade_out(0)
        queued, ahead = self.queued_samples, self._ahead(now)
        if not queued:
            if self._speaking and not self._dry and self._heard_from is not None and ahead <= 0.0:
                self.underruns += 1
                self._dry = True
            self._forget_after_hole(ahead)
            if not (self._active or self.fades_out or self._mixer.holds_sound):
                if self._dry:
                    self._concealment.fade_out(0)
                return None
        if math.floor(ahead) > self._limit(queued):
            return None
        self._forget_after_hole(ahead)
        if ahead <= 0.0:
            self._heard_from, self._released = now, 0
        self._released += self._frame
        self._depth.released(self._frame)
        if not queued:
            end = self._concealment.fade_out(self._frame) if self._speaking or self._stops else None
            if end is None:
                return _NO_SPEECH
            if self._speaking:
                self.underruns += not self._dry
                self._dry = True
            return end
        n_speech = min(queued, self._frame)
        frame = self._padded(self._speech(n_speech))
        if self._muted_from and self._mixer.position + n_speech <= self._muted_from:
            self._concealment.reset()  # an interruption fades it, though a cue may have ended the muting
        if n_speech < self._frame and (self._speaking or self._stops):
            self.underruns += self._speaking
            self._concealment.close(frame, n_speech)
        return frame

    @property
    def _between(self) -> bool:
        """Whether the next sample of the queue is the first of an utterance."""
        return bool(self._ends) and self._ends[0] <= self._taken

    def _forget_after_hole(self, ahead: float) -> None:
        """After a hole in the output, the sound that it cut off does not begin again."""
        if (self._dry or self._between) and ahead <= -1.0 and not self._continuous:  # less than a sample is rounding
            self._concealment.fade_out(0)

    def _speech(self, n_samples: int) -> Samples:
        """Take `n_samples` from the queue as they are heard, with fades where speech was cut."""
        pieces = []
        while n_samples:
            while self._between:
                self._ends.popleft()
                self._concealment.end()
            n_piece = min(n_samples, self._ends[0] - self._taken) if self._ends else n_samples
            piece = self._concealment.fade_in(self._pop(n_piece))
            self._concealment.released(piece)
            pieces.append(piece)
            n_samples -= n_piece
        return _joined(pieces)

    def _padded(self, speech: Samples) -> Samples:
        return speech if len(speech) == self._frame else np.pad(speech, (0, self._frame - len(speech)))

    def _pop(self, n_samples: int) -> Samples:
        """Take `n_samples` from the queue, at most what is queued."""
        pieces = []
        while n_samples:
            head = self._queue.popleft()
            if n_samples < len(head):
                self._queue.appendleft(head[n_samples:])
                head = head[:n_samples]
            pieces.append(head)
            self._taken += len(head)
            n_samples -= len(head)
        return _joined(pieces)

    def _put_back(self, speech: Samples) -> None:
        """Put what `_pop` returned back in front of the queue."""
        if len(speech):
            self._queue.appendleft(speech)
            self._taken -= len(speech)


def _joined(pieces: list[Samples]) -> Samples:
    return pieces[0] if len(pieces) == 1 else np.concatenate([_NO_SPEECH, *pieces])


_NO_SPEECH: Samples = np.zeros(0, dtype=np.float32)
