"""Ctrl-C while the assistant speaks: the first is the user's voice, the second ends the program."""

import asyncio
import itertools
import os
import signal

import pytest

from cues.cli._files import TurnFiles
from cues.cli.live.turn import TurnReport, _barge_in_at_ctrl_c, _is_worth_keeping, print_timeline
from stream.events import Finish, StreamFailed, TextDelta, ToolCallStart
from stream.session.record import HeardWord, Seen, Sounded, TurnRecord


class Session:
    n_interrupted = 0

    def barge_in(self):
        self.n_interrupted += 1


async def pressed(session, times):
    with _barge_in_at_ctrl_c(session):
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.01)


def test_the_first_ctrl_c_interrupts_the_answer():
    session = Session()
    asyncio.run(pressed(session, 1))
    assert session.n_interrupted == 1


def test_the_second_ctrl_c_ends_the_program():
    session = Session()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(pressed(session, 2))
    assert session.n_interrupted == 1


def test_an_answer_that_is_interrupted_before_anything_was_heard_ends_like_any_interrupted_command(tmp_path, capsys):
    with TurnFiles(tmp_path / "out", "speak", 24000) as files:
        files.kept = _is_worth_keeping(TurnRecord(24000, interrupted=True))
    turn = TurnReport(journal=TurnRecord(24000, interrupted=True), files=files, speaker="nobody", server="nowhere")
    with pytest.raises(KeyboardInterrupt):
        turn.show(as_json=False)
    assert capsys.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


CALL = Seen(ToolCallStart("search", "c1", 0), None, 0.0)
FAILED = Seen(StreamFailed("no server"), None, 0.0)


@pytest.mark.parametrize(
    ("journal", "kept"),
    [
        (TurnRecord(24000, failure="no server", seen=[FAILED], sounded=[Sounded("error", FAILED, 0, 0.0)]), False),
        (
            TurnRecord(24000, failure="cut", seen=[Seen(TextDelta("So"), None, 0.0)], heard=[HeardWord("So", 0, 0.0)]),
            True,
        ),
        (TurnRecord(24000, failure="cut", seen=[CALL], sounded=[Sounded("tool_call", CALL, 0, 0.0)]), True),
        (TurnRecord(24000, seen=[Seen(Finish("stop"), None, 0.0)]), True),
        (TurnRecord(24000, failure="no speaker", seen=[Seen(Finish("stop"), None, 0.0)]), False),
    ],
    ids=["only the failure sounded", "a word", "a call", "an empty answer", "nobody could speak it"],
)
def test_a_turn_is_kept_if_it_was_heard_or_came_to_its_end(journal, kept):
    assert _is_worth_keeping(journal) is kept


def test_a_cue_in_the_frame_of_its_event_is_not_shown_before_it(capsys):
    call = Seen(ToolCallStart("search", "c1", 0), None, 1.000004)
    print_timeline(TurnRecord(24000, seen=[call], sounded=[Sounded("tool_call", call, 24000, 1.0)]))
    assert "tool_call, 0.0 ms after the bytes of its call" in capsys.readouterr().out


def test_an_interrupted_demo_leaves_the_files_of_a_whole_one(run, tmp_path, monkeypatch):
    assert run("demo", "--fast", "--speaker", "voice-like").code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write, n_frames = TurnFiles.write, itertools.count()

    def pressed_after_a_second(files, mixed, speech):
        write(files, mixed, speech)
        if next(n_frames) == 100:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(TurnFiles, "write", pressed_after_a_second)
    result = run("demo", "--fast", "--speaker", "voice-like")
    assert (result.code, result.out, result.err) == (130, "", "cues: interrupted\n")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
