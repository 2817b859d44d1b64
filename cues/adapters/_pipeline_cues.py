"""Mixer and router of one session, for any number of channels."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

import cues
from cues.errors import CueTypeError, CueValueError
from cues.signal.pcm import float_of_pcm16
from stream.routing.router import DEFAULT_RULES, CueRouter
from stream.routing.rules import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from cues import Cue, Mixer, Voice
    from stream.readers.options import Tools
    from stream.routing.rules import CueRules

__all__ = ["CueOptions", "PipelineCues", "check_options"]

logger = logging.getLogger(__name__)

_POLL_S = 0.5


class CueOptions(TypedDict, total=False):
    """Options of every adapter.

    Attributes
    ----------
    bank, rules
        As in `stream.CueRouter`; `None` takes the built-in cues and the default rules.
    tools : Tools
        The declared tools, as `stream.read` takes them; `None` if unknown. A call of another tool sounds as an error,
        unless the server runs that tool by itself (`CueRules.server_tools`, by default `mcp_*`).
    limits : Limits or None
        Timeouts for the model, its tools and the voice, after which the error cue plays; `None` takes the defaults.
    """

    bank: Mapping[str, Cue] | None
    rules: CueRules | None
    tools: Tools
    limits: Limits | None


def check_options(options: Mapping[str, Any], kind: type[CueOptions]) -> None:
    """Raise `CueTypeError` if an adapter was given an option that it does not have."""
    known = kind.__annotations__  # those that it inherits, too
    for name in options:
        if name not in known:
            raise CueTypeError(f"{name} is no option of this adapter; its cue options are {', '.join(known)}")


class PipelineCues:
    """One mixer for each of the interleaved channels, and one router for all.

    `now_s` is a clock, seconds, for pipelines that do not mix all the time. If the mixer gets not all speech, or more
    than that, set `hears` to False and pass the speech to `hear` before each frame.
    """

    def __init__(
        self,
        *,
        sample_rate: int,
        channels: int = 1,
        bank: Mapping[str, Cue] | None = None,
        rules: CueRules | None = None,
        tools: Tools = None,
        now_s: Callable[[], float] | None = None,
        limits: Limits | None = None,
        hears: bool = True,
    ) -> None:
        if channels < 1:
            raise CueValueError(f"channels is {channels!r}; it must be 1 or more")
        self.channels, self._is_built_in, self._hears = channels, bank is None, hears
        self._set_up(sample_rate)
        bank = cues.load_bank(sample_rate=sample_rate) if bank is None else bank
        rules = DEFAULT_RULES if rules is None else rules
        now_samples = None if now_s is None else lambda: round(now_s() * sample_rate)
        limits = Limits() if limits is None else limits
        self.router = CueRouter(bank, self.mixer, rules=rules, tools=tools, now_samples=now_samples, limits=limits)

    def retune(self, sample_rate: int) -> None:
        """Change the sample rate and keep the router."""
        if sample_rate == self.sample_rate:
            return
        self._set_up(sample_rate)
        self.router.use_mixer(self.mixer, cues.load_bank(sample_rate=sample_rate) if self._is_built_in else None)

    def _set_up(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self._mixers = [cues.Mixer(sample_rate) for _ in range(self.channels)]
        self._lockstep = _Lockstep(self._mixers)
        plain = self.channels == 1 and self._hears
        self.mixer = self._mixers[0] if plain else cast("Mixer", self._lockstep)

    def poll(self) -> None:
        """After each frame: publish the cues that have started, and fail a turn that is beyond its limits."""
        self.router.poll()
        if (failed := self.router.overdue()) is not None:
            logger.warning("%s", failed)
            self.router.handle(failed)

    @property
    def until_poll_s(self) -> float | None:
        """The longest time until `poll` should be called again, seconds; `None` if nothing is awaited."""
        return None if self.router.is_over else _POLL_S

    def hear(self, data: bytes) -> None:
        """Take the speech of the next frame, as `mix_pcm16` would."""
        listener = self._lockstep.listener
        if listener is not None and (n_samples := len(data) // (2 * self.channels)):
            planes = float_of_pcm16(data[: 2 * self.channels * n_samples]).reshape(-1, self.channels)
            listener(np.abs(planes).max(axis=1))

    def mix_pcm16(self, data: bytes) -> bytes:
        """Mix cues into int16 little-endian samples, channels interleaved; an incomplete last sample is not changed."""
        n_whole = len(data) - len(data) % (2 * self.channels)
        whole, rest = data[:n_whole], data[n_whole:]
        if self.channels == 1:
            return self._mixers[0].mix_pcm16(whole) + rest
        planes: NDArray[np.int16] = np.frombuffer(whole, dtype="<i2").reshape(-1, self.channels)
        mixed = [
            np.frombuffer(mixer.mix_pcm16(planes[:, n].tobytes()), dtype="<i2") for n, mixer in enumerate(self._mixers)
        ]
        return np.stack(mixed, axis=1).tobytes() + rest


class _Lockstep:
    """Several mixers with the interface of one: each call goes to all."""

    def __init__(self, mixers: list[Mixer]) -> None:
        self._mixers = mixers
        self.sample_rate = mixers[0].sample_rate
        self.listener: Callable[[NDArray[np.float32]], None] | None = None

    @property
    def position(self) -> int:
        return self._mixers[0].position

    @property
    def active(self) -> bool:
        return any(mixer.active for mixer in self._mixers)

    def play(self, *arguments: Any, **options: Any) -> _LockstepVoice:
        return _LockstepVoice([mixer.play(*arguments, **options) for mixer in self._mixers])

    def observe(self, listener: Callable[[NDArray[np.float32]], None] | None) -> None:
        self.listener = listener

    def release(self, fade_ms: float = 30.0) -> None:
        for mixer in self._mixers:
            mixer.release(fade_ms)

    def resume(self) -> None:
        for mixer in self._mixers:
            mixer.resume()

    def close(self) -> None:
        for mixer in self._mixers:
            mixer.close()


class _LockstepVoice:
    def __init__(self, voices: list[Voice]) -> None:
        self._voices = voices

    @property
    def done(self) -> bool:
        return all(voice.done for voice in self._voices)

    @property
    def onset(self) -> int | None:
        return self._voices[0].onset

    @property
    def gain_db(self) -> float:
        return self._voices[0].gain_db

    @gain_db.setter
    def gain_db(self, gain_db: float) -> None:
        for voice in self._voices:
            voice.gain_db = gain_db

    def stop(self, fade_ms: float = 10.0) -> None:
        for voice in self._voices:
            voice.stop(fade_ms)
