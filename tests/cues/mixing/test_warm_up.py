"""Warm-up, in processes of their own: what is imported, what is compiled, and where that is kept."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
import hashlib, json, logging, sys
logs = []
class Kept(logging.Handler):
    def emit(self, record): logs.append([record.levelname, record.getMessage()])
logging.getLogger("cues").addHandler(Kept())
logging.getLogger("cues").setLevel(logging.INFO)
import numpy as np
import cues
result = None
{body}
from cues.mixing.backends import selection
heavy = [name for name in ("numba", "scipy", "soundfile", "soxr") if sys.modules.get(name)]
print(json.dumps({{"compiled": selection.kernels() is not None, "heavy": heavy, "logs": logs, "result": result}}))
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
"""
SOUND = """
mixer = cues.Mixer(limiter=True, follow_speech=True)
mixer.play(cues.Cue(name="a", samples=0.5 * np.sin(np.arange(9600) * 0.1)))
speech = 0.9 * np.sin(np.arange(14_400) * 0.05, dtype=np.float32)
out = np.concatenate([mixer.mix(speech[first : first + 480]) for first in range(0, len(speech), 480)])
result = hashlib.sha256(out.tobytes()).hexdigest(), out[::60].tolist()
"""
WITHOUT_NUMBA = "sys.modules['numba'] = None\n"
OLD_PROCESSOR = """
from llvmlite import binding
binding.get_host_cpu_features = lambda: binding.targets.FeatureMap(sse2=True)
"""


def run(body, *, path=ROOT, cache=None, **environment):
    """Report of a process; with a `cache`, all of its folders are in there."""
    variables = {**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    if cache is not None:
        variables |= dict.fromkeys(("CUES_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "TMPDIR"), str(cache))
    variables |= environment
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=body)],
        env=variables,
        cwd=path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A cache with the object file alone; it is compiled in the first run of all tests."""
    folder = tmp_path_factory.mktemp("full")
    run(f"from pathlib import Path; from cues.mixing import warmup; warmup.write_object_file(Path({str(folder)!r}))")
    return folder


@pytest.fixture(scope="module")
def sound(full):
    """Bits, and a part of the samples, of a session that mixes compiled."""
    return run("cues.warm_up()" + SOUND, cache=full)["result"]


@pytest.fixture
def cache(full, tmp_path):
    """A cache that a test may damage."""
    shutil.copytree(full, tmp_path / "cache")
    return tmp_path / "cache"


def the_file(cache):
    (path,) = (cache / "kernels" / "mixing").glob("*.o")
    return path


def assert_numpy_mixes(report, sound):
    assert not report["compiled"]
    assert report["logs"][-1][0] == "WARNING"
    assert report["logs"][-1][1].startswith("numpy mixes, at tens of microseconds a frame instead of less than one")
    np.testing.assert_allclose(report["result"][1], sound[1], rtol=0, atol=1 / 32768)


def test_without_warm_up_a_session_neither_compiles_nor_imports_numba():
    report = run(SESSION.format(limiter=True))
    assert not report["compiled"]
    assert not report["heavy"]


@pytest.mark.parametrize("limiter", [False, True])
def test_a_process_with_a_full_cache_mixes_compiled_and_never_imports_numba(full, limiter):
    report = run(
        "bank = cues.load_bank(); cues.warm_up(); cues.warm_up()" + SESSION.format(limiter=limiter), cache=full
    )
    assert report == {"compiled": True, "heavy": [], "logs": [], "result": None}


def test_without_numba_and_with_an_empty_cache_numpy_mixes_and_a_warning_says_what_that_costs(tmp_path, sound):
    report = run(WITHOUT_NUMBA + "cues.warm_up()" + SOUND, cache=tmp_path)
    assert_numpy_mixes(report, sound)


def test_an_empty_cache_is_filled_for_the_next_process_with_the_bits_of_every_processor(tmp_path, sound):
    first = run(OLD_PROCESSOR + "cues.warm_up()" + SOUND, cache=tmp_path)
    assert first["compiled"]
    assert "numba" in first["heavy"]
    assert [level for level, _ in first["logs"]] == ["INFO"] * 3
    assert first["logs"][0][1].startswith("compiling the kernels for ")
    assert str(the_file(tmp_path)) in first["logs"][-1][1]
    assert first["result"] == sound
    second = run(WITHOUT_NUMBA + OLD_PROCESSOR + "cues.warm_up()" + SOUND, cache=tmp_path)
    assert second == {"compiled": True, "heavy": [], "logs": [], "result": sound}


def test_a_processor_without_the_features_of_the_object_file_does_not_run_it(full, sound):
    body = WITHOUT_NUMBA + OLD_PROCESSOR + "cues.warm_up()" + SOUND
    assert_numpy_mixes(run(body, cache=full), sound)


def test_where_a_system_refuses_new_code_numpy_mixes(full, sound):
    refuse = """
from llvmlite import binding
def refuse(): raise OSError(13, "cannot allocate executable memory")
binding.check_jit_execution = refuse
"""
    report = run(refuse + "cues.warm_up()" + SOUND, cache=full)
    assert "cannot allocate executable memory" in report["logs"][-1][1]
    assert_numpy_mixes(report, sound)


DAMAGES = {
    "cut off": lambda content: content[:5000],
    "empty": lambda _: b"",
    "a byte is wrong": lambda content: content[:9000] + bytes([content[9000] ^ 1]) + content[9001:],
    "its digest is wrong": lambda content: bytes(32) + content[32:],
    "not a file of ours": lambda _: b"\x7fELF" + bytes(9000),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_object_file_is_not_run(cache, sound, damage):
    the_file(cache).write_bytes(damage(the_file(cache).read_bytes()))
    report = run(WITHOUT_NUMBA + "cues.warm_up()" + SOUND, cache=cache)
    assert "is damaged" in report["logs"][0][1]
    assert_numpy_mixes(report, sound)


@pytest.mark.parametrize("which", ["file", "folder"])
def test_an_object_file_that_others_may_write_is_not_run(cache, sound, which):
    path = the_file(cache)
    (path if which == "file" else path.parent).chmod(0o775)
    report = run(WITHOUT_NUMBA + "cues.warm_up()" + SOUND, cache=cache)
    assert "may be written by others (mode 775)" in report["logs"][0][1]
    assert_numpy_mixes(report, sound)


def test_two_processes_write_at_once_while_a_third_reads(cache, sound):
    write = f"""
from pathlib import Path
from cues.mixing.warmup import write_object_file
for _ in range(300): write_object_file(Path({str(cache)!r}))
"""
    read = """
from cues._kernels import object_file
from cues._kernels.machine_code import usable_levels
for _ in range(600): assert object_file.find(usable_levels()) is not None
"""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "CUES_CACHE_DIR": str(cache)}
    programs = [subprocess.Popen([sys.executable, "-c", code], env=variables) for code in (write, write, read)]
    assert [process.wait(timeout=300) for process in programs] == [0, 0, 0]
    assert run(WITHOUT_NUMBA + "cues.warm_up()" + SOUND, cache=cache)["result"] == sound
    assert [path.suffix for path in the_file(cache).parent.iterdir()] == [".o"]


def test_a_folder_that_cannot_be_written_still_serves(cache, sound):
    the_file(cache).parent.chmod(0o555)
    before = sorted(cache.rglob("*"))
    home = {
        name: str(the_file(cache)) for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR")
    }  # a file, where nothing is kept
    assert run("cues.warm_up()" + SOUND, cache=cache, **home)["result"] == sound
    assert sorted(cache.rglob("*")) == before
    the_file(cache).parent.chmod(0o755)


def test_another_install_of_the_same_code_shares_the_object_file(full, tmp_path):
    shutil.copytree(ROOT / "cues", tmp_path / "cues", ignore=shutil.ignore_patterns("__pycache__"))
    report = run(WITHOUT_NUMBA + "cues.warm_up()\nresult = cues.__file__", path=tmp_path, cache=full)
    assert report["result"].startswith(str(tmp_path))
    assert report["compiled"]


def test_a_session_begun_before_warm_up_goes_on_after_it(full):
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
result = type(mixer.mix).__name__, float(np.abs(np.concatenate(out) - np.concatenate(same)).max())
"""
    kind, difference = run(body, cache=full)["result"]
    assert kind == "builtin_function_or_method"
    assert difference <= 1 / 32768
