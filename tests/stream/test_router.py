"""The router: which cue for what, and when none."""

import numpy as np
import pytest

import cues
from stream.events import StreamFailed, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from stream.router import DEFAULT_RULES, CueRouter, CueRules

RATE = 24000


def bank(*names, seconds=0.1):
    samples = np.sin(np.arange(round(seconds * RATE)) * 0.1).astype(np.float32) * np.float32(0.1)
    return {name: cues.Cue(name=name, samples=samples, sample_rate=RATE) for name in names}


ALL = bank("tool_call", "agent", "error", "success", "working", "mine")


class Pipeline:
    """A router with its mixer, and a way to let time pass."""

    def __init__(self, bank=ALL, **options):
        self.mixer = cues.Mixer(RATE)
        self.router = CueRouter(bank, self.mixer, **options)

    def handle(self, *events):
        return [played.cue for event in events if (played := self.router.handle(event)) is not None]

    def pass_s(self, seconds):
        """Let silence pass; the samples that came out."""
        return np.concatenate(
            [np.array(self.mixer.mix(np.zeros(480, dtype=np.float32))) for _ in range(round(seconds * RATE / 480))]
        )


@pytest.mark.parametrize(
    ("event", "cue"),
    [
        (ToolCallStart("read_file"), ["tool_call"]),
        (ToolCallStart("spawn_agent"), ["agent"]),
        (ToolCallStart("delegate"), ["agent"]),
        (ToolCallStart("run_sub_agent"), ["agent"]),
        (ToolCallEnd("read_file", arguments_json="{}"), []),
        (ToolCallEnd("read_file", status="incomplete"), ["error"]),
        (ToolCallEnd("read_file", status="malformed"), ["error"]),
        (ToolResult("", "read_file", is_error=False, content=""), ["success"]),
        (ToolResult("", "read_file", is_error=True, content=""), ["error"]),
        (StreamFailed("gone"), ["error"]),
        (TextDelta("hello"), []),
    ],
    ids=repr,
)
def test_each_event_has_its_cue(event, cue):
    assert Pipeline().handle(event) == cue


def test_the_cue_begins_with_the_next_sample_that_is_put_out():
    pipeline = Pipeline()
    pipeline.pass_s(0.2)
    played = pipeline.router.handle(ToolCallStart("read_file"))
    assert played.onset_samples == pipeline.mixer.position == round(0.2 * RATE)
    assert np.abs(pipeline.pass_s(0.02)).max() > 0


def test_patterns_are_tried_in_order_and_a_packs_rules_come_first():
    class PackBank(dict):
        rules = (("read_*", "mine"),)

    rules = CueRules(tools=(("read_file", "agent"), ("*_file", None)))
    assert Pipeline(rules=rules).handle(ToolCallStart("read_file")) == ["agent"]
    assert Pipeline(rules=rules).handle(ToolCallStart("write_file")) == []
    assert Pipeline(rules=rules).handle(ToolCallStart("other")) == ["tool_call"]
    assert Pipeline(PackBank(ALL), rules=rules).handle(ToolCallStart("read_file")) == ["mine"]


def test_a_tool_that_was_never_declared_is_announced_as_an_error():
    assert Pipeline(tools=["read_file"]).handle(ToolCallStart("reed_file")) == ["error"]
    assert Pipeline(tools=["read_file"]).handle(ToolCallStart("read_file")) == ["tool_call"]


def test_a_cue_that_the_bank_lacks_is_silent():
    assert Pipeline(bank("error")).handle(ToolCallStart("read_file")) == []


def test_ten_parallel_calls_sound_once():
    pipeline = Pipeline()
    assert pipeline.handle(*(ToolCallStart("read_file", index=n) for n in range(10))) == ["tool_call"]
    assert pipeline.router.stats.coalesced == 9


def test_the_same_cue_sounds_again_after_300_ms():
    pipeline = Pipeline()
    pipeline.handle(ToolCallStart("a"))
    pipeline.pass_s(0.28)
    assert pipeline.handle(ToolCallStart("b")) == []
    pipeline.pass_s(0.02)
    assert pipeline.handle(ToolCallStart("c")) == ["tool_call"]


def test_a_burst_is_thinned_to_three_and_then_to_one_a_second():
    pipeline = Pipeline()
    sounded = []
    for _ in range(20):
        sounded += pipeline.handle(ToolCallStart("a"))
        pipeline.pass_s(0.4)
    # Three at once and one a second over the 7.6 s to the last call.
    assert 3 + 7 <= len(sounded) <= 3 + 8
    assert pipeline.router.stats.thinned == 20 - len(sounded)


def test_muted_cues_stay_silent_until_they_are_wanted_again():
    pipeline = Pipeline()
    pipeline.router.muted = True
    assert pipeline.handle(ToolCallStart("a"), ToolResult("", "a", is_error=True, content="")) == []
    assert not pipeline.mixer.active
    pipeline.router.muted = False
    assert pipeline.handle(ToolCallStart("b")) == ["tool_call"]
    assert pipeline.router.stats.muted == 2


def test_a_long_tool_gets_a_waiting_sound_that_its_result_ends():
    pipeline = Pipeline()
    pipeline.handle(ToolCallStart("slow", "id"), ToolCallEnd("slow", "id"))
    assert np.abs(pipeline.pass_s(3.4)[-RATE:]).max() == 0.0
    assert np.abs(pipeline.pass_s(2.0)[-RATE:]).max() > 0.0
    pipeline.handle(ToolResult("id", "slow", is_error=False, content=""))
    assert np.abs(pipeline.pass_s(2.0)[-RATE:]).max() == 0.0


def test_the_waiting_sound_goes_on_through_further_calls_until_the_last_result():
    pipeline = Pipeline(rules=CueRules(success=None))
    pipeline.handle(ToolCallStart("a", "1"))
    pipeline.pass_s(4.0)
    started = pipeline.mixer.stats.started
    pipeline.router.muted = False
    pipeline.handle(ToolCallStart("b", "2"), ToolResult("1", "a", is_error=False, content=""))
    assert pipeline.mixer.stats.started <= started + 1  # The new call's own cue; the loop did not begin anew.
    assert np.abs(pipeline.pass_s(2.0)[-RATE:]).max() > 0.0
    pipeline.handle(ToolResult("2", "b", is_error=False, content=""))
    assert np.abs(pipeline.pass_s(1.0)[-RATE // 2 :]).max() == 0.0


@pytest.mark.parametrize("end", [TextDelta("Well,"), StreamFailed("gone")], ids=["speech", "failure"])
def test_speech_and_failure_end_the_wait_where_no_result_is_told(end):
    pipeline = Pipeline(rules=CueRules(error=None))
    pipeline.handle(ToolCallStart("slow"))
    pipeline.pass_s(4.0)
    pipeline.handle(end)
    assert np.abs(pipeline.pass_s(2.0)[-RATE:]).max() == 0.0


def test_white_space_does_not_end_the_wait():
    pipeline = Pipeline()
    pipeline.handle(ToolCallStart("slow"), TextDelta("\n"))
    assert np.abs(pipeline.pass_s(5.0)[-RATE:]).max() > 0.0


def test_a_cancelled_turn_leaves_no_waiting_sound():
    pipeline = Pipeline()
    pipeline.handle(ToolCallStart("slow"))
    pipeline.router.cancel()
    pipeline.pass_s(0.5)
    assert np.abs(pipeline.pass_s(5.0)).max() == 0.0


def test_the_default_rules_are_those_of_the_first_use():
    assert {name: DEFAULT_RULES.cue_for_tool(name) for name in ("spawn_agent", "delegate", "run_sub_agent")} == {
        "spawn_agent": "agent",
        "delegate": "agent",
        "run_sub_agent": "agent",
    }
