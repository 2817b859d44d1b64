"""Calls of a mixer's methods with anything at all: `python tests/support/mixer_fuzz.py [calls] [seed]`.

A mistake in the compiled entries ends the process: this runs in one of its own. Equal arguments go to three mixers: to
the entries, to the methods that stand in for them, and through the scheduler. All have to give the same, and no call
may keep a reference to its arguments.
"""

import array as standard_array
import faulthandler
import mmap
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
import cues
from cues.mixing.backends import compiled, selection
from tests.support.mixing_scripts import random_command

DTYPES = ["f4", "f4", "f4", "f4", "f8", "f2", "i2", "c8", "O", ">f4", "?", "U3", "M8[s]", [("a", "f4")], "V4"]
SHAPES = [(480,), (480,), (480,), (7,), (1,), (0,), (), (2, 240), (480, 1), (1, 480), (5000,), (3000,)]
WAYS = [
    getattr,
    lambda mixer, name: getattr(cues.Mixer, name).__get__(mixer),
    lambda mixer, name: getattr(mixer, f"_{name}"),
]
OPTIONS = [{}, {"guard": True}, {"limiter": True}, {"voices": 1}, {"follow_speech": True}]


class Sub(np.ndarray):
    """A subclass: none of the compiled entries' business."""


class Text(str):
    __slots__ = ()


class Raw(bytes):
    __slots__ = ()


def array(rng):
    if rng.random() < 0.5:
        dtype, shape = "f4", SHAPES[rng.integers(4)]
    else:
        dtype, shape = DTYPES[rng.integers(len(DTYPES))], SHAPES[rng.integers(len(SHAPES))]
    made = np.zeros(shape, dtype=dtype)
    if made.dtype.kind == "f" and made.dtype.isnative and made.size:
        made[...] = rng.uniform(-1, 1, shape)
        if rng.random() < 0.1:
            made.flat[rng.integers(made.size)] = [np.nan, np.inf, -np.inf, 3e38][rng.integers(4)]
    change = rng.integers(18)
    if change == 0 and made.ndim:
        made = made[::-1]
    elif change == 1 and made.ndim:
        made = np.repeat(made, 2, axis=0)[::2]
    elif change == 2:
        made.flags.writeable = False
    elif change == 3:
        made = made.view(Sub)
    elif change == 4 and made.ndim:
        made = np.broadcast_to(np.float32(0.25), (480,))
    elif change == 5:
        made = np.frombuffer(bytes(range(1, 122)) * 16, dtype=np.uint8)[1:1921].view("<f4") * np.float32(1e-30)
    elif change == 6:
        made = np.frombuffer(bytearray(1921), dtype=np.float32, offset=1, count=480)
    elif change == 7:
        made = np.frombuffer(mmap.mmap(-1, 1920), dtype=np.float32)
    elif change == 8:
        made = np.zeros(480, dtype=np.dtype("f4", metadata={"of": "mine"}))
    elif change == 9:
        made = np.ma.masked_array(made)
    elif change == 10 and made.ndim:
        made = np.broadcast_arrays(made, np.zeros(made.shape))[0]
    return made


def anything(rng):
    kind = rng.integers(24)
    if kind < 15:
        return array(rng)
    choices = [None, 0, -1, 10**30, 1.5, "text", b"ab", b"abc", bytes(960), bytearray(961), memoryview(bytes(8))]
    choices += [Raw(960), standard_array.array("f", [0.25] * 480), memoryview(np.zeros(480, dtype="f4"))]
    choices += [object(), [0.0] * 9, ["a"], {}, (), np.float32(1), np.ndarray, float("nan"), lambda: 0, 1j, True]
    return choices[rng.integers(len(choices))]


def call(rng):
    """Arguments of one call: positional and by name."""
    out = str(b"out", "ascii")  # equal to the name in the code, and another object
    frame = anything(rng) if rng.random() < 0.4 else np.asarray(rng.uniform(-1, 1, SHAPES[rng.integers(6)]), dtype="f4")
    kind = rng.integers(12)
    if kind == 0:
        store = np.asarray(rng.uniform(-1, 1, 600), dtype="f4")
        first = int(rng.integers(0, 120))
        return (store[first : first + 480],), {"out": store[:480]}
    if kind == 1:
        return (frame,), {out: anything(rng)}
    if kind == 2:
        return (frame,), {"out": frame}
    if kind == 3:
        return (frame, anything(rng)), {}
    if kind == 4:
        return (), {"frame": frame} if rng.random() < 0.5 else {"frame": frame, "out": anything(rng)}
    if kind == 5:
        return tuple(anything(rng) for _ in range(rng.integers(0, 4))), {
            Text("out"): None
        } if rng.random() < 0.5 else {}
    if kind == 6:
        return (frame,), {"into": anything(rng)}
    if kind == 7:
        n = frame.size if isinstance(frame, np.ndarray) else 480
        return (frame,), {"out": np.zeros(n, dtype="f4")}
    return (frame,), {}


def raw_call(rng):
    kind = rng.integers(6)
    if kind == 0:
        return (anything(rng),), {}
    if kind == 1:
        return tuple(anything(rng) for _ in range(rng.integers(0, 3))), {"data": b"ab"} if rng.random() < 0.5 else {}
    return (rng.integers(-32768, 32767, int(rng.choice([1, 2, 480, 1024, 1025, 3000]))).astype("<i2").tobytes(),), {}


def outcome(method, args, kwargs):
    """Result of a call, in a form that can be compared."""
    try:
        given = method(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  (which, is what is compared)
        # A wrong name or number of arguments raises Python's own error.
        return type(error).__name__, str(error) if isinstance(error, cues.CueError) else ""
    same = [k for k, argument in enumerate([*args, *kwargs.values()]) if argument is given]
    if isinstance(given, np.ndarray):
        return same, str(given.dtype), given.shape, given.tobytes(), sys.getrefcount(given)
    return same, repr(given)


def references(args, kwargs):
    """How often each argument that has a buffer is referred to."""
    kinds = (np.ndarray, bytes, bytearray, memoryview, standard_array.array)
    return [sys.getrefcount(thing) for thing in (*args, *kwargs.values()) if isinstance(thing, kinds)]


def without_addresses(told):
    return [part.split(" at 0x")[0] if isinstance(part, str) else part for part in told]


def main():
    faulthandler.enable()
    n_calls, seed = (int(number) for number in [*sys.argv[1:], "4000", "1"][:2])
    cues.warm_up()
    if not compiled.available():
        raise SystemExit("there are no compiled entries here")
    cue = cues.Cue(name="a", samples=0.3 * np.sin(np.arange(2000) * 0.3))
    np.seterr(all="ignore")
    refused = 0
    for number in range(n_calls):
        if number % 400 == 0:
            options = OPTIONS[number // 400 % len(OPTIONS)]
            mixers = [cues.Mixer(**options) for _ in range(3)]
            voices = [[], [], []]
        name, make = ("mix", call) if number % 3 else ("mix_pcm16", raw_call)
        told = []
        for mixer, its_voices, way in zip(mixers, voices, WAYS, strict=True):
            random_command(np.random.default_rng([seed, number, 1]), [cue])(mixer, its_voices)
            args, kwargs = make(np.random.default_rng([seed, number, 2]))
            before = references(args, kwargs)
            told.append(without_addresses(outcome(way(mixer, name), args, kwargs)))
            assert references(args, kwargs) == before, number
        assert told[0] == told[1] == told[2], (number, *(str(each)[:300] for each in told))
        assert len({(mixer.position, mixer.stats) for mixer in mixers}) == 1, number
        refused += isinstance(told[0][0], str)
    print(  # noqa: T201  (what the command is for)
        f"{n_calls} calls, {refused} refused, the same by all ways; {type(selection.kernels()).__name__}"
    )


if __name__ == "__main__":
    main()
