"""The object file of the mixing kernels: who may write it, where it is kept, and for which processors."""

import os
import tempfile

import pytest
from llvmlite import binding

from cues._kernels import building, entries, machine_code, object_file
from cues._kernels.tools import kernel
from cues.mixing.warmup import load_kernels

CODE, LEVEL = b"machine code", "x86-64-v3"


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders for caches, in the order in which they are taken."""
    named = [tmp_path / name for name in ("cues", "temporary")]
    monkeypatch.setenv("CUES_CACHE_DIR", str(named[0]))
    monkeypatch.setattr("cues._kernels.object_file.user_cache_dir", lambda: None)
    named[1].mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(named[1]))
    return named


def test_code_is_kept_in_the_first_folder_and_found_there(folders):
    path = object_file.keep(CODE, LEVEL)
    assert path.is_relative_to(folders[0])
    assert object_file.find([LEVEL]) == CODE


def test_code_is_kept_in_no_folder_that_others_may_write(folders):
    folder = folders[0] / "kernels" / "mixing"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert object_file.keep(CODE, LEVEL).is_relative_to(folders[1])
    assert object_file.find([LEVEL]) == CODE
    assert not list(folder.iterdir())


def test_a_named_pipe_in_the_place_of_a_file_is_not_waited_for(folders):
    path = object_file.keep(CODE, LEVEL)
    path.unlink()
    os.mkfifo(path)
    assert object_file.find([LEVEL]) is None


def test_the_oldest_files_go_beyond_the_limit(folders):
    path = object_file.keep(CODE, LEVEL)
    for age in range(1, 41):
        other = path.with_name(f"{age:02}.o")
        other.write_bytes(CODE)
        os.utime(other, (1e9 - age, 1e9 - age))
    object_file.keep(CODE, LEVEL)
    assert {each.name for each in path.parent.iterdir()} == {path.name, *(f"{age:02}.o" for age in range(1, 32))}


def status(mode, owner):
    return os.stat_result((mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "owner", "fault"),
    [
        (0o100644, 1000, ""),
        (0o100444, 0, ""),
        (0o40755, 1000, ""),
        (0o100644, 1001, "belongs to user 1001"),
        (0o100664, 1000, "may be written by others (mode 664)"),
        (0o40757, 0, "may be written by others (mode 757)"),
    ],
    ids=["the user's", "root's, read-only", "a folder", "another user's", "the group's", "everybody's"],
)
def test_code_of_the_user_and_of_root_is_run_if_nobody_else_may_write_it(monkeypatch, mode, owner, fault):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = object_file._fault(status(mode, owner))
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


OLD = "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"
HASWELL = f"{OLD} avx avx2 bmi bmi2 f16c fma lzcnt movbe"
SKYLAKE_SERVER = f"{HASWELL} avx512f avx512bw avx512cd avx512dq avx512vl"


@pytest.mark.parametrize(
    ("features", "level"),
    [
        ("sse2", "x86-64"),
        (OLD, "x86-64-v2"),
        (f"{OLD} avx", "x86-64-v2"),
        (HASWELL, "x86-64-v3"),
        (f"{HASWELL} avx512f avx512cd", "x86-64-v3"),
        (SKYLAKE_SERVER, "x86-64-v4"),
        (SKYLAKE_SERVER.replace("fma", ""), "x86-64-v2"),
    ],
)
def test_a_processor_gets_code_of_the_highest_level_that_it_has_in_full(monkeypatch, features, level):
    monkeypatch.setattr(binding, "get_process_triple", lambda: "x86_64-unknown-linux-gnu")
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: dict.fromkeys(features.split(), True))
    assert machine_code.usable_levels.__wrapped__()[0] == level


def test_other_processors_and_systems_that_do_not_tell_get_code_for_all_of_their_kind(monkeypatch):
    def refuse():
        raise RuntimeError("not known")

    monkeypatch.setattr(binding, "get_host_cpu_features", refuse)
    monkeypatch.setattr(binding, "get_process_triple", lambda: "x86_64-pc-windows-msvc")
    assert machine_code.usable_levels.__wrapped__() == ["x86-64"]
    monkeypatch.setattr(binding, "get_process_triple", lambda: "aarch64-unknown-linux-gnu")
    assert machine_code.usable_levels.__wrapped__() == ["generic"]


def test_a_processor_runs_code_of_lower_levels_and_prefers_the_best(folders):
    object_file.store(b"of v2", "x86-64-v2", folders[0])
    assert object_file.find(["x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"]) == b"of v2"
    object_file.store(b"of v3", "x86-64-v3", folders[0])
    assert object_file.find(["x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64"]) == b"of v3"
    assert object_file.find(["x86-64"]) is None


def test_the_code_needs_nothing_but_functions_of_cpython():
    """`nm` would print the names with a U; here they stand in the file's table of strings."""
    load_kernels()
    code = object_file.find(machine_code.usable_levels())
    assert b"PyObject_GetBuffer" in code
    assert not any(name in code for name in (b"numba_", b"NRT_", b"PyErr_SetString"))


def test_code_that_would_need_numba_at_run_time_is_refused(monkeypatch):
    """An unresolved name ends a process that loads it."""

    @kernel
    def fail(number):
        if number:
            raise ValueError("numba makes the exception")
        return 0

    monkeypatch.setattr(entries, "EXPORTED", (fail,))
    with pytest.raises(RuntimeError, match="numba_"):
        building.build(machine_code.usable_levels()[0])


def test_where_no_folder_can_be_written_code_is_not_kept(folders):
    folders[1].rmdir()
    for folder in folders:
        folder.write_text("a file is no folder")
    assert object_file.keep(CODE, LEVEL) is None
    assert object_file.find([LEVEL]) is None


def test_a_mask_that_lets_the_group_write_changes_nothing(folders):
    before = os.umask(0o002)
    try:
        object_file.keep(CODE, LEVEL)
    finally:
        os.umask(before)
    assert object_file.find([LEVEL]) == CODE
