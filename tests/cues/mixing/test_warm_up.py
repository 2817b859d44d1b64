"""Warm-up, in processes of their own: what is imported, what is compiled, and where that is kept."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

COUNT = """
import json, sys
events = []
if {listen}:
    from numba.core import event
    class Listener(event.Listener):
        def on_start(self, e): events.append(e.data["name"])
        def on_end(self, e): pass
    event.register("numba:run_pass", Listener())  # of functions and callbacks alike
import numpy as np
import cues
{body}
print(json.dumps({{"compiled": len(events), "numba": "numba" in sys.modules, "result": result}}))
"""
SESSION = """
mixer = cues.Mixer(limiter={limiter}, follow_speech=True)
cue = cues.Cue(name="a", samples=0.2 * np.sin(np.arange(4800) * 0.1))
voice = mixer.play(cue); mixer.play(cue, placement="replace", at=900); mixer.play(cue, placement="in_pause")
frame = np.zeros(480, dtype=np.float32); buffer = frame.copy()
for _ in range(30):
    mixer.mix(frame); mixer.mix(frame, out=buffer); mixer.mix_pcm16(bytes(960)); mixer.silence(100)
mixer.release(); mixer.mix(frame)
pool = cues.MixerPool(sessions=3); pool[0].play(cue); pool.mix(np.zeros((3, 480), dtype=np.float32))
result = mixer.position
"""


def run(body, *, listen=True, path=ROOT, cache=None, **environment):
    program = COUNT.format(listen=listen, body=body)
    variables = {**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    if cache is not None:
        variables["CUES_CACHE_DIR"] = str(cache)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=variables,
        cwd=path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A full cache: a copy of the one that all tests share, which is filled first if this is its first run."""
    run("cues.warm_up(); result = 0")
    folder = tmp_path_factory.mktemp("warm")
    shutil.copytree(Path(os.environ["CUES_CACHE_DIR"]) / "kernels", folder / "kernels")
    return folder


def test_without_warm_up_a_session_neither_compiles_nor_imports_numba():
    report = run(SESSION.format(limiter=True), listen=False)
    assert not report["numba"]


@pytest.mark.parametrize("limiter", [False, True])
def test_nothing_is_compiled_after_warm_up(cache, limiter):
    body = "cues.warm_up()\nevents.clear()" + SESSION.format(limiter=limiter)
    assert run(body, cache=cache)["compiled"] == 0


def test_a_second_process_compiles_nothing(cache):
    assert run("cues.warm_up(); cues.warm_up(); result = 0", cache=cache)["compiled"] == 0


def test_the_entries_of_the_cache_find_the_functions_of_a_new_process(cache):
    body = (
        "cues.warm_up()"
        + SESSION.format(limiter=False)
        + "result = type(mixer.mix).__name__, type(mixer.mix_pcm16).__name__, mixer.mix(frame).shape"
    )
    report = run(body, cache=cache)
    assert report["result"] == ["builtin_function_or_method", "builtin_function_or_method", [480]]
    assert report["compiled"] == 0


def test_another_install_of_the_same_code_shares_the_cache(cache, tmp_path):
    shutil.copytree(ROOT / "cues", tmp_path / "cues", ignore=shutil.ignore_patterns("__pycache__"))
    body = "cues.warm_up()\nresult = cues.__file__"
    report = run(body, path=tmp_path, cache=cache)
    assert report["result"].startswith(str(tmp_path))
    assert report["compiled"] == 0
    assert not list(tmp_path.rglob("*.nbi"))


def test_a_damaged_cache_is_compiled_again(cache, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(cache, damaged)
    for file in damaged.rglob("entries.mix_pcm16_entry*"):
        file.write_bytes(b"no kernel")
    body = "cues.warm_up()" + SESSION.format(limiter=False)
    assert run(body, cache=damaged)["compiled"] > 0
    assert run(body, cache=damaged)["compiled"] == 0


def test_a_session_begun_before_warm_up_goes_on_after_it(cache):
    body = """
mixer = cues.Mixer(); twin = cues.Mixer()
cue = cues.Cue(name="a", samples=0.2 * np.sin(np.arange(9600) * 0.1))
mixer.play(cue); twin.play(cue)
frame = np.full(480, 0.1, dtype=np.float32)
out = [mixer.mix(frame) for _ in range(5)]; same = [twin.mix(frame) for _ in range(5)]
cues.warm_up()
mixer.play(cue)
twin.play(cue)
out += [mixer.mix(frame) for _ in range(30)]
from cues.mixing.backends import selection
selection.install(None)
same += [twin._mix(frame) for _ in range(30)]
result = float(np.abs(np.concatenate(out) - np.concatenate(same)).max())
"""
    assert run(body, cache=cache)["result"] <= 1 / 32768


def test_two_processes_may_warm_up_at_once(cache, tmp_path):
    shared = tmp_path / "shared"
    program = COUNT.format(listen=True, body="cues.warm_up()" + SESSION.format(limiter=False))
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "CUES_CACHE_DIR": str(shared)}
    shutil.copytree(cache, shared)
    for file in shared.rglob("entries.mix_pcm16_entry*"):
        file.unlink()
    both = [subprocess.Popen([sys.executable, "-c", program], env=variables, cwd=ROOT) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert run("cues.warm_up(); result = 0", cache=shared)["compiled"] == 0


def test_a_cache_that_cannot_be_written_still_serves(cache, tmp_path):
    """A file stands where the user's own folder would be: root is stopped by that too."""
    taken = tmp_path / "taken"
    taken.write_text("no folder")
    home = {"HOME": str(taken), "XDG_CACHE_HOME": str(taken), "TMPDIR": str(tmp_path)}
    body = """
import pathlib, tempfile
def refuse(*_, **__): raise OSError("read-only")
tempfile.TemporaryFile = refuse
cues.warm_up()
result = 0
"""
    assert run(body, cache=cache, **home)["compiled"] == 0


def test_where_nothing_may_be_compiled_numpy_goes_on_mixing():
    body = "cues.warm_up()" + SESSION.format(limiter=False)
    assert run(body, NUMBA_DISABLE_JIT="1")["result"] > 0
