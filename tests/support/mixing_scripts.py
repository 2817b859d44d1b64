"""Sessions to replay: the same speech and the same commands at the same samples, cut into frames in different ways."""

from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

import cues
from cues.mixing.backends import selection
from cues.mixing.warmup import load_kernels

RATE = 24000


@contextmanager
def mixing_with(kind):
    """The "numpy" loops, or the "compiled" ones."""
    before = selection.kernels()
    selection.install(load_kernels() if kind == "compiled" else None)
    try:
        yield
    finally:
        selection.install(before)


def tone(n_samples=3600, hz=660.0, peak=0.2, rate=RATE):
    """A cue with 10 ms edges of its own."""
    t = np.arange(n_samples) / rate
    edge = np.minimum(1.0, np.minimum(np.arange(n_samples), np.arange(n_samples)[::-1]) / (0.01 * rate))
    shaped = peak * np.sin(2 * np.pi * hz * t) * (0.5 - 0.5 * np.cos(np.pi * edge))
    return cues.Cue(name=f"tone {hz:g}", samples=shaped, sample_rate=rate)


def noise_cue(n_samples=2400, peak=0.1, seed=0):
    """A cue whose edges are as loud as the rest of it."""
    return cues.Cue(name="noise", samples=peak * np.random.default_rng(seed).uniform(-1, 1, n_samples))


def soft_cues():
    """Cues without clicks of their own; one loops, with a silent part."""
    tick = np.zeros(6000)
    tick[:960] = tone(960, 700.0).samples
    return [tone(9000), tone(3600, 880.0), tone(5000, 440.0), cues.Cue(name="tick", samples=tick, loop=True)]


def speech(n_samples, seed=0, peak=0.5):
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


def zeros(n_samples):
    return np.zeros(n_samples, dtype=np.float32)


def run(mixer, samples, frame=480):
    """Output of a mixer for `samples`, frame by frame."""
    return np.concatenate([mixer.mix(samples[k : k + frame]).copy() for k in range(0, len(samples), frame)])


@dataclass
class Script:
    """Speech, and commands at absolute samples: (sample, function of a mixer and its voices)."""

    speech: np.ndarray
    commands: list
    options: dict = field(default_factory=dict)

    def run(self, frame_samples, mixer=None):
        """The output, and the mixer in its last state."""
        mixer, voices, out, position = mixer or cues.Mixer(**self.options), [], [], 0
        commands = sorted(self.commands, key=lambda entry: entry[0])
        for stop, command in [*commands, (len(self.speech), None)]:
            while position < stop:
                n = min(stop - position, max(1, frame_samples()))
                out.append(np.array(mixer.mix(self.speech[position : position + n])))
                position += n
            if command is not None:
                command(mixer, voices)
        return np.concatenate(out), mixer


def random_script(seed, n_samples=24000, n_commands=30, **options):
    """A session in which anything may happen at any time."""
    sounds = [tone(), tone(900, 880.0), noise_cue(seed=seed), tone(4410, 440.0, rate=44100)]
    return _script(speech(n_samples, seed), seed, n_commands, sounds, options)


def clickless_script(seed, n_events, spacing=1200):
    """The same over speech, with cues that have no clicks of their own."""
    talk = np.resize(0.6 * speech(60 * RATE, seed=3), n_events * spacing)
    return _script(talk, seed, n_events, soft_cues(), {"voices": 2})


def _script(talk, seed, n_commands, sounds, options):
    rng = np.random.default_rng(seed)
    commands = [(int(at), random_command(rng, sounds)) for at in rng.integers(0, len(talk), n_commands)]
    return Script(talk, commands, options)


def random_command(rng, sounds):
    """A command for a mixer and its voices: a start, a stop or gain of one of the last voices, a release or resume."""
    kind = rng.choice(["play"] * 4 + ["schedule"] * 2 + ["stop"] * 2 + ["gain", "release", "resume"])
    cue, ahead, fade_ms = sounds[rng.integers(len(sounds))], int(rng.integers(-2000, 6000)), float(rng.uniform(0, 60))
    how = {"gain_db": float(rng.uniform(-20, 3)), "priority": int(rng.integers(0, 3))}
    how["loop"] = True if rng.random() < 0.1 else None
    how["placement"] = str(rng.choice(["overlay", "overlay", "replace", "in_pause"]))
    which = int(rng.integers(8))

    def command(mixer, voices):
        if kind in ("play", "schedule"):
            voices.append(mixer.play(cue, at=mixer.position + ahead if kind == "schedule" else None, **how))
        elif kind == "stop" and voices:
            voices[-1 - which % len(voices)].stop(fade_ms=fade_ms)
        elif kind == "gain" and voices:
            voices[-1 - which % len(voices)].gain_db = how["gain_db"]
        elif kind == "release":
            mixer.release(fade_ms=fade_ms)
        else:
            mixer.resume()

    return command
