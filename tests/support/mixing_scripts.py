"""Sessions to replay: the same speech and the same commands at the same samples, cut into frames in different ways."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import cues

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

RATE = 24000


def tone(n_samples: int = 3600, hz: float = 660.0, peak: float = 0.2, rate: int = RATE) -> cues.Cue:
    """A cue with 10 ms edges of its own."""
    t = np.arange(n_samples) / rate
    edge = np.minimum(1.0, np.minimum(np.arange(n_samples), np.arange(n_samples)[::-1]) / (0.01 * rate))
    shaped = peak * np.sin(2 * np.pi * hz * t) * (0.5 - 0.5 * np.cos(np.pi * edge))
    return cues.Cue(name=f"tone {hz:g}", samples=shaped, sample_rate=rate)


def noise_cue(n_samples: int = 2400, peak: float = 0.1, seed: int = 0) -> cues.Cue:
    """A cue whose edges are as loud as the rest of it."""
    return cues.Cue(name="noise", samples=peak * np.random.default_rng(seed).uniform(-1, 1, n_samples))


def speech(n_samples: int, seed: int = 0, peak: float = 0.5) -> NDArray[np.float32]:
    """Something like a voice: a gliding harmonic sound in syllables, with pauses."""
    if n_samples < RATE:
        return speech(RATE, seed, peak)[:n_samples]
    rng = np.random.default_rng(seed)
    t = np.arange(n_samples) / RATE
    phase = 2 * np.pi * np.cumsum(120 + 25 * np.sin(2 * np.pi * 0.7 * t + rng.uniform(0, 6))) / RATE
    voice = sum(np.sin(k * phase + rng.uniform(0, 6)) / k for k in range(1, 12))
    syllables = np.clip(np.sin(2 * np.pi * 3.1 * t) + 0.4, 0, 1) * (np.sin(2 * np.pi * 0.6 * t + 1) > -0.6)
    envelope = np.convolve(syllables, np.hanning(481) / np.hanning(481).sum(), mode="same")
    sound = voice * envelope + 0.002 * rng.standard_normal(n_samples)
    return (peak * sound / np.abs(sound).max()).astype(np.float32)


def zeros(n_samples: int) -> NDArray[np.float32]:
    return np.zeros(n_samples, dtype=np.float32)


def run(mixer: cues.Mixer, samples: NDArray[np.float32], frame: int = 480) -> NDArray[np.float32]:
    """Output of a mixer for `samples`, frame by frame."""
    return np.concatenate([mixer.mix(samples[k : k + frame]).copy() for k in range(0, len(samples), frame)])


@dataclass
class Script:
    """Speech, and commands at absolute samples."""

    speech: NDArray[np.float32]
    commands: list[tuple[int, Callable[[cues.Mixer, list[cues.Voice]], Any]]]
    options: dict[str, Any] = field(default_factory=dict)

    def run(
        self, frame_samples: Callable[[], int], mixer: cues.Mixer | None = None
    ) -> tuple[NDArray[np.float32], cues.Mixer]:
        """The output, and the mixer in its last state."""
        mixer = mixer or cues.Mixer(**self.options)
        voices: list[cues.Voice] = []
        out = []
        position = 0
        commands = sorted(self.commands, key=lambda entry: entry[0])
        for stop, command in [*commands, (len(self.speech), None)]:
            while position < stop:
                n = min(stop - position, max(1, frame_samples()))
                out.append(np.array(mixer.mix(self.speech[position : position + n])))
                position += n
            if command is not None:
                command(mixer, voices)
        return np.concatenate(out), mixer


def random_script(seed: int, n_samples: int = 24000, n_commands: int = 30, **options: Any) -> Script:
    """A session in which anything may happen at any time."""
    rng = np.random.default_rng(seed)
    sounds = [tone(), tone(900, 880.0), noise_cue(seed=seed), tone(4410, 440.0, rate=44100)]
    commands = [(int(rng.integers(0, n_samples)), _command(rng, sounds)) for _ in range(n_commands)]
    return Script(speech(n_samples, seed), commands, options)


def _command(rng: np.random.Generator, sounds: list[cues.Cue]) -> Callable[[cues.Mixer, list[cues.Voice]], Any]:
    kind = rng.choice(["play", "play", "play", "schedule", "stop", "gain", "release", "resume"])
    cue = sounds[rng.integers(len(sounds))]
    ahead, fade, gain_db = int(rng.integers(-2000, 6000)), float(rng.uniform(0, 60)), float(rng.uniform(-20, 3))
    loop, priority = bool(rng.random() < 0.15), int(rng.integers(0, 3))
    placement = str(rng.choice(["overlay", "overlay", "replace", "in_pause"]))
    which = int(rng.integers(1 << 30))

    def play(mixer: cues.Mixer, voices: list[cues.Voice]) -> None:
        at = mixer.position + ahead if kind == "schedule" else None
        voices.append(mixer.play(cue, at=at, gain_db=gain_db, loop=loop, priority=priority, placement=placement))

    def change(mixer: cues.Mixer, voices: list[cues.Voice]) -> None:
        if voices and kind == "stop":
            voices[which % len(voices)].stop(fade_ms=fade)
        elif voices and kind == "gain":
            voices[which % len(voices)].gain_db = gain_db
        elif kind == "release":
            mixer.release(fade_ms=fade)
        else:
            mixer.resume()

    return play if kind in {"play", "schedule"} else change


def clickless_script(seed: int, n_events: int, spacing: int = 1200) -> Script:
    """Speech, and starts, stops, changes of gain, releases and resumes of cues that have no clicks of their own."""
    rng = np.random.default_rng(seed)
    minute = 0.6 * speech(60 * RATE, seed=3)
    talk = np.resize(minute, n_events * spacing)
    kinds = [_play, _play, _play, _play, _play, _stop, _gain, _release, _resume]
    commands = [
        (int(at), functools.partial(kinds[rng.integers(len(kinds))], rng, _clickless_cues()))
        for at in rng.integers(0, len(talk), n_events)
    ]
    return Script(talk, commands, {"voices": 2})


@functools.cache
def _clickless_cues() -> list[cues.Cue]:
    t = np.arange(9000) / RATE
    hum = 0.15 * np.sin(2 * np.pi * 523.25 * t) + 0.05 * np.sin(2 * np.pi * 1046.5 * t + 1)
    return [tone(9000), tone(3600, 880.0), tone(5000, 440.0), cues.Cue(name="hum", samples=hum)]


def _play(rng: np.random.Generator, sounds: list[cues.Cue], mixer: cues.Mixer, voices: list[cues.Voice]) -> None:
    placement = str(rng.choice(["overlay", "overlay", "replace", "in_pause"]))
    cue = sounds[rng.integers(len(sounds))]
    voices.append(mixer.play(cue, gain_db=float(rng.uniform(-12, 3)), placement=placement, loop=rng.random() < 0.1))


def _stop(rng: np.random.Generator, _sounds: list[cues.Cue], _mixer: cues.Mixer, voices: list[cues.Voice]) -> None:
    if voices:
        voices[rng.integers(max(0, len(voices) - 8), len(voices))].stop(fade_ms=float(rng.uniform(0, 40)))


def _gain(rng: np.random.Generator, _sounds: list[cues.Cue], _mixer: cues.Mixer, voices: list[cues.Voice]) -> None:
    if voices:
        voices[-1].gain_db = float(rng.uniform(-20, 3))


def _release(rng: np.random.Generator, _sounds: list[cues.Cue], mixer: cues.Mixer, _voices: list[cues.Voice]) -> None:
    mixer.release(fade_ms=float(rng.uniform(0, 60)))


def _resume(_rng: np.random.Generator, _sounds: list[cues.Cue], mixer: cues.Mixer, _voices: list[cues.Voice]) -> None:
    mixer.resume()
