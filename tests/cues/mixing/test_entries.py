"""The compiled methods: the same as the way through Python for any argument, and gone without a trace."""

from __future__ import annotations

import array
import copy
import gc
import inspect
import os
import pickle
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cues
from cues.mixing.backends import entries, selection
from cues.mixing.warmup import load_kernels
from tests.support.mixing_scripts import random_script, tone

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.usefixtures("warm")


@pytest.fixture
def warm():
    before = selection.kernels()
    selection.install(load_kernels())
    yield
    selection.install(before)


def in_a_process(*command, **environment):
    """A process of its own, because a mistake in what is tested here ends it."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, *command], env=variables, capture_output=True, text=True, timeout=120, check=False
    )


def test_any_argument_gives_the_same_as_the_way_through_python():
    """More calls, in fenced memory: `PYTHONMALLOC=debug python tests/support/mixer_fuzz.py 100000 2`."""
    done = in_a_process(str(ROOT / "tests" / "support" / "mixer_fuzz.py"), "4000", "1")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "the same by all ways" in done.stdout


def test_without_entries_the_bits_are_the_same(monkeypatch):
    for seed in range(4):
        script = random_script(seed, limiter=seed == 3)
        quick, mixer = script.run(lambda: 480)
        with monkeypatch.context() as patch:
            patch.setattr(entries, "available", lambda: False)
            plain, twin = script.run(lambda: 480)
            assert "mix" not in vars(twin)
        assert "mix" in vars(mixer)
        np.testing.assert_array_equal(quick, plain)
        assert mixer.stats == twin.stats


FEW_FRAMES = """
import hashlib, numpy as np, cues
cues.warm_up()
mixer = cues.Mixer()
mixer.play(cues.Cue(name="a", samples=0.2 * np.sin(np.arange(4800) * 0.1)))
frame, out = np.linspace(-0.5, 0.5, 480, dtype=np.float32), np.zeros(480, dtype=np.float32)
digest = hashlib.sha256()
for _ in range(20):
    digest.update(mixer.mix(frame).tobytes() + mixer.mix(frame, out).tobytes() + mixer.mix_pcm16(bytes(960)))
print(type(mixer.mix).__name__, digest.hexdigest())
"""


def test_an_environment_variable_switches_the_entries_off():
    kinds, digests = zip(
        *(in_a_process("-c", FEW_FRAMES, CUES_NO_ENTRIES=value).stdout.split() for value in ("", "1")),
        strict=True,
    )
    assert kinds == ("builtin_function_or_method", "method")
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("change", "available"),
    [
        (lambda patch: patch.undo(), True),
        (lambda patch: patch.setattr(sys, "gettotalrefcount", len, raising=False), True),
        (lambda patch: patch.setattr(sys, "byteorder", "big"), False),
        (lambda patch: patch.setattr(platform, "python_implementation", lambda: "PyPy"), False),
        (lambda patch: patch.setattr(sys, "abiflags", "t"), False),
        (lambda patch: patch.setenv("CUES_NO_ENTRIES", "1"), False),
    ],
    ids=["this interpreter", "a debug build", "another byte order", "not CPython", "no GIL", "switched off"],
)
def test_entries_are_for_cpython_with_a_gil_unless_they_are_switched_off(monkeypatch, change, available):
    monkeypatch.delenv("CUES_NO_ENTRIES", raising=False)
    change(monkeypatch)
    assert entries.available.__wrapped__() is available


class Sub(np.ndarray):
    pass


class Raw(bytes):
    __slots__ = ()


STRANGERS = {
    "a subclass": lambda: np.ones(480, dtype="f4").view(Sub),
    "a memmap": lambda: np.ones(480, dtype="f4").view(np.memmap),
    "a masked array": lambda: np.ma.ones(480, dtype="f4"),
    "big-endian": lambda: np.ones(480, dtype=">f4"),
    "float64": lambda: np.ones(480),
    "int32": lambda: np.ones(480, dtype="i4"),
    "a structure": lambda: np.ones(480, dtype=[("a", "f4")]),
    "dates": lambda: np.zeros(480, dtype="M8[s]"),
    "every other sample": lambda: np.ones(960, dtype="f4")[::2],
    "backwards": lambda: np.ones(480, dtype="f4")[::-1],
    "misaligned": lambda: np.frombuffer(bytearray(1921), dtype="f4", offset=1, count=480),
    "two dimensions": lambda: np.ones((2, 240), dtype="f4"),
    "one column": lambda: np.ones((480, 1), dtype="f4"),
    "no dimension": lambda: np.ones((), dtype="f4"),
    "empty": lambda: np.ones(0, dtype="f4"),
    "a memoryview": lambda: memoryview(np.ones(480, dtype="f4")),
    "an array of the standard library": lambda: array.array("f", [0.5] * 480),
    "a list": lambda: [0.5] * 480,
    "None": lambda: None,
    "read-only": lambda: np.frombuffer(bytes(1920), dtype="f4"),
}


def outcome(method, *arguments):
    """Result of a call: whether it is an argument itself, its kind and its bits; or how it failed."""
    try:
        given = method(*arguments)
    except cues.CueError as error:
        return type(error), str(error).split(" at 0x")[0]
    bits = given if isinstance(given, bytes) else given.tobytes()
    return [given is argument for argument in arguments], type(given), bits


@pytest.mark.parametrize("make", STRANGERS.values(), ids=STRANGERS)
@pytest.mark.parametrize("sounding", [False, True], ids=["idle", "sounding"])
def test_what_an_entry_does_not_take_is_mixed_as_python_mixes_it(make, sounding):
    mixer, twin = cues.Mixer(), cues.Mixer()
    for each in (mixer, twin) if sounding else ():
        each.play(tone(24000))

    def frame():
        return np.full(480, 0.25, dtype="f4")

    assert outcome(mixer.mix_pcm16, make()) == outcome(twin._mix_pcm16, make())
    assert outcome(mixer.mix, make()) == outcome(twin._mix, make())
    assert outcome(mixer.mix, make(), frame()) == outcome(twin._mix, make(), frame())
    assert outcome(mixer.mix, frame(), make()) == outcome(twin._mix, frame(), make())
    assert mixer.position == twin.position


@pytest.mark.parametrize("options", [{}, {"guard": True}, {"follow_speech": True}], ids=str)
def test_no_way_out_of_an_entry_keeps_a_reference(options):
    mixer, cue = cues.Mixer(**options), tone(1200)
    plain, bad = np.full(480, 0.25, dtype="f4"), np.full(480, np.nan, dtype="f4")
    overlapping = plain[10:], plain[:-10]
    strangers = [make() for make in STRANGERS.values()]
    raw = [Raw(960), bytes(bytearray(960)), bytes(bytearray(961))]
    calls = [(plain,), (plain, plain), (plain, plain[:9]), (bad,), (bad, plain), overlapping]
    calls += [call for stranger in strangers for call in ((stranger,), (stranger, plain), (plain, stranger))]
    things = [plain, bad, *overlapping, *raw, *(stranger for stranger in strangers if stranger is not None)]
    shared = [np.ndarray, bytes, plain.dtype]  # others refer to them, too, now and then

    def count(those):
        gc.collect()
        return np.array([sys.getrefcount(thing) for thing in those])

    def session():
        for command in (lambda: None, lambda: mixer.play(cue), mixer.release, mixer.resume):
            command()
            for call in calls:
                outcome(mixer.mix, *call)
            for data in (*raw, *strangers):
                outcome(mixer.mix_pcm16, data)

    session()
    before, shared_before = count(things), count(shared)
    for _ in range(10):
        session()
    np.testing.assert_array_equal(count(things), before)
    assert (count(shared) - shared_before).max() < 40


@pytest.mark.parametrize("name", ["mix", "mix_pcm16"])
def test_a_compiled_method_tells_its_signature_and_its_docstring(name):
    compiled, written = getattr(cues.Mixer(), name), getattr(cues.Mixer, name)
    names = list(inspect.signature(written).parameters)[1:]
    assert list(inspect.signature(compiled).parameters) == names
    assert inspect.getdoc(compiled) == inspect.getdoc(written)


def test_a_method_outlives_its_mixer_and_its_module():
    program = """
import builtins, gc
import numpy as np, cues
cues.warm_up()
mixer = cues.Mixer()
mixer.play(cues.Cue(name="a", samples=np.full(4800, 0.1)), loop=True)
mix, frame, out = mixer.mix, np.zeros(480, np.float32), np.zeros(480, np.float32)
for _ in range(30):
    mix(frame, out=out)
del mixer
gc.collect()
mix(frame, out=out)
assert abs(float(out[0]) - 0.1) < 1e-6

class Late:
    def __del__(self, mix=mix, frame=frame, out=out):
        for _ in range(10):
            mix(frame, out=out)

builtins.late, builtins.kept = Late(), mix
"""
    done = in_a_process("-c", program)
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_what_is_found_by_its_address_is_neither_copied_nor_pickled():
    mixer, pool = cues.Mixer(limiter=True), cues.MixerPool(sessions=2)
    voice = mixer.play(tone())
    for thing in (mixer, pool, voice):
        for duplicate in (copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="neither copied nor pickled"):
                duplicate(thing)
