"""A new user's first commands: missing extras, a terminal of few characters, a full disk."""

import errno
import importlib
import json
import os
import subprocess
import sys

import pytest

from cues.cli import COMMANDS, doctor
from cues.extras import pip_install
from stream.replay.recording import samples_folder

CALL = samples_folder() / "llama-server" / "hermes-text-and-call.sse"


EXTRAS = sorted(package for _, packages in doctor.EXTRAS.values() for package in packages)
COMMAND_LINES = [*([name] for name in COMMANDS), ["batch", "measure"], ["batch", "mix"]]


def without(packages, *arguments):
    """A process that runs `cues` as if these packages were not installed."""
    program = f"import sys; sys.modules.update(dict.fromkeys({packages!r})); from cues.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("line", COMMAND_LINES, ids=" ".join)
def test_help_needs_no_extra(line):
    result = without(EXTRAS, *line, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: cues {' '.join(line)} ")


@pytest.mark.parametrize(
    ("package", "line", "said"),
    [
        ("uvicorn", "live", f"`cues live` needs uvicorn: {pip_install('live')}"),
        ("httpx2", "proxy --upstream http://127.0.0.1:9", f"`cues proxy` needs httpx2: {pip_install('live')}"),
        ("h11", "replay --scenario list", f"`cues replay` needs h11: {pip_install('openai')}"),
        ("jinja2", "page --serve --speaker voice-like", f"the sound board needs jinja2: {pip_install('page')}"),
        (
            "httpx2",
            "record http://127.0.0.1:9/v1 --model m --prompt p -o x.sse",
            f"recording needs httpx2: {pip_install('services')}",
        ),
        ("httpx2", "demo --fast", f"the demo needs httpx2: {pip_install('demo')}"),
        ("matplotlib", "demo --fast", f"the demo needs matplotlib: {pip_install('demo')}"),
    ],
    ids=["live", "proxy", "replay", "page", "record", "demo", "picture of the demo"],
)
def test_a_command_whose_packages_are_missing_says_in_one_line_what_to_install(package, line, said):
    result = without([package], *line.split())
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.endswith(f"cues: {said}\n")


@pytest.mark.parametrize("moment", ["importlib.import_module", "list.bank_of"], ids=["import", "work"])
def test_ctrl_c_is_one_line_and_code_130_at_any_time(run, monkeypatch, moment):
    importlib.import_module("cues.cli.list")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"cues.cli.{moment}", interrupted)
    result = run("list")
    assert (result.code, result.out, result.err) == (130, "", "cues: interrupted\n")


@pytest.mark.parametrize("module", ["cues.cli", "click", "numpy"])
def test_ctrl_c_during_an_import_is_one_line_and_code_130(module):
    program = f"""
import runpy, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
sys.argv = ["cues", "list"]
runpy.run_module("cues", run_name="__main__")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "cues: interrupted\n")


def test_an_argument_that_names_a_hostile_file_cannot_steer_the_terminal(run, tmp_path):
    (tmp_path / "a\x1b[2Jb.json").write_text("{")
    for line in (
        ("speak", "hi", "--base-url", "http://127.0.0.1:9", "--model", "m", "--tools"),
        ("record", "http://127.0.0.1:9", "-o", "x.sse", "--body"),
        ("mix", "x.wav", "--cue", "agent@0", "-o"),
    ):
        result = run(*line, "a\x1b[2Jb.json")
        assert result.code == 2
        assert "a\\x1b[2Jb.json" in result.err
        assert "\x1b" not in result.err


def test_an_error_that_names_a_hostile_file_cannot_steer_the_terminal(run, tmp_path):
    folder = tmp_path / "a\x1b[2Jb"
    folder.mkdir()
    result = run("list", "--pack", folder.name)
    assert result.code == 1
    assert "\x1b" not in result.err
    assert "a\\x1b[2Jb: holds neither" in result.err


def test_a_terminal_that_lacks_characters_still_gets_the_timeline(run):
    result = run("speak", "--replay", CALL, "--fast", "--speaker", "voice-like", encoding="cp1252")
    assert (result.code, result.err) == (0, "")
    assert "* cue   tool_call" in result.out


def test_json_of_a_turn_is_ascii_so_that_it_passes_any_terminal(run):
    result = run("speak", "--replay", CALL, "--fast", "--speaker", "voice-like", "--json", encoding="ascii")
    assert result.code == 0
    assert r"\u6771\u4eac" in result.out


def test_the_error_cue_of_an_answer_that_broke_off_follows_the_failure_and_no_call(run, tmp_path):
    (tmp_path / "cut.sse").write_bytes(CALL.read_bytes()[:900])
    result = run("speak", "--replay", "cut.sse", "--fast", "--speaker", "voice-like")
    assert result.code == 1
    assert "ms after the failure" in result.out
    assert "bytes of its call" not in result.out
    assert "the stream ended without a finish reason" not in result.out
    assert result.err.startswith("cues: cut.sse: the stream ended without a finish reason")


def test_a_server_that_cannot_be_reached_is_told_once_and_leaves_what_is_there_alone(run, tmp_path):
    (tmp_path / "speak.wav").write_bytes(b"yesterday's")
    arguments = ("speak", "hello", "--base-url", "http://127.0.0.1:1/v1", "--model", "m", "--speaker", "voice-like")
    result = run(*arguments)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert "http://127.0.0.1:1/v1" in result.err
    assert result.err.endswith("; is the server running? (`cues speak --replay FILE` works without a server)\n")
    assert json.loads(run(*arguments, "--json", "--out", "new/folder").out)["failure"]
    assert [path.name for path in tmp_path.iterdir()] == ["speak.wav"]
    assert (tmp_path / "speak.wav").read_bytes() == b"yesterday's"


def test_an_output_that_is_full_ends_in_one_line(run, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("cues.cli.list.print_json", full)
    result = run("list", "--json")
    assert (result.code, result.err) == (1, f"cues: {os.strerror(errno.ENOSPC)}\n")


@pytest.mark.parametrize("command", [("page", "x.html", "--speaker", "voice-like"), ("demo", "--fast"), ("list",)])
def test_the_first_fault_of_a_pack_names_the_command_that_tells_all(run, tmp_path, command):
    (tmp_path / "my pack").mkdir()
    (tmp_path / "my pack" / "pack.toml").write_text("[cues]\ntoolcall = 3\nattenton = 4\n")
    result = run(*command, "--pack", "my pack")
    assert (result.code, result.out) == (1, "")
    assert "toolcall: no rule names it, and it is not one of tool_call" in result.err
    assert result.err.endswith("did you mean 'tool_call'? (cues check 'my pack' lists all)\n")
    checked = run("check", "my pack")
    assert all(name in checked.out for name in ("toolcall", "attenton"))
