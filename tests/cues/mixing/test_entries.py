"""The compiled methods: the same as the way through Python for any argument, and gone without a trace."""

import copy
import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import cues
from tests.support.mixing_scripts import mixing_with, tone

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.usefixtures("warm")


@pytest.fixture
def warm():
    with mixing_with("compiled"):
        yield


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
        *(in_a_process("-c", FEW_FRAMES, CUES_NO_ENTRIES=value).stdout.split() for value in ("", "1")), strict=True
    )
    assert kinds == ("builtin_function_or_method", "method")
    assert digests[0] == digests[1]


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
