"""Mixer and router of one session, for any number of channels."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import cues
from cues import Cue
from cues.errors import CueTypeError
from cues.signal.pcm import float_of_pcm16
from stream.readers.options import Tools
from stream.routing.router import DEFAULT_RULES, CueRouter
from stream.routing.rules import CueRules, Limits
from stream.routing.tool_times import ToolTimes

__all__ = ["CueOptions", "PipelineCues", "check_options"]

logger = logging.getLogger(__name__)


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
    times : ToolTimes or None
        As in `stream.CueRouter`.
    """

    bank: Mapping[str, Cue] | None
    rules: CueRules | None
    tools: Tools
    limits: Limits | None
    times: ToolTimes | None


def check_options(options: Mapping[str, Any], kind: type[CueOptions]) -> None:
    """Raise `CueTypeError` if an adapter was given an option that it does not have."""
    known = kind.__annotations__  # those that it inherits, too
    for name in options:
        if name not in known:
            raise CueTypeError(f"{name} is no option of this adapter; its cue options are {', '.join(known)}")


class PipelineCues:
    """A mixer, for any number of interleaved channels, and its router.

    `now_s` is a clock, seconds, for pipelines that do not mix all the time. If the mixer gets not all speech, or more
    than that, set `hears` to False and pass the speech to `hear` before each frame.
    """

    def __init__(
        self,
        options: CueOptions,
        *,
        sample_rate: int,
        channels: int = 1,
        now_s: Callable[[], float] | None = None,
        hears: bool = True,
    ) -> None:
        bank = options.get("bank")
        self.channels, self._is_built_in, self._hears = channels, bank is None, hears
        self._set_up(sample_rate)
        self.router = CueRouter(
            cues.load_bank(sample_rate=sample_rate) if bank is None else bank,
            self.mixer,
            rules=options.get("rules") or DEFAULT_RULES,
            tools=options.get("tools"),
            now_samples=None if now_s is None else lambda: round(now_s() * self.sample_rate),
            limits=options.get("limits") or Limits(),
            times=options.get("times"),
        )

    def retune(self, sample_rate: int) -> None:
        """Change the sample rate and keep the router."""
        if sample_rate == self.sample_rate:
            return
        self._set_up(sample_rate)
        self.router.use_mixer(self.mixer, cues.load_bank(sample_rate=sample_rate) if self._is_built_in else None)

    def _set_up(self, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        self.mixer = cues.Mixer(sample_rate, channels=self.channels)
        if not self._hears:
            self.hear(b"")

    def poll(self) -> None:
        """After each frame: publish the cues that have started, and fail a turn that is beyond its limits."""
        self.router.poll()
        if (failed := self.router.overdue()) is not None:
            logger.warning("%s", failed)
            self.router.handle(failed)

    def hear(self, data: bytes) -> None:
        """Take the speech of the next frame: whole int16 little-endian samples, channels interleaved."""
        speech = float_of_pcm16(data)
        self.mixer.hear(speech if self.channels == 1 else speech.reshape(-1, self.channels))
