"""Random commands from several threads while one mixes, and the same commands again on other frames.

Each command is written down with its sample as the mixer takes it, so a second mixer can get the same.
"""

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

import cues
from cues.mixing.voice import Playback
from tests.support.listening import new_clicks
from tests.support.mixing_scripts import random_command, soft_cues
from tests.support.threads import run_together

FRAME = 480
MOST_BEND = 6.5e-4
OPTIONS = {"voices": 3}


@dataclass(frozen=True, slots=True)
class Command:
    """A command as the mixer took it: the scheduler's method, its arguments, and a voice's gain by then."""

    name: str
    arguments: tuple[Any, ...]
    gain: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Commands that the mixer took at a sample; `late` if its voices of that sample had begun by then."""

    at: int
    late: bool
    commands: list[Command]


class Logged(list):
    """An inbox that writes down what is taken from it, and at which sample."""

    def __init__(self, mixer):
        super().__init__()
        self._mixer = mixer
        self.log = []

    def __getitem__(self, part):
        taken = super().__getitem__(part)
        commands = [Command(c.__name__, arguments, _gain(arguments)) for c, arguments in taken]
        late = self._mixer._scheduler._planned_at == self._mixer.position
        self.log.append(Batch(self._mixer.position, late, commands))
        return taken


def _gain(arguments):
    return arguments[0].gain if arguments and isinstance(arguments[0], Playback) else 0.0


@dataclass
class Storm:
    """One run: the output, the commands with their samples, the mixer, and how many cues were played."""

    out: np.ndarray
    log: list[Batch]
    mixer: cues.Mixer
    voices: list[cues.Voice]

    @property
    def onsets(self):
        """Onset of each voice, in the order in which the mixer took them."""
        return [c.arguments[0].onset for batch in self.log for c in batch.commands if c.name == "schedule"]


def storm(talk, n_events, n_threads, seed):
    """Mix `talk` in frames of 20 ms while threads give `n_events` commands, spread over it."""
    mixer, bank = cues.Mixer(**OPTIONS), soft_cues()
    inbox = mixer._scheduler._inbox = Logged(mixer)
    played = [[] for _ in range(n_threads)]
    given = [0] * n_threads
    apart = len(talk) // (n_events // n_threads)  # samples from one command of a thread to its next

    changed, out = threading.Condition(), []

    def give(number):
        rng = np.random.default_rng([seed, number])
        try:
            for k in range(n_events // n_threads):
                with changed:
                    changed.wait_for(lambda k=k: mixer.position >= k * apart - FRAME)
                random_command(rng, bank)(mixer, played[number])
                note(number, k + 1)
        finally:
            note(number, n_events)

    def note(number, n_given):
        with changed:
            given[number] = n_given
            changed.notify_all()

    def mix():
        for k in range(0, len(talk), FRAME):
            # A thread may be a few commands late and not more: neither side leaves the other behind.
            with changed:
                changed.wait_for(lambda k=k: min(given) * apart >= k - 4 * apart)
            out.append(np.array(mixer.mix(talk[k : k + FRAME])))
            with changed:
                changed.notify_all()

    run_together(mix, *(lambda number=number: give(number) for number in range(n_threads)))
    mixer.release()
    out.append(mixer.silence(9600))
    return Storm(np.concatenate(out), inbox.log, mixer, [voice for voices in played for voice in voices])


def again(first, speech, cut, *, silent=False):
    """The same commands at the same samples on other frames; with `silent` for cues of zeros."""
    mixer = cues.Mixer(**OPTIONS)
    talk = np.zeros(len(first.out), dtype=np.float32)
    talk[: len(speech)] = speech
    twins = {}
    inbox = mixer._scheduler._inbox = Logged(mixer)
    out = []
    for batch in [*first.log, Batch(len(talk), late=False, commands=[])]:
        while mixer.position < batch.at:
            n = min(batch.at - mixer.position, cut())
            out.append(np.array(mixer.mix(talk[mixer.position : mixer.position + n])))
        if batch.late:
            mixer._scheduler.plan()
        for command in batch.commands:
            arguments = [_twin(a, command.gain, mixer, twins, silent=silent) for a in command.arguments]
            mixer._scheduler.post(getattr(mixer._scheduler, command.name), *arguments)
    return Storm(np.concatenate(out), inbox.log, mixer, list(twins.values()))


def _twin(thing, gain, mixer, twins, *, silent):
    """The other mixer's voice as it was when the mixer took it; anything else as it is."""
    if not isinstance(thing, Playback):
        return thing
    if id(thing) not in twins:
        cue = cues.Cue(name="silent", samples=np.zeros(len(thing.cue.samples))) if silent else thing.cue
        voice = mixer.play(cue, at=thing.at, loop=thing.original[1], priority=thing.priority, placement=thing.placement)
        mixer._scheduler._inbox.pop()
        twins[id(thing)] = voice
        voice._playback.gain = gain
    return twins[id(thing)]._playback


def faults_of(first, talk):
    """Each rule that a storm broke: clicks, lost voices, a gain that bends too sharply."""
    faults = []
    speech = np.zeros(len(first.out), dtype=np.float32)
    speech[: len(talk)] = talk
    clicks = new_clicks(first.out, speech)
    if clicks:
        faults.append(f"clicks at {clicks}")
    if len(first.onsets) != len(first.voices) or not all(voice.done for voice in first.voices) or first.mixer.active:
        faults.append(f"{len(first.voices)} cues played, {len(first.onsets)} taken, {first.mixer}")
    if first.mixer.stats.started != sum(onset is not None for onset in first.onsets):
        faults.append(f"started: {first.mixer.stats}")
    # The speech's gain, read from a constant: no click detector is needed for it.
    level = np.full(len(first.out), 0.5, dtype=np.float32)
    gain = again(first, level, lambda: 480, silent=True).out / 0.5
    bend = np.abs(np.diff(gain.astype(np.float64), 2)).max()
    if bend > MOST_BEND:
        faults.append(f"the speech's gain bends by {bend:.1e} per sample²")
    return faults
