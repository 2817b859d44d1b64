"""What each tool takes, learned; and the silence that follows from it. Times are numbers here, no clock runs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stream
from stream.routing.expected_silence import ExpectedSilence
from stream.routing.tool_times import Took
from tests.support.threads import run_together

SECONDS = st.floats(0.0, 600.0).map(lambda s: round(s, 3))


@given(st.lists(SECONDS, min_size=1, max_size=50))
def test_the_last_twenty_results_decide_also_after_json(durations_s):
    times = stream.ToolTimes()
    for took_s in durations_s:
        times.note("search", took_s)
    last = sorted(durations_s[-20:])
    usual = stream.ToolTimes.from_json(times.to_json()).usual("search")
    assert usual == times.usual("search")
    assert sum(took_s <= usual.median_s for took_s in last) >= len(last) / 2
    assert sum(took_s <= usual.p90_s for took_s in last) >= 0.9 * len(last)
    assert usual.p90_s in last
    assert last[0] <= usual.median_s <= usual.p90_s


def test_of_more_than_512_tools_the_last_used_are_kept():
    times = stream.ToolTimes()
    for number in range(600):
        times.note(f"tool_{number}", 1.0)
        times.note("search", 2.0)
    assert len(times) == 512
    assert times.usual("tool_0") is None
    assert times.usual("search") == Took(2.0, 2.0)
    assert times.usual("tool_599") == Took(1.0, 1.0)


def test_threads_share_one_object():
    times = stream.ToolTimes()

    def work(number):
        for _ in range(300):
            times.note(f"tool_{number % 3}", 1.0)
            assert times.usual(f"tool_{number % 3}") == Took(1.0, 1.0)
            stream.ToolTimes.from_json(times.to_json())

    run_together(*[lambda n=n: work(n) for n in range(6)])
    assert {len(of_name) for of_name in json.loads(times.to_json()).values()} == {20}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 1}', '{"a": ["1"]}', '{"a": [NaN]}', '{"a": [null]}', "[" * 5000, f'{{"a": [{10**400}]}}']
)
def test_other_json_is_rejected(text):
    with pytest.raises(stream.StreamError, match="ToolTimes"):
        stream.ToolTimes.from_json(text)


def test_expected_silence_is_what_is_left_of_tool_model_and_voice_less_the_speech():
    silence, search = ExpectedSilence(), Took(4.0, 9.0)
    for turn_s in (0.0, 100.0, 200.0):  # the model takes 2 s, the voice half a second
        silence.ask(turn_s)
        silence.text("Yes.", turn_s + 2.0)
        silence.heard(turn_s + 2.5)
        silence.cut()
    expected = [silence.after(300.0, [(search, elapsed_s)]).silence_s for elapsed_s in (0.0, 3.0, 5.0)]
    assert expected == pytest.approx([4.0 + 2.5, 1.0 + 2.5, 4.0 + 2.5])
    assert silence.after(300.0, [(search, 1.0), (Took(1.0, 1.0), 0.5)]).silence_s == pytest.approx(3.0 + 2.5)
    assert silence.after(300.0, [(search, 0.0)], queued_s=2.0) == (pytest.approx(4.5), 2.0)
    assert silence.after(300.0, [(search, 0.0)], queued_s=20.0) == (0.0, 20.0)
    silence.ask(300.0)
    assert silence.after(301.0, []).silence_s == pytest.approx(1.0 + 0.5)
    silence.text("x" * 30, 302.0)
    silence_s, speech_s = silence.after(302.0, [(search, 0.0)])
    assert (silence_s, speech_s) == (pytest.approx(4.0 + 2.5 - speech_s), pytest.approx(0.5 + 2.0))


@pytest.mark.parametrize("running", [[(None, 0.0)], [(Took(1.0, 2.0), 2.1)], [(Took(1.0, 2.0), 0.0), (None, 0.0)]])
def test_a_tool_without_a_known_end_makes_the_silence_unknown(running):
    assert ExpectedSilence().after(0.0, running).silence_s is None


def test_speech_of_before_a_call_does_not_teach_how_long_the_voice_takes():
    silence = ExpectedSilence()
    before = silence.after(0.0, [(Took(1.0, 1.0), 0.0)])
    silence.ask(0.0)
    silence.text("Let me look.", 0.7)
    silence.called(0.7)
    silence.ask(50.0)
    silence.text("Yes.", 50.7)
    silence.heard(51.0)
    silence.cut()
    assert silence.after(60.0, [(Took(1.0, 1.0), 0.0)]).silence_s == pytest.approx(before.silence_s)
