"""Wrong arguments of each command: the message names the value, what is allowed, and a fix."""

import socket

import numpy as np
import pytest
import soundfile

from stream.replay.recording import samples_folder

CALL = samples_folder() / "llama-server" / "hermes-text-and-call.sse"
BOTH = "standard output holds either the JSON or the file"


@pytest.fixture
def files(run, tmp_path):
    """A pack, a recording of 1 s, and JSON that nests too deep."""
    (tmp_path / "deep.json").write_text("[" * 99999)
    assert run("new-pack", "mine").code == 0
    soundfile.write(tmp_path / "speech.wav", np.full(24000, 0.1), 24000)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("demmo", 2, "No such command 'demmo'; did you mean 'demo'?"),
        ("page board --speaker voice-like", 2, "must end in .html or .htm\n"),
        ("show agent --png agent.jpg", 2, "must end in .png\n"),
        ("replay --scenario fork-dup", 2, "did you mean 'fork-duplicate'?"),
        ("replay", 2, "give either recordings or --scenario"),
        ("replay a.sse --scenario list", 2, "give either recordings or --scenario"),
        ("record http://h/v1 --model m --prompt p -o x.sse --header k3y", 2, "a --header looks like 'Name: value'"),
        ("mix speech.wav --cue agent@0 -o - --json", 2, BOTH),
        ("show agent --png - --json", 2, BOTH),
        ("diff agent error --png - --json", 2, BOTH),
        ("page x.html --serve", 2, "give OUT.html or --serve, not both"),
        ("list --pack mine/agent.wav", 2, "Directory 'mine/agent.wav' is a file"),
        ("diff mine nope", 2, "'mine' is a folder and 'nope' is not; give two packs, or two sounds"),
        ("batch mix speech.wav", 1, "speech.wav: cannot be read: it is not text in UTF-8"),
        ("speak x --base-url http://h --model m --tools speech.wav", 2, "it is not text in UTF-8"),
        ("speak x --base-url http://h --model m --tools deep.json", 2, "'deep.json' holds no tool definitions"),
        ("record http://h/v1 --body deep.json -o x.sse", 2, "'deep.json' is not JSON"),
        ("proxy --upstream http://[", 2, "'http://[' must be an http:// or https:// address"),
        ("speak x --base-url ftp://me:k3y@h", 2, "'ftp://h' must be an http:// or https:// address"),
        ("replay speech.wav", 1, r"it begins with b'RIFF"),
    ],
)
def test_a_wrong_argument_is_answered_with_its_value_and_what_is_allowed(run, files, line, code, said):
    result = run(*line.split())
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert "k3y" not in result.err
    assert max(map(len, result.err.splitlines())) < 200


@pytest.mark.parametrize("line", [f"replay {CALL}", "live --speaker voice-like", "page --serve --speaker voice-like"])
def test_a_port_in_use_is_named_with_the_way_to_a_free_one(run, line):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(*line.split(), "--port", port)
    assert result.code == 1
    said = f"cues: cannot listen on 127.0.0.1:{port}: Address already in use; port 0 takes a free one\n"
    assert result.err.endswith(said)


def test_a_speech_server_without_a_key_says_which_variable_is_missing(run, monkeypatch):
    for name in ("OPENAI_API_KEY", "CUES_SPEECH_URL"):
        monkeypatch.delenv(name, raising=False)
    result = run("demo", "--fast", "--speaker", "openai")
    assert result.code == 1
    assert result.err.endswith(" needs a key in OPENAI_API_KEY; CUES_SPEECH_URL names another speech server\n")
