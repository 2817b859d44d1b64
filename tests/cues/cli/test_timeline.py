"""The timeline of a turn in a terminal."""

from cues.cli.live.timeline import print_timeline
from stream.events import ToolCallStart
from stream.session.record import Seen, Sounded, TurnRecord


def test_a_cue_in_the_frame_of_its_event_is_not_shown_before_it(capsys):
    call = Seen(ToolCallStart("search", "c1", 0), None, 1.000004)
    print_timeline(TurnRecord(24000, seen=[call], sounded=[Sounded("tool_call", call, 24000, 1.0)]))
    assert "tool_call, 0.0 ms after the bytes of its call" in capsys.readouterr().out
