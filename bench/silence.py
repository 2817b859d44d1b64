"""Silence and sounds of each policy on the same 10,000 turns: `python -m bench.silence [--json | --write]`.

A trace is a conversation of 20 turns: tools that take 50 ms to 40 s (log-normal, each tool with a pace of its own), one
call in twenty fails, up to three calls in a chain, a remark before some calls, voices that start late, models that
think too long. The real router and the real mixer play it on a virtual clock, at 8 kHz; the other policies are written
down as their documents describe them. The speech is the same under all of them.

A loop is one sound, from its start to its end, whatever it plays. Silence is what has neither speech nor sound, from
the question to the first word of the answer; only what goes beyond 1.5 s in one piece counts.
`--write` draws the picture and prints its points.
"""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import cues
import stream
from bench.goals import Figure, at_most, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stream.routing.spans import Span

RATE = 8000
SESSIONS, TURNS = 500, 20
FIRST = 5
"""Turns before which little is learned."""
PAUSE_S, SIGN_S = 1.5, 2.0
STEP_S = 0.02
BEEP_S = 0.2
FADE_S = 0.05
PICTURE = Path(__file__).resolve().parent / "silence.png"


class Stretch(NamedTuple):
    """A stretch of time, seconds."""

    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn in time: its question's end, events, speech and calls; the last stretch of speech is the answer."""

    asked_s: float
    ends_s: float
    events: tuple[tuple[float, stream.Event], ...]
    speech: tuple[Stretch, ...]
    calls: tuple[Stretch, ...]

    @property
    def answered_s(self) -> float:
        """When the answer's first word is heard."""
        return self.speech[-1].start_s


@dataclass(slots=True)
class Drawn:
    """Draws the turns of a session; each tool keeps its own pace."""

    random: np.random.Generator
    now_s: float = 0.0
    paces_s: list[float] = field(default_factory=list)
    events: list[tuple[float, stream.Event]] = field(default_factory=list)
    speech: list[Stretch] = field(default_factory=list)
    calls: list[Stretch] = field(default_factory=list)
    n_calls: int = 0

    def __post_init__(self) -> None:
        self.paces_s = [self._about(1.5, 1.2) for _ in range(8)]

    def _about(self, median_s: float, sigma: float, most_s: float = 40.0) -> float:
        return float(np.clip(median_s * np.exp(sigma * self.random.standard_normal()), 0.05, most_s))

    def _says(self, length_s: float) -> None:
        """Text now, its speech a little later, or much later, one time in twenty."""
        self.events.append((self.now_s, stream.TextDelta("a" * round(15 * length_s))))
        late_s = self.random.uniform(2.0, 4.0) if self.random.random() < 0.05 else self._about(0.3, 0.4)
        start_s = max(self.now_s + late_s, self.speech[-1].end_s if self.speech else 0.0)
        self.speech.append(Stretch(start_s, start_s + length_s))

    def _call(self) -> None:
        tool = int(self.random.choice(len(self.paces_s), p=_SHARES))
        which = {"tool_name": f"tool_{tool}", "tool_call_id": f"call_{self.n_calls}"}
        self.n_calls += 1
        began_s = self.now_s
        self.events += [(self.now_s, stream.ToolCallStart(**which)), (self.now_s, stream.ToolCallEnd(**which))]
        self.events.append((self.now_s, stream.Finish("tool_calls")))
        self.now_s += self._about(self.paces_s[tool], 0.4)
        failed = bool(self.random.random() < 0.05)
        self.events.append((self.now_s, stream.ToolResult(**which, is_error=failed, content="")))
        self.calls.append(Stretch(began_s, self.now_s))

    def turn(self) -> Turn:
        """The next turn."""
        asked_s = self.now_s
        self.events, self.speech, self.calls = [], [], []
        thinks_long = self.random.random() < 0.03
        self.now_s += self.random.uniform(5.0, 20.0) if thinks_long else self._about(0.7, 0.4)
        for number in range(int(self.random.choice(4, p=(0.2, 0.5, 0.2, 0.1)))):
            if number:
                self.now_s += self._about(0.7, 0.4)
            if self.random.random() < 0.3:
                self._says(self.random.uniform(0.8, 2.5))
                self.now_s += 0.1
            self._call()
        if self.calls:
            self.now_s += self._about(0.7, 0.4)
        self._says(self.random.uniform(2.0, 6.0))
        self.events.append((self.now_s, stream.Finish("stop")))
        self.now_s = self.speech[-1].end_s + self.random.uniform(2.0, 6.0)  # the user speaks
        return Turn(asked_s, self.now_s, tuple(self.events), tuple(self.speech), tuple(self.calls))


_SHARES = np.array([8, 7, 6, 5, 4, 3, 2, 1]) / 36.0  # Some tools are called more often than others.


def traces(n_sessions: int) -> list[list[Turn]]:
    """The turns of each session, the same for all policies."""
    drawn = [Drawn(np.random.default_rng((26, number))) for number in range(n_sessions)]
    return [[one.turn() for _ in range(TURNS)] for one in drawn]


# The policies: from the turns of a session to the stretches in which something sounds.


def no_sound(_turns: Sequence[Turn]) -> list[Stretch]:
    return []


def beep_for_each_call(turns: Sequence[Turn]) -> list[Stretch]:
    return [Stretch(call.start_s, call.start_s + BEEP_S) for turn in turns for call in turn.calls]


def _words_end(turn: Turn, call: Stretch) -> float | None:
    """The end of the words that were said just before a call."""
    ends = [
        said.end_s
        for said, (at_s, _) in zip(turn.speech, _texts(turn), strict=True)
        if 0.0 <= call.start_s - at_s <= 0.2
    ]
    return ends[-1] if ends else None


def _texts(turn: Turn) -> list[tuple[float, stream.Event]]:
    return [event for event in turn.events if isinstance(event[1], stream.TextDelta)]


def elevenlabs_auto(turns: Sequence[Turn]) -> list[Stretch]:
    """`tool_call_sound_behavior="auto"`: the sound plays while a tool runs, if words were said before the call."""
    spoken = [(call, _words_end(turn, call) or call.end_s) for turn in turns for call in turn.calls]
    return [Stretch(max(call.start_s, end_s), call.end_s) for call, end_s in spoken if end_s < call.end_s]


def elevenlabs_always(turns: Sequence[Turn]) -> list[Stretch]:
    """`"always"`: the same sound for every call."""
    return [Stretch(*call) for turn in turns for call in turn.calls]


def livekit_idle(delay_s: float, interval_s: float | None) -> Callable[[Sequence[Turn]], list[Stretch]]:
    """`RunContext.with_filler(delay, interval)`: words, once the session was idle for so long while the tool runs.

    LiveKit queues its speech, so an answer waits for filler words. Here both keep their times, as under the other
    policies: words that it would say one after the other count as over words.
    """

    def policy(turns: Sequence[Turn]) -> list[Stretch]:
        said: list[Stretch] = []
        for turn in turns:
            for call in turn.calls:
                at_s = call.start_s
                while True:
                    busy = [one.end_s for one in turn.speech if one.start_s <= at_s + delay_s and one.end_s > at_s]
                    if busy:
                        at_s = max(busy)
                        continue
                    at_s += delay_s
                    if at_s >= call.end_s:
                        break
                    said.append(Stretch(at_s + 0.3, at_s + 1.5))
                    if interval_s is None:
                        break
                    at_s = max(at_s + interval_s, said[-1].end_s)
        return said

    return policy


@cache
def _bank() -> cues.Bank:
    return cues.load_bank(sample_rate=RATE)


def ours(profile: str) -> Callable[[Sequence[Turn]], list[Stretch]]:
    """The router and the mixer, with a profile."""

    def policy(turns: Sequence[Turn]) -> list[Stretch]:
        mixer = cues.Mixer(RATE)
        router = stream.CueRouter(_bank(), mixer, rules=stream.CueRules(profile=profile), limits=stream.Limits())
        spans: dict[int, Span] = {}
        router.spans.subscribe(lambda span: spans.__setitem__(span.number, span))
        for turn in turns:
            _play(turn, mixer, router)
        ends_s = mixer.position / RATE
        found = [(one.start_s, ends_s if one.end_s is None else one.end_s) for one in spans.values()]
        return sorted(Stretch(start_s, end_s) for start_s, end_s in found if start_s < min(end_s, ends_s))

    return policy


_SPEECH = np.full(30 * RATE, 0.1, dtype=np.float32)
_SILENCE = np.zeros(30 * RATE, dtype=np.float32)


def _play(turn: Turn, mixer: cues.Mixer, router: stream.CueRouter) -> None:
    """Play a turn: its events at their samples, its speech as it is heard."""
    steps: list[tuple[float, Callable[[], object]]] = [(turn.asked_s, router.begin_turn)]
    steps += [(at_s, lambda event=event: router.handle(event)) for at_s, event in turn.events]  # type: ignore[misc]
    for said in turn.speech:
        steps.append((said.start_s, lambda said=said: router.speech(round(said.end_s * RATE))))  # type: ignore[misc]
    for at_s, step in [*sorted(steps, key=lambda step: step[0]), (turn.ends_s, router.poll)]:
        _pass(turn.speech, mixer, router, round(at_s * RATE))
        step()


def _pass(speech: Sequence[Stretch], mixer: cues.Mixer, router: stream.CueRouter, until: int) -> None:
    """Mix up to a sample; frames end where speech begins or ends."""
    edges = sorted(round(edge * RATE) for said in speech for edge in said)
    while (now := mixer.position) < until:
        end = min([until, now + round(STEP_S * RATE), *(edge for edge in edges if edge > now)])
        speaks = sum(edge <= now for edge in edges) % 2
        mixer.mix((_SPEECH if speaks else _SILENCE)[: end - now])
        router.poll()


# The figures.


@dataclass(slots=True)
class Score:
    """The outcome of a policy on some turns."""

    silence_s: float  # over 1.5 s in one piece, a turn
    sounds: float  # a minute of conversation
    over_words: float  # sounds that overlap words, a minute
    unsigned: float  # share of the waits over 2 s that had no sign within 2 s


_COLUMNS = [column.name for column in fields(Score)]


def score(turns: Sequence[Turn], sounds: Sequence[Stretch]) -> Score:
    """The score of a policy on the turns of all sessions; `sounds` are those of these turns."""
    silence_s, waits, unsigned, over_words = 0.0, 0, 0, 0
    place = 0
    for turn in turns:
        heard = []
        while place < len(sounds) and sounds[place].start_s < turn.ends_s:
            heard.append(sounds[place])
            place += 1
        over_words += sum(_overlaps(sound, turn.speech) for sound in heard)
        silence_s += _silence(turn, [*heard, *turn.speech])
        for wait in _waits(turn):
            waits += 1
            limit_s = wait.start_s + SIGN_S
            unsigned += not any(sound.start_s <= limit_s and sound.end_s > wait.start_s for sound in heard)
    minutes = sum(turn.ends_s - turn.asked_s for turn in turns) / 60.0
    return Score(silence_s / len(turns), len(sounds) / minutes, over_words / minutes, unsigned / max(waits, 1))


def _overlaps(sound: Stretch, speech: Sequence[Stretch]) -> bool:
    return any(min(sound.end_s, said.end_s) - max(sound.start_s, said.start_s) > FADE_S for said in speech)


def _silence(turn: Turn, heard: list[Stretch]) -> float:
    """Silence beyond 1.5 s, from the question to the first word of the answer."""
    total_s, at_s = 0.0, turn.asked_s
    for sound in sorted(heard):
        if sound.start_s > turn.answered_s:
            break
        total_s += max(sound.start_s - at_s - PAUSE_S, 0.0)
        at_s = max(at_s, sound.end_s)
    return total_s


def _waits(turn: Turn) -> list[Stretch]:
    """The stretches over 2 s without speech."""
    ends = [turn.asked_s, *(said.end_s for said in turn.speech[:-1])]
    both = [Stretch(end_s, said.start_s) for end_s, said in zip(ends, turn.speech, strict=True)]
    return [wait for wait in both if wait.end_s - wait.start_s > SIGN_S]


POLICIES: dict[str, Callable[[Sequence[Turn]], list[Stretch]]] = {
    "none": no_sound,
    "every call": beep_for_each_call,
    "ElevenLabs auto": elevenlabs_auto,
    "ElevenLabs always": elevenlabs_always,
    "LiveKit idle 0 s": livekit_idle(0.0, None),
    "LiveKit idle 2 s, every 5 s": livekit_idle(2.0, 5.0),
    "full": ours("full"),
    "normal": ours("normal"),
    "minimal": ours("minimal"),
}


def _scores(turns: Sequence[Turn]) -> dict[str, list[tuple[float, Score]]]:
    """Each policy's score in one session, on all turns and on the first five, with the minutes they last."""
    found = {}
    for name, policy in POLICIES.items():
        sounds = policy(turns)
        found[name] = [_weighed(turns[:n], sounds) for n in (TURNS, FIRST)]
    return found


def _weighed(turns: Sequence[Turn], sounds: Sequence[Stretch]) -> tuple[float, Score]:
    ends_s = turns[-1].ends_s
    return ends_s - turns[0].asked_s, score(turns, [sound for sound in sounds if sound.start_s < ends_s])


def scores(n_sessions: int = SESSIONS) -> dict[str, tuple[Score, Score]]:
    """Each policy's score on all turns, and on the first five of each session."""
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"), initializer=cues.warm_up) as pool:
        sessions = list(pool.map(_scores, traces(n_sessions), chunksize=10))
    found = {}
    for name in POLICIES:
        each = []
        for part in (0, 1):
            values = np.array([astuple(session[name][part][1]) for session in sessions])
            lasts_s = np.array([session[name][part][0] for session in sessions])
            # A session has the same number of turns as any other, but not of minutes.
            weights = np.stack([np.ones(n_sessions), lasts_s, lasts_s, np.ones(n_sessions)], axis=1)
            each.append(Score(*np.average(values, axis=0, weights=weights).tolist()))
        found[name] = (each[0], each[1])
    return found


def figures() -> Iterator[Figure]:
    """The profiles beside `full`, and the other policies beside the profiles."""
    found = scores()
    for part, when in enumerate(("all turns", "first five turns")):
        full = found["full"][part]
        for profile, silence, sounds in (("normal", 1.1, 0.6), ("minimal", 1.5, 0.3)):
            one = found[profile][part]
            yield at_most("Q1", f"{profile}: silence, of full's, {when}", one.silence_s / full.silence_s, silence)
            yield at_most("Q1", f"{profile}: sounds, of full's, {when}", one.sounds / full.sounds, sounds)
    below = [name for name in found if all(_is_below(found[name][0], found[one][0]) for one in ("normal", "minimal"))]
    yield at_most("Q1", "others with less silence and fewer sounds than both", len(below), 0, unit="")


def table(found: dict[str, tuple[Score, Score]]) -> str:
    """The points of the picture as Markdown: on all turns, and in brackets on the first five."""
    lines = [
        "| policy | silence over 1.5 s, a turn | sounds a minute | over words | waits over 2 s, no sign in 2 s |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, pair in found.items():
        cells = [
            " (".join(text.format(getattr(one, column)) for one in pair) + ")"
            for column, text in zip(_COLUMNS, ("{:.2f} s", "{:.1f}", "{:.2f}", "{:.0%}"), strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _is_below(one: Score, other: Score) -> bool:
    return one.silence_s < other.silence_s and one.sounds < other.sounds


def draw(found: dict[str, tuple[Score, Score]], path: Path) -> None:
    """Silence against sounds, each policy a point; the hollow one is of the first five turns."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for name, (one, first) in found.items():
        color = "#0072b2" if name in ("full", "normal", "minimal") else "#d55e00"
        axes.plot([one.sounds, first.sounds], [one.silence_s, first.silence_s], color=color, linewidth=0.8)
        axes.plot(one.sounds, one.silence_s, "o", color=color)
        axes.plot(first.sounds, first.silence_s, "o", color=color, fillstyle="none")
        axes.annotate(name, (one.sounds, one.silence_s), xytext=(6, 5), textcoords="offset points", fontsize=9)
    axes.set_xlabel("sounds a minute")
    axes.set_ylabel("silence over 1.5 s, seconds a turn")
    axes.set_xlim(-0.4)
    axes.set_ylim(0.0)
    axes.grid(alpha=0.2)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        measured = scores()
        draw(measured, PICTURE)
        print(table(measured))
    else:
        sys.exit(run(__doc__, figures))
