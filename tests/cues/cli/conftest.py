"""The `cues` command inside of the test's own process: exit code, standard output and standard error."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from cues.cli import main


@dataclass(frozen=True)
class Result:
    """Result of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, tmp_path):
    """A function that runs `cues` with some arguments, in an empty folder, without the user's pack, 80 columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUES_PACK", "")
    monkeypatch.setenv("COLUMNS", "80")

    def run_command(*arguments: object, encoding: str = "utf-8") -> Result:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n") for _ in range(2))
        monkeypatch.setattr(sys, "argv", ["cues", *map(str, arguments)])
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main()
        texts = []
        for stream in (out, err):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode(encoding))
        return Result(ended.value.code or 0, *texts)

    return run_command
