"""The profiles: which calls sound, and when, on the mixer's own time."""

import dataclasses
import math

import numpy as np
import pytest

import cues
import stream
from cues.library.export import export_bank
from stream.events import Finish, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from tests.support.listening import steady_voice
from tests.support.routing import RATE, Pipeline, bank, spoken

ALL = bank("tool_call", "agent", "error", "success", "working")
GAP_S, LONG_S = 1.2, 2.5


class Line(Pipeline):
    """A pipeline that takes a turn's steps; `heard` has the cues with their onsets, seconds."""

    def __init__(self, profile="normal", *, bank=ALL, **options):
        rules = options.pop("rules", {})
        times = stream.ToolTimes()
        for name, took_s in options.pop("takes", {}).items():
            times.note(name, took_s)
        rules = stream.CueRules(**{"profile": profile, "working": None, **rules})
        super().__init__(bank, rules=rules, times=times, **options)
        self.played = []
        self.router.tell(on_played=self.played.append)

    def pass_s(self, seconds, speech=None):
        for _ in range(round(seconds * 50)):
            self.mixer.mix(np.zeros(480, dtype=np.float32) if speech is None else speech.copy())
            self.router.poll()

    def say(self, seconds):
        self.pass_s(seconds, steady_voice(0.02))

    def call(self, number=1, name="search"):
        self.handle(ToolCallStart(name, f"call_{number}"), ToolCallEnd(name, f"call_{number}"))

    def result(self, number=1, *, is_error=False):
        self.handle(ToolResult(tool_name="", tool_call_id=f"call_{number}", is_error=is_error, content=""))

    @property
    def heard(self):
        return [(played.cue, round(played.onset_samples / RATE, 2)) for played in self.played]


@pytest.mark.parametrize(
    ("profile", "takes", "onsets"),
    [
        ("full", {"search": 0.1}, [("tool_call", 0.0), ("success", 5.0)]),
        ("normal", {"search": 0.1}, [("tool_call", GAP_S)]),
        ("normal", {"search": 2.0}, [("tool_call", 0.0)]),
        ("normal", {}, [("tool_call", 0.0)]),
        ("minimal", {"search": 0.1}, [("tool_call", LONG_S)]),
        ("minimal", {"search": 9.0}, [("tool_call", LONG_S)]),
        ("minimal", {}, [("tool_call", LONG_S)]),
    ],
)
def test_a_call_sounds_at_once_if_a_long_silence_is_expected_else_when_there_is_one(profile, takes, onsets):
    line = Line(profile, takes=takes)
    line.call()
    line.pass_s(5.0)
    line.result()
    line.pass_s(1.0)
    assert line.heard == onsets


@pytest.mark.parametrize(
    ("profile", "sounds"),
    [
        ("full", [("tool_call", 0.0), ("working", 0.1 + 3.5)]),
        ("normal", [("tool_call", GAP_S), ("working", 3.0)]),
        ("minimal", [("working", LONG_S)]),
    ],
)
def test_in_the_minimal_profile_the_waiting_sound_is_the_only_sign_of_a_call(profile, sounds):
    line = Line(profile, takes={"search": 0.1}, rules={"working": "working"})
    line.call()
    line.pass_s(6.0)
    assert sorted((span.cue, round(span.start_s, 2)) for span in line.router.spans) == sounds


def test_a_short_tool_with_a_prompt_answer_makes_no_sound():
    line = Line(takes={"search": 0.1})
    for number in range(3):
        line.router.begin_turn()
        line.call(number)
        line.pass_s(0.1)
        line.result(number)
        line.pass_s(0.6)
        line.handle(TextDelta("It is sunny."))
        line.pass_s(0.3)
        line.say(1.0)
        line.handle(Finish("stop"))
        line.pass_s(10.0)
    assert line.heard == []
    assert line.router.times.usual("search").median_s == pytest.approx(0.1)


@pytest.mark.parametrize(("takes_s", "onset_s"), [(10.0, 2.3), (2.0, 2.0 + GAP_S), (None, 2.0 + GAP_S)])
def test_while_words_are_to_be_heard_no_call_sounds(takes_s, onset_s):
    line = Line(takes={} if takes_s is None else {"search": takes_s})
    line.handle(TextDelta("Let me look in the calendar."))  # 30 characters: two seconds
    line.call()
    line.say(2.0)
    line.pass_s(3.0)
    ((_, onset),) = line.heard
    assert onset == pytest.approx(onset_s, abs=0.3)


@pytest.mark.parametrize("working", [None, "working"])
@pytest.mark.parametrize(("profile", "quiet_s"), [("normal", GAP_S), ("minimal", LONG_S)])
def test_a_call_that_waits_for_silence_makes_way_for_words_that_are_on_their_way(profile, quiet_s, working):
    line = Line(profile, takes={"search": 0.1}, rules={"working": working})
    line.call()
    line.pass_s(quiet_s - 0.1)
    line.handle(TextDelta("One more second, please."))
    line.pass_s(0.14)
    line.say(1.5)
    assert line.heard == []


@pytest.mark.parametrize("cue", [ALL["tool_call"], spoken("tool_call")], ids=["tone", "phrase"])
def test_a_call_sounds_as_before_if_the_words_come_long_after_it(cue):
    line = Line("minimal", takes={"search": 0.1}, limits=stream.Limits(), bank=ALL | {"tool_call": cue})
    for _ in range(5):  # a voice that takes 6 s
        line.router.begin_turn()
        line.handle(TextDelta("Yes."))
        line.pass_s(6.0)
        line.say(0.5)
        line.handle(Finish("stop"))
    line.router.begin_turn()
    began_s = line.mixer.position / RATE
    line.call()
    line.pass_s(1.0)
    line.handle(TextDelta("It is sunny."))
    line.pass_s(6.0)
    ((_, onset),) = line.heard
    assert onset == pytest.approx(began_s + LONG_S, abs=0.02)


@pytest.mark.parametrize("profile", ["full", "normal", "minimal"])
def test_an_error_sounds_at_once_in_every_profile_and_takes_the_place_of_the_call(profile):
    line = Line(profile, takes={"search": 0.1})
    line.call()
    line.pass_s(0.5)
    line.result(is_error=True)
    line.pass_s(10.0)
    assert line.heard == [*([("tool_call", 0.0)] if profile == "full" else []), ("error", 0.5)]


@pytest.mark.parametrize("where", ["rules", "pack"])
def test_a_rule_for_a_tool_names_another_profile(where, tmp_path):
    (tmp_path / "pack.toml").write_text('[profiles]\n"read_*" = "full"')
    pack = cues.load_bank(tmp_path)
    export_bank(pack, tmp_path / "again")
    pack = cues.load_bank(tmp_path / "again")
    rules = {"profiles": (("read_*", "minimal" if where == "pack" else "full"), ("*", "minimal"))}
    line = Line("normal", bank=pack if where == "pack" else ALL, rules=rules)
    line.call(1, "read_file")
    line.pass_s(1.0)
    line.result()
    line.pass_s(1.0)
    line.call(2, "search")
    line.pass_s(3.0)
    line.result(2)
    assert line.heard == [("tool_call", 0.0), ("success", 1.0), ("tool_call", 2.0 + LONG_S)]


@pytest.mark.parametrize("where", ["tool", "rules"])
def test_the_first_guess_comes_from_the_tool_or_the_rules_until_results_are_known(where):
    tools = [stream.Tool(name="search", expected_s=0.1 if where == "tool" else None)]
    line = Line(tools=tools, rules={"expected_s": (("sea*", 0.1),)} if where == "rules" else {})
    line.call()
    line.pass_s(0.5)
    assert line.heard == []
    line.pass_s(5.0)
    line.result()
    line.pass_s(2.0)
    line.call(2)
    assert line.heard == [("tool_call", GAP_S), ("tool_call", 7.5)]


def test_at_most_six_calls_sound_in_a_minute_beside_errors():
    line = Line(takes={"search": 5.0})
    for number in range(12):
        line.call(number)
        line.pass_s(2.0)
        line.result(number, is_error=number % 2 == 1)
        line.pass_s(3.0)
    sounds = [cue for cue, _ in line.heard]
    assert sounds.count("tool_call") == 6
    assert sounds.count("error") == 6
    line.pass_s(10.0)
    line.call(20)
    assert line.heard[-1] == ("tool_call", 70.0)


def test_a_call_that_waited_for_silence_counts_from_when_it_sounds():
    line = Line(takes={"slow": 9.0, "search": 0.1})
    line.call(0)
    line.pass_s(10.0)
    for number in range(1, 6):
        line.call(number, "slow")
        line.pass_s(10.0)
        line.result(number)
    line.call(6, "slow")  # 60.0 s after the first call, 58.8 s after its cue
    line.pass_s(1.0)
    assert [onset for _, onset in line.heard] == [GAP_S, 10.0, 20.0, 30.0, 40.0, 50.0]


def test_a_call_that_is_dropped_takes_no_other_from_the_count():
    uncounted = dataclasses.replace(stream.Profile(), silence_s=math.inf, unknown=False, after_s=LONG_S)
    line = Line(takes={"slow": 9.0}, rules={"profiles": (("other", uncounted),)})
    for number in range(6):
        line.call(number, "slow")
        line.pass_s(2.0)
        line.result(number)
    line.router.cancel()
    line.call(6, "other")
    line.pass_s(1.0)
    line.router.cancel()
    line.call(7, "slow")
    assert [onset for _, onset in line.heard] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


@pytest.mark.parametrize(("profile", "faintest"), [("full", 1.0), ("normal", 10 ** (-6 / 20))])
def test_the_waiting_sound_grows_fainter_by_a_decibel_a_minute_down_to_six(profile, faintest):
    line = Line(profile, rules={"working": "working"}, limits=stream.Limits(tool_s=1000.0))
    line.call()
    levels = []
    for _ in range(9):
        line.pass_s(30.0)
        levels.append(max(np.abs(line.mixer.silence(RATE)).max() for _ in range(2)))
        line.pass_s(28.0)
    levels = np.array(levels) / levels[0]
    assert levels[-1] == pytest.approx(faintest, rel=0.01)
    assert np.allclose(levels[:7], [faintest ** (n / 6) for n in range(7)], rtol=0.01)


def test_no_call_sounds_over_the_waiting_sound():
    line = Line(rules={"working": "working", "silence_s": 1.0})
    line.router.begin_turn()
    line.pass_s(3.0)
    line.call()
    line.pass_s(10.0)
    assert line.heard == []


@pytest.mark.parametrize("end", ["barge_in", "cancel", "answer"])
def test_a_call_that_waits_for_silence_is_dropped_at_the_end_of_its_turn(end):
    line = Line(takes={"search": 0.1})
    line.router.begin_turn()
    line.call()
    line.pass_s(0.5)
    if end == "answer":
        line.result()
        line.handle(TextDelta("Yes."))
        line.say(0.5)
    else:
        getattr(line.router, end)()
    line.pass_s(10.0)
    assert line.heard == []


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"profile": "loud"}, "profile is 'loud'; it must be 'full', 'normal' or 'minimal'"),
        ({"profiles": (("read_*", "loud"),)}, "profile is 'loud'"),
        ({"profiles": "read_*"}, "pairs of a pattern"),
        ({"silence_s": -1.0}, "silence_s is -1.0"),
        ({"expected_s": (("read_*", -1.0),)}, "expected_s: 'read_\\*' is -1.0"),
    ],
)
def test_wrong_profiles_are_refused(wrong, match):
    with pytest.raises(stream.StreamError, match=match):
        stream.CueRules(**wrong)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"silence_s": "1"}, "silence_s is '1'; it must be a number"),
        ({"after_s": math.nan}, "after_s is nan"),
        ({"working_after_s": -math.inf}, "working_after_s is -inf; it must be 0 or more"),
        ({"working_after_s": 10**400}, "working_after_s has more digits"),
        ({"most_per_minute": None}, "most_per_minute is None"),
        ({"fainter_db": math.inf}, "fainter_db is inf; it must be 0 or more, and finite"),
        ({"faintest_db": -1.0}, "faintest_db is -1.0"),
        ({"success": 1}, "success is 1; it must be True or False"),
        ({"ducks": None}, "ducks is None; it must be True or False"),
    ],
)
def test_wrong_numbers_of_a_profile_are_refused(wrong, match):
    with pytest.raises(stream.StreamError, match=match):
        stream.Profile(**wrong)


def test_a_profile_of_ones_own():
    own = dataclasses.replace(stream.Profile(), silence_s=0.5, success=False)
    line = Line(own, takes={"search": 0.01})
    line.call()
    line.pass_s(0.4)
    line.result()
    line.pass_s(3.0)
    assert line.heard == [("tool_call", 0.0)]
