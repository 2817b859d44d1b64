"""The same minute of a conversation in each profile, for the sound board: the real router and mixer, in no time."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

import cues
from cues.cue import Cue
from cues.meters.telephone import RATE_HZ
from cues.show.board import Minute
from stream.events import TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.router import CueRouter
from stream.routing.rules import PROFILES, CueRules

__all__ = ["minute"]

_LASTS_S = 60
_FRAME = RATE_HZ // 50
_VOICE_S = 0.3
_TURNS = (
    # When the question ends, and seconds until the calls and the answer: name, how long it takes, whether it fails.
    (0.0, 0.8, (("calendar", 0.3, False),)),
    (7.0, 0.8, (("calendar", 0.3, False), ("search", 5.0, False))),
    (21.0, 0.8, (("search", 4.0, False), ("search", 6.0, True))),
    (40.0, 0.8, (("calendar", 0.2, False),)),
    (47.0, 7.0, ()),
)


def _steps() -> tuple[dict[int, list[Callable[[CueRouter], object]]], list[int]]:
    """The router's events by frame, and the frames in which an answer begins."""
    steps: dict[int, list[Callable[[CueRouter], object]]] = {}
    begins: list[int] = []

    def at(seconds: float, *calls: Callable[[CueRouter], object]) -> None:
        steps.setdefault(round(seconds * 50), []).extend(calls)

    for number, (asked_s, think_s, calls) in enumerate(_TURNS):
        at(asked_s, lambda router: router.begin_turn())
        now_s = asked_s + think_s
        for ordinal, (name, takes_s, fails) in enumerate(calls):
            which = name, f"{number}.{ordinal}"
            at(now_s, lambda router, w=which: [router.handle(ToolCallStart(*w)), router.handle(ToolCallEnd(*w))])  # type: ignore[misc]
            now_s += takes_s
            result = ToolResult(tool_name=name, tool_call_id=which[1], is_error=fails, content="")
            at(now_s, lambda router, result=result: router.handle(result))  # type: ignore[misc]
            now_s += 0.6
        at(now_s, lambda router: router.handle(TextDelta("It is.")))
        begins.append(round((now_s + _VOICE_S) * 50))
    return steps, begins


def minute(bank: Mapping[str, Cue], speech: NDArray[np.float32]) -> Minute:
    """The minute with `speech` as each answer; both at the telephone's rate."""
    steps, begins = _steps()
    said = np.zeros(_LASTS_S * RATE_HZ, dtype=np.float32)
    for frame in begins:
        part = said[frame * _FRAME :][: len(speech)]
        part[:] = speech[: len(part)]
    mixes, counts = {}, {}
    for profile in PROFILES:
        mixer = cues.Mixer(RATE_HZ)
        router = CueRouter(bank, mixer, rules=CueRules(profile=profile))
        frames = []
        for number in range(_LASTS_S * 50):
            for step in steps.get(number, ()):
                step(router)
            frames.append(np.array(mixer.mix(said[number * _FRAME :][:_FRAME])))
            router.poll()
        mixes[profile], counts[profile] = np.concatenate(frames), len(router.spans)
    return Minute(said, RATE_HZ, mixes, counts)
