"""`cues warm-up`: the caches of this machine, or of a container image."""

import json
import os
import subprocess
import sys
from pathlib import Path

from cues.mixing.warmup import has_object_file
from cues.synthesis.catalog import CATALOG

ROOT = Path(__file__).parents[3]

SESSION = """
import sys
sys.modules["numba"] = None
import numpy as np, cues
sounds = cues.load_bank()
cues.warm_up()
mixer = cues.Mixer()
mixer.play(sounds["tool_call"])
print(type(mixer.mix).__name__, mixer.mix(np.zeros(4800, np.float32)).any(), "soundfile" in sys.modules)
"""


def python(*arguments, **environment):
    """Standard output of a new process: this one may have loaded the cues, and would not write them again."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "CUES_PACK": "", **environment}
    done = subprocess.run([sys.executable, *arguments], env=variables, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout


def test_a_folder_of_an_image_serves_a_process_without_numba(tmp_path):
    report = json.loads(python("-m", "cues", "warm-up", "--into", str(tmp_path / "image"), "--json"))
    assert report["cues"] == len(list((tmp_path / "image").glob("*.cue"))) == len(CATALOG)
    assert Path(report["object_file"]).is_relative_to(tmp_path / "image" / "kernels")
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TMPDIR"), report["object_file"])
    out = python("-c", SESSION, **nowhere, CUES_CACHE_DIR=str(tmp_path / "image"))
    assert out.split() == ["builtin_function_or_method", "True", "False"]


def test_without_a_folder_it_fills_the_cache_of_this_machine(run):
    result = run("warm-up")
    assert (result.code, result.err) == (0, "")
    assert "the mixing loops, for " in result.out
    assert has_object_file()
    assert "and the mixing loops" in " ".join(run("doctor").out.split())


def test_an_unknown_level_is_a_wrong_argument(run):
    result = run("warm-up", "--level", "k8")
    assert result.code == 2
    assert "level is 'k8'; it must be one of " in result.err


def test_a_folder_that_cannot_be_made_is_named_with_its_reason(run, tmp_path):
    (tmp_path / "taken").write_text("a file")
    result = run("warm-up", "--into", "taken/image")
    assert (result.code, result.out) == (1, "")
    assert "the mixing loops cannot be kept: Not a directory" in result.err
