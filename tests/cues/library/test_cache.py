import math
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import cues
from cues.library import bank, cache
from cues.synthesis import render


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty disk cache, and a process that remembers nothing."""
    monkeypatch.setenv("CUES_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(bank, "_remembered", {})
    return tmp_path / "cache"


@pytest.fixture
def renders(monkeypatch):
    """How often something was rendered."""
    calls = []
    original = render.render
    monkeypatch.setattr(render, "render", lambda *arguments: calls.append(arguments) or original(*arguments))
    return calls


def same(one, other):
    return all(
        np.array_equal(one[name].samples, other[name].samples)
        and asdict(one[name].measured) == pytest.approx(asdict(other[name].measured), abs=1e-5)
        for name in one
    )


def forget():
    bank._remembered.clear()


def test_cues_are_rendered_once_a_process_and_once_a_machine(folder, renders):
    first = cues.load_bank()
    assert len(renders) == len(first)
    again = cues.load_bank()
    forget()
    from_disk = cues.load_bank()
    assert len(renders) == len(first)
    assert same(first, again)
    assert same(first, from_disk)


DAMAGE = {
    "emptied": lambda _: b"",
    "cut short": lambda data: data[: len(data) // 2],
    "one bit turned": lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:],
    "longer": lambda data: data + b"\0\0\0\0",
    "text": lambda _: b"hello",
    "another program's": lambda data: b"RIFF" + data[4:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_rendered_anew_and_mended(folder, renders, damage):
    first = cues.load_bank()
    entries = {path: path.read_bytes() for path in folder.iterdir()}
    for path, data in entries.items():
        path.write_bytes(DAMAGE[damage](data))
    forget()
    assert same(first, cues.load_bank())
    assert len(renders) == 2 * len(first)
    assert {path: path.read_bytes() for path in folder.iterdir()} == entries


@pytest.mark.parametrize("where", ["samples", "levels"])
def test_an_entry_with_nan_and_a_right_digest_is_rendered_anew(folder, renders, where):
    first = cues.load_bank()
    for path in folder.iterdir():
        samples, measured = np.zeros(9, dtype=np.float32), next(iter(first.values())).measured
        if where == "samples":
            samples[-1] = np.nan
        else:
            measured = replace(measured, true_peak_dbtp=math.nan)
        path.write_bytes(cache._packed(path.stem, samples, measured))
    forget()
    assert same(first, cues.load_bank())
    assert len(renders) == 2 * len(first)


def test_an_entry_under_the_wrong_name_and_one_that_is_no_file_are_passed_over(folder, renders):
    first = cues.load_bank()
    pipe, subfolder, *others = sorted(folder.iterdir())
    contents = [path.read_bytes() for path in others]
    for path, content in zip(others, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    for path in (pipe, subfolder):
        path.unlink()
    os.mkfifo(pipe)
    subfolder.mkdir()
    forget()
    assert same(first, cues.load_bank())
    assert len(renders) == 2 * len(first)


def test_deleting_the_cache_is_allowed_at_any_time(folder):
    first = cues.load_bank()
    shutil.rmtree(folder)
    forget()
    assert same(first, cues.load_bank())


@pytest.mark.parametrize("place", ["/dev/null/cache", "/proc/cache", "\0"])
def test_a_disk_that_cannot_be_written_stops_nothing(folder, monkeypatch, place):
    first = cues.load_bank()
    forget()
    monkeypatch.setattr(cache, "cache_dir", lambda: Path(place))
    assert same(first, cues.load_bank())


def test_a_full_disk_stops_nothing_and_leaves_nothing_behind(folder, monkeypatch):
    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert len(cues.load_bank()) == 8
    assert list(folder.iterdir()) == []


def test_an_empty_variable_turns_the_disk_cache_off(monkeypatch, renders, folder):
    monkeypatch.setenv("CUES_CACHE_DIR", "")
    n = len(cues.load_bank())
    forget()
    cues.load_bank()
    assert len(renders) == 2 * n
    assert not folder.exists()


def test_the_folder_stays_small(folder, monkeypatch):
    monkeypatch.setattr(cache, "_MAX_ENTRIES", 5)
    bank_now = cues.load_bank()
    assert len(bank_now) == 8
    assert len(list(folder.iterdir())) == 5


def test_a_file_that_changed_is_read_again(folder, tmp_path):
    import soundfile

    tone = 0.3 * np.sin(2 * np.pi * 700 / 24000 * np.arange(4800))
    for n in (4800, 2400):
        soundfile.write(tmp_path / "error.wav", tone[:n], 24000)
        assert len(cues.load_bank(tmp_path)["error"]) == n


def key_from(package):
    """The key of one recipe, in a process of its own that imports the package from that folder."""
    script = "from cues.library.cache import key_of; print(key_of({'cue': 'error'}))"
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=package.parent, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_a_change_to_code_that_shapes_sound_gives_another_key(tmp_path):
    package = tmp_path / "cues"
    shutil.copytree(Path(cues.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    keys = [key_from(package)]
    for module in ("units", "signal/fades", "synthesis/render", "meters/loudness", "library/shaping"):
        with (package / f"{module}.py").open("a", encoding="utf-8") as source:
            source.write("# another law\n")
        keys.append(key_from(package))
    assert len(set(keys)) == len(keys)
