"""Cues that follow the words, where no session knows when they end: tones placed after them, and phrases."""

import numpy as np
import pytest

from stream import CueRules, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart, ToolResult
from tests.support.listening import new_clicks, steady_voice
from tests.support.routing import ALL, RATE, Pipeline, spoken

BREATH_S, QUIET_S, LATE_S = 0.25, 0.2, 2.0
FRAME_S = 0.02
TONES = CueRules(placement="after_words", working=None)
PHRASES = CueRules(success=None, working=None)
FAILED = ToolResult(tool_name="", tool_call_id="1", is_error=True, content="")


SPOKEN = ALL | {name: spoken(name) for name in ("tool_call", "error")}
KINDS = pytest.mark.parametrize(("bank", "rules"), [(ALL, TONES), (SPOKEN, PHRASES)], ids=["tone", "phrase"])


class Talk(Pipeline):
    """A pipeline whose speech, if it `tells`, is queued before the mixer and reported."""

    def __init__(self, bank, rules, *, tells=True):
        super().__init__(bank, rules=rules)
        self._tells, self.said = tells, []
        self.played = []
        self.router.tell(on_played=self.played.append)
        self.router.poll()

    def say(self, speech):
        for start in range(0, len(speech), 480):
            if self._tells and speech.any():
                self.router.speech(self.mixer.position + len(speech) - start)
            super().say(speech[start : start + 480])
            self.said.append(speech[start : start + 480])
            self.router.poll()

    def words(self, seconds):
        self.say(steady_voice(seconds))

    def call(self):
        self.handle(ToolCallStart("look", "1"), ToolCallEnd("look", "1"))

    def queue(self, seconds):
        """Report words, and let the first frame of them be heard; the rest, to `say`."""
        words = steady_voice(seconds)
        self.router.speech(self.mixer.position + len(words))
        super().say(words[:480])
        self.said.append(words[:480])
        return words[480:]

    @property
    def onsets(self):
        return [(played.cue, round(played.onset_samples / RATE, 2)) for played in self.played]


@KINDS
@pytest.mark.parametrize("tells", [True, False], ids=["queue known", "by ear"])
@pytest.mark.parametrize("fails", [False, True], ids=["called", "failed"])
def test_a_cue_that_follows_the_words_sounds_once_they_end_and_never_over_them(bank, rules, tells, fails):
    talk = Talk(bank, rules, tells=tells)
    if fails:
        talk.call()
        talk.pass_s(3.0)
        talk.played.clear()
    began_s = talk.mixer.position / RATE
    rest = talk.queue(4.0) if tells else steady_voice(4.0)
    if not tells:
        talk.say(rest[:960])
        rest = rest[960:]
    if fails:
        talk.handle(FAILED)
    else:
        talk.call()
    talk.say(rest)
    talk.pass_s(2.0)
    ((cue, onset_s),) = talk.onsets
    assert cue == ("error" if fails else "tool_call")
    assert 4.0 <= onset_s - began_s <= 4.0 + BREATH_S + FRAME_S
    n = round(began_s * RATE)
    assert np.array_equal(talk.out[n : n + 4 * RATE], np.concatenate(talk.said)[n : n + 4 * RATE])
    assert not new_clicks(talk.out, np.concatenate(talk.said))


@KINDS
def test_without_words_on_their_way_it_comes_as_soon_as_before(bank, rules):
    talk = Talk(bank, rules)
    talk.words(1.0)
    talk.pass_s(1.0)
    talk.call()
    talk.pass_s(1.0)
    assert talk.onsets == [("tool_call", 2.0)]


@KINDS
@pytest.mark.parametrize("late_s", [0.5, 1.5])
def test_words_whose_text_is_told_are_awaited(bank, rules, late_s):
    talk = Talk(bank, rules)
    talk.handle(TextDelta("Let me look."))
    talk.call()
    talk.pass_s(late_s)
    talk.words(1.0)
    talk.pass_s(1.0)
    ((_, onset_s),) = talk.onsets
    assert late_s + 1.0 <= onset_s <= late_s + 1.0 + BREATH_S + FRAME_S


@KINDS
def test_words_that_do_not_come_are_not_awaited_for_ever(bank, rules):
    talk = Talk(bank, rules)
    talk.handle(TextDelta("…"))
    talk.call()
    talk.pass_s(4.0)
    assert talk.onsets == [("tool_call", pytest.approx(LATE_S, abs=2 * FRAME_S))]


@KINDS
def test_whoever_speaks_may_know_that_a_pause_is_none_of_its_ends(bank, rules):
    talk, is_speaking = Talk(bank, rules, tells=False), [True]
    talk.router.words_go_on(lambda: is_speaking[0] or None)
    talk.words(1.0)
    talk.call()
    talk.pass_s(0.8)
    talk.words(1.0)
    is_speaking[0] = False
    talk.pass_s(1.0)
    ((_, onset_s),) = talk.onsets
    assert 2.8 <= onset_s <= 2.8 + BREATH_S + FRAME_S


def test_more_words_take_the_place_of_a_phrase_that_waits():
    for tells in (True, False):
        talk = Talk(SPOKEN, PHRASES, tells=tells)
        rest = talk.queue(1.0) if tells else steady_voice(1.0)
        talk.say(rest[:480])
        talk.call()
        talk.handle(TextDelta("Here it is."))
        talk.say(np.append(rest[480:], steady_voice(1.0)))
        talk.pass_s(2.0)
        assert talk.onsets == []


@pytest.mark.parametrize("pause_s", [0.0, 0.1, 0.4])
def test_a_tone_takes_the_first_pause_within_a_second_if_the_text_goes_on(pause_s):
    talk = Talk(ALL, TONES)
    rest = talk.queue(1.0)
    talk.call()
    talk.handle(TextDelta("Here it is."))
    talk.say(np.concatenate([rest, np.zeros(round(pause_s * RATE), np.float32), steady_voice(2.0)]))
    talk.pass_s(1.0)
    assert talk.onsets == [("tool_call", pytest.approx(2.0 if pause_s == 0.0 else 1.08, abs=FRAME_S))]


@pytest.mark.parametrize(("idle_s", "onset_s"), [(0.0, 2.8), (5.0, 2.5), (30.0, 2.5)])
@KINDS
def test_time_in_which_the_output_stood_still_before_a_text_is_no_silence_after_it(bank, rules, idle_s, onset_s):
    # Words that go on without a pause, or a queue that tells, may be those of before: the text's may come 0.6 s later.
    talk = Talk(bank, rules)
    now = [0]
    talk.router.tell(on_played=talk.played.append, now_samples=lambda: now[0])
    say = talk.say

    def on_clock(speech):
        for start in range(0, len(speech), 480):
            say(speech[start : start + 480])
            now[0] += 480

    talk.say = on_clock
    talk.words(1.0)
    now[0] += round(idle_s * RATE)
    talk.handle(TextDelta("Let me look."))
    talk.words(1.0)
    talk.pass_s(0.5)
    talk.call()
    talk.pass_s(1.0)
    assert talk.onsets == [("tool_call", onset_s)]


DONE = ToolResult(tool_name="", tool_call_id="2", is_error=False, content="")


@pytest.mark.parametrize(
    ("events", "wanted"),
    [([], "tool_call"), ([FAILED, ToolCallStart("look", "3")], "error"), ([FAILED, DONE], "error")],
    ids=["called", "failed, and called again", "one failed, one done"],
)
def test_of_several_that_follow_the_same_words_the_most_important_and_latest_sounds(events, wanted):
    talk = Talk(ALL, TONES)
    rest = talk.queue(1.0)
    talk.call()
    talk.handle(ToolCallStart("look", "2"), ToolCallEnd("look", "2"), *events)
    talk.say(rest)
    talk.pass_s(1.0)
    assert [cue for cue, _ in talk.onsets] == [wanted]


@KINDS
def test_a_cue_that_was_muted_while_it_waited_for_the_words_does_not_sound_later(bank, rules):
    talk = Talk(bank, rules)
    rest = talk.queue(1.0)
    talk.call()
    talk.router.muted = True
    talk.router.muted = False
    talk.say(rest)
    talk.pass_s(1.0)
    assert talk.onsets == []


def test_in_such_a_loop_a_phrase_gives_way_to_more_words():
    loop = Pipeline(SPOKEN, rules=PHRASES)
    loop.handle(TextDelta("Let me look."))
    loop.say(steady_voice(1.0))
    loop.handle(ToolCallStart("look", "1"), ToolCallEnd("look", "1"), TextDelta("Here it is."))
    heard = loop.say(np.concatenate([np.zeros(RATE, np.float32), steady_voice(1.0), np.zeros(RATE, np.float32)]))
    assert not heard[:RATE].any()
    assert not heard[2 * RATE :].any()


@KINDS
@pytest.mark.parametrize("text", [True, False])
def test_a_loop_that_never_polls_hears_them_after_the_words_too(bank, rules, text):
    loop = Pipeline(bank, rules=rules)
    if text:
        loop.handle(TextDelta("Let me look."))
    words = steady_voice(2.0)
    loop.say(words[:RATE])
    loop.handle(ToolCallStart("look", "1"), ToolCallEnd("look", "1"))
    loop.say(words[RATE:])
    loop.pass_s(1.0)
    onset_s = np.flatnonzero(np.abs(loop.out[2 * RATE :]) > 0.001)[0] / RATE
    assert np.array_equal(loop.out[: 2 * RATE], words)
    assert onset_s <= BREATH_S + FRAME_S
    assert not loop.mixer.active or "working" in bank


@KINDS
@pytest.mark.parametrize("end", ["barge_in", "hush", "cancel"])
def test_nothing_of_a_turn_that_ends_follows_the_words(bank, rules, end):
    talk = Talk(bank, rules)
    rest = talk.queue(1.0)
    talk.call()
    getattr(talk.router, end)()
    talk.say(rest)
    talk.pass_s(1.0)
    assert talk.onsets == []
    talk.router.cancel()
    assert not talk.mixer.active


def test_a_loop_that_goes_by_the_mixer_does_not_end_before_what_follows_the_words():
    talk = Talk(ALL, TONES)
    rest = talk.queue(1.0)
    talk.handle(StreamFailed("broken"))
    talk.say(rest)
    assert talk.mixer.active
    while talk.mixer.active:
        talk.pass_s(FRAME_S)
    assert talk.onsets == [("error", pytest.approx(1.0 + QUIET_S, abs=FRAME_S))]


@KINDS
@pytest.mark.parametrize("left_s", [0.04, 0.3, 1.2])
@pytest.mark.parametrize("voice_s", [0.3, 0.7])  # 0.2 s of silence, and 0.6 s
def test_the_words_of_a_second_call_are_awaited_while_those_of_the_first_are_heard(bank, rules, left_s, voice_s):
    talk = Talk(bank, rules)
    talk.handle(TextDelta("Let me look."))
    rest = talk.queue(2.0)
    talk.call()
    n_left = round(left_s * RATE)
    talk.say(rest[:-n_left])
    talk.handle(ToolResult(tool_name="", tool_call_id="1", is_error=False, content=""), TextDelta("And once more."))
    talk.handle(ToolCallStart("look", "2"), ToolCallEnd("look", "2"))
    talk.played.clear()
    talk.say(rest[-n_left:])
    talk.pass_s(voice_s)
    talk.words(1.0)
    words_end_s = talk.mixer.position / RATE
    talk.pass_s(1.0)
    after = [onset_s for cue, onset_s in talk.onsets if cue == "tool_call"][-1]
    assert words_end_s <= after <= words_end_s + BREATH_S + FRAME_S


@KINDS
def test_words_that_join_those_before_them_are_not_awaited_again(bank, rules):
    talk = Talk(bank, rules)
    talk.handle(TextDelta("Let me look."))
    rest = talk.queue(2.0)
    talk.call()
    talk.say(rest[:24000])
    talk.handle(ToolResult(tool_name="", tool_call_id="1", is_error=False, content=""), TextDelta("Yes?"))
    talk.handle(ToolCallStart("look", "2"), ToolCallEnd("look", "2"))
    talk.say(rest[24000:31200])
    rest = rest[31200:]
    talk.router.speech(talk.mixer.position + len(rest) + 7200)  # the next words are queued behind them
    talk.played.clear()
    talk.say(np.append(rest, steady_voice(0.3)))
    words_end_s = talk.mixer.position / RATE
    talk.pass_s(1.0)
    after = [onset_s for cue, onset_s in talk.onsets if cue == "tool_call"][-1]
    assert words_end_s <= after <= words_end_s + BREATH_S + FRAME_S


@KINDS
@pytest.mark.parametrize("pause_s", [0.0, 0.3], ids=["words that fade out", "the rest of a resampler"])
def test_the_end_of_the_words_before_is_no_voice_of_the_text_behind_them(bank, rules, pause_s):
    talk = Talk(bank, rules)
    talk.router.words_go_on(lambda: False)
    talk.handle(TextDelta("Let me look."))
    talk.handle(*(kind("look", call_id) for call_id in "12" for kind in (ToolCallStart, ToolCallEnd)))
    talk.words(1.0)
    done = ToolResult(tool_name="", tool_call_id="2", is_error=False, content="")
    talk.handle(done, TextDelta("And once more."), FAILED)
    talk.pass_s(pause_s)
    talk.say(steady_voice(0.009))
    talk.pass_s(0.3)
    talk.words(1.0)
    words_end_s = talk.mixer.position / RATE
    talk.pass_s(1.0)
    (error_s,) = [onset_s for cue, onset_s in talk.onsets if cue == "error"]
    assert words_end_s <= error_s <= words_end_s + BREATH_S + FRAME_S
