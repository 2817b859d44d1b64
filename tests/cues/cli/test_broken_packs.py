"""Every command that takes `--pack`, on packs with anything in them: it works, or ends in one line that says why."""

import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream.replay.recording import samples_folder
from tests.support.packs import rhythm, write

RECORDING = str(samples_folder() / "llama-server" / "hermes-text-and-call.sse")
LINES = {
    "demo": ("demo", "--fast", "--speaker", "voice-like"),
    "speak": ("speak", "--replay", RECORDING, "--fast", "--speaker", "voice-like"),
    "mix": ("mix", "speech.wav", "--cue", "agent@0.1"),
    "export": ("export", "exported"),
    "list": ("list",),
    "show": ("show", "agent"),
    "diff": ("diff", "agent", "error"),
    "play": ("play", "agent", "--over", "none.wav"),
    "page": ("page", "board.html", "--over", "speech.wav"),
    "doctor": ("doctor", "--json"),
    "warm-up": ("warm-up",),
    "batch mix": ("batch", "mix", "plan.csv", "--workers", "1"),
}
# A pack that can be used is a long turn for these; the other commands show that it can.
LONG = {"warm-up", "demo", "speak", "page", "batch mix", "play"}


NAMES = st.sampled_from(["agent", "tool_call", "mail", "motif", "a b", "", "motif:x"])
FILES = st.sampled_from(["x.wav", "none.wav", "empty.wav", "nan.wav", "../x.wav", ".", "", "x.m4a", "\0"])
VALUES = st.recursive(
    FILES | NAMES | st.integers(-(10**20), 10**20) | st.floats() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["hz", "notes", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
KEYS = ["file", "spec", "gain_db", "target_lu", "normalize", "trim", "loop", "x"]
LOOPS = st.dictionaries(st.sampled_from(["start_ms", "end_ms", "period_ms", "x"]), VALUES, max_size=3)
NOTES = st.lists(
    st.dictionaries(st.sampled_from(["hz", "note", "length_ms", "start_ms"]), VALUES, max_size=3), max_size=2
)
SPECS = st.dictionaries(st.sampled_from(["notes", "envelope", "timbre", "tail_ms", "peak"]), VALUES | NOTES, max_size=3)
TABLES = st.dictionaries(st.sampled_from(KEYS), VALUES | LOOPS | SPECS, max_size=4)
PACKS = st.fixed_dictionaries(
    {},
    optional={
        "cues": st.dictionaries(NAMES, FILES | TABLES | VALUES, max_size=3) | VALUES,
        "rules": st.dictionaries(st.sampled_from(["read_*", "", "["]), NAMES | VALUES, max_size=2) | VALUES,
        "pack": VALUES,
        "other": VALUES,
    },
)


def toml(value):
    """`value` as inline TOML."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return '"' + "".join(c if c.isalnum() or c in " .*/_:[" else f"\\u{ord(c):04x}" for c in value) + '"'
        case dict():
            return "{" + ", ".join(f"{toml(key)} = {toml(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case _:
            return repr(value)


@pytest.fixture
def folder(tmp_path):
    pack = tmp_path / "pack"
    pack.mkdir()
    write(pack / "x.wav", rhythm(0, 90))
    write(pack / "empty.wav", np.zeros(0))
    write(pack / "nan.wav", np.full(480, np.nan))
    write(tmp_path / "speech.wav", rhythm(0, 400))
    (tmp_path / "plan.csv").write_text("file,cue,time_s\nnone.wav,agent,0.1\n")
    return pack


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pack=PACKS | st.binary(max_size=40) | st.text(max_size=40))
def test_no_command_ends_in_a_traceback(run, folder, pack):
    data = pack if isinstance(pack, bytes) else pack.encode("utf-8", "replace") if isinstance(pack, str) else None
    if data is None:
        data = "\n".join(f"{key} = {toml(value)}" for key, value in pack.items()).encode()
    (folder / "pack.toml").write_bytes(data)
    shutil.rmtree("exported", ignore_errors=True)
    checked = run("check", "pack")
    assert checked.code in {0, 1}
    assert "pack: " in checked.out.splitlines()[-1]
    usable = run("list", "--pack", "pack").code == 0
    assert usable or checked.code == 1  # `list` recommends `check`, which then knows why
    for name, line in LINES.items():
        if not (usable and name in LONG):
            # A traceback would come as an exception out of `run`, which expects SystemExit.
            result = run(*line, "--pack", "pack")
            assert result.code in ({0} if usable or name == "doctor" else {1}), (line, result)
            assert usable or name == "doctor" or result.err.startswith("cues: pack/pack.toml: "), result.err


@pytest.mark.parametrize("state", ["a folder", "a dangling link", "no bytes of UTF-8", "nothing"])
def test_no_command_ends_in_a_traceback_where_pack_toml_is_no_file(run, folder, state):
    path = folder / "pack.toml"
    if state == "a folder":
        path.mkdir()
    elif state == "a dangling link":
        path.symlink_to("nowhere.toml")
    elif state == "no bytes of UTF-8":
        path.write_bytes(b"\xff\xfe")
    for line in [*LINES.values(), ("list", "--json")]:
        assert run(*line, "--pack", "pack").code == (0 if line[0] == "doctor" else 1)
    assert run("check", "pack").code == 1
