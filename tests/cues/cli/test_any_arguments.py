"""Any arguments to any command that neither serves nor speaks: it works, or ends in a line that says why."""

import importlib
import io
import sys

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cues.cli import COMMANDS
from tests.support.packs import rhythm, write

# They run until somebody ends them, or for as long as their answer.
LONG = {"demo", "live", "speak", "proxy", "replay", "page", "play", "warm-up"}
VALUES = st.sampled_from(
    ["", "-", "--", ".", "speech.wav", "none.wav", "out.wav", "out.png", "pack", "agent", "agent@0.1", "@", "agent@",
     "agent@1e999", "nan", "1e999", "-1", "0", "3", "1/0", "C5", "x" * 300, "\udcff", "é\n", "%s", "{}", "http://127.0.0.1:1/",
     "http://h:99999/", "/dev/null", "\x1b[31m"]
)  # fmt: skip


def parts_of(name):
    """A command's own lines: itself, or its commands."""
    command = importlib.import_module(COMMANDS[name][0]).command
    inner = getattr(command, "commands", None)
    return [((name, part), each) for part, each in inner.items()] if inner else [((name,), command)]


LINES = dict(line for name in COMMANDS if name not in LONG for line in parts_of(name))


def option(parameter):
    """One option of a command, with a value or without, or an argument."""
    if isinstance(parameter, click.Argument):
        return st.tuples(VALUES)
    names = st.sampled_from([*parameter.opts, *parameter.secondary_opts])
    return st.tuples(names) if getattr(parameter, "is_flag", False) else st.tuples(names, VALUES)


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_any_arguments_end_in_an_exit_code_and_words(run, tmp_path, line, monkeypatch):
    write(tmp_path / "speech.wav", rhythm(0, 400))
    options = [option(parameter) for parameter in LINES[line].params if parameter.name != "watch"]

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(given=st.lists(st.one_of(*options, st.tuples(VALUES)), max_size=5))
    def attack(given):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\x00RIFF")))
        result = run(*line, *(word for words in given for word in words))
        assert result.code in {0, 1, 2}
        assert result.code == 0 or result.out or result.err.strip()
        assert "Traceback" not in result.err

    attack()
