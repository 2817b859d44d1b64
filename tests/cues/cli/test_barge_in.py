"""Ctrl-C while the assistant speaks: the first is the user's voice, the second ends the program."""

import itertools
import json
import os
import signal

import pytest

from cues.cli._files import TurnFiles
from stream.replay.recording import samples_folder

SPEAK = ("speak", "--replay", samples_folder() / "llama-server" / "hermes-text-and-call.sse", "--fast")


@pytest.fixture
def press(monkeypatch):
    """A function that has Ctrl-C pressed at frames of the next command, counted from the first of its speech."""
    write = TurnFiles.write

    def pressed_at(*frames, spoken=True):
        numbers, begun = itertools.count(), not spoken

        def press_and_write(files, mixed, speech):
            nonlocal begun
            write(files, mixed, speech)
            begun = begun or speech.any()
            if begun and next(numbers) in frames:
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(TurnFiles, "write", press_and_write)

    return pressed_at


def test_the_first_ctrl_c_interrupts_the_answer_and_keeps_what_was_heard(run, tmp_path, press):
    press(60)
    result = run(*SPEAK, "--speaker", "voice-like")
    assert (result.code, result.err) == (0, "")
    assert "interrupted" in result.out
    record = json.loads((tmp_path / "speak.json").read_text(encoding="utf-8"))
    assert record["interrupted"]
    assert record["heard_text"].strip() in record["spoken_text"]


def test_the_second_ctrl_c_ends_the_program(run, press):
    press(60, 61)
    result = run(*SPEAK, "--speaker", "voice-like")
    assert (result.code, result.out, result.err) == (130, "", "cues: interrupted\n")


def test_an_answer_that_is_interrupted_before_anything_was_heard_leaves_no_file(run, tmp_path, press):
    press(0, spoken=False)
    result = run(*SPEAK, "--speaker", "voice-like", "--out", "new/folder")
    assert (result.code, result.out, result.err) == (130, "", "cues: interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ('data: {"error":{"message":"no"}}\n\n', False),
        ('data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"search"}}]}}]}\n\n', True),
        ('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n', True),
    ],
    ids=["only the failure sounded", "a call", "an empty answer"],
)
def test_a_turn_is_kept_if_a_cue_was_heard_or_it_came_to_its_end(run, tmp_path, answer, kept):
    (tmp_path / "answer.sse").write_text(answer)
    run("speak", "--replay", "answer.sse", "--fast", "--speaker", "voice-like")
    assert (tmp_path / "speak.wav").exists() is kept


def test_an_interrupted_demo_leaves_the_files_of_a_whole_one(run, tmp_path, press):
    assert run("demo", "--fast", "--speaker", "voice-like").code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    press(60)
    result = run("demo", "--fast", "--speaker", "voice-like")
    assert (result.code, result.out, result.err) == (130, "", "cues: interrupted\n")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
