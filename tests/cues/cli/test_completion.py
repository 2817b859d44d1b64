"""Shell completion, by the shell itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        ("show a", ["agent", "attention"]),
        ("play agent er", ["error"]),
        ("mix speech.wav --cue ag", ["agent@"]),
        ("mix --placement r", ["replace"]),
        ("replay --scenario fork-du", ["fork-duplicate"]),
        ("batch me", ["measure"]),
        ("show --pn", ["--png"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bash_completes_names_and_options(tmp_path, words, offers):
    """By bash itself, with the line that `cues doctor` gives."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "cues").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cues "$@"\n')
    (folder / "cues").chmod(0o755)
    script = (
        'eval "$(_CUES_COMPLETE=bash_source cues)"; complete -p cues >&2; '
        f"COMP_WORDS=(cues {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
        '_cues_completion cues "${COMP_WORDS[COMP_CWORD]}"; echo "${COMPREPLY[@]}"'
    )
    environment = {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CUES_PACK": "",
    }
    result = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert "-F _cues_completion cues" in result.stderr
    assert result.stdout.split() == offers
