"""The pacer, on a clock that the test moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cues
from cues.meters.clicks import find_clicks
from tests.support.listening import splatter_db
from tests.support.mixing_scripts import noise_cue, speech, tone


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def paced(**options):
    clock = Clock()
    mixer = cues.Mixer()
    return cues.Pacer(mixer, clock=clock, **options), mixer, clock


def ask(pacer, clock, times_s):
    """Ask at each time; all that is released."""
    out = []
    for now_s in times_s:
        clock.now_s = 100.0 + now_s
        out += pacer.due()
    return np.concatenate([np.zeros(0, dtype=np.float32), *out])


@pytest.mark.parametrize(("options", "lead"), [({}, 960), ({"first_lead_ms": 80}, 1920)], ids=["two frames", "told"])
def test_frames_are_released_at_most_the_lead_ahead(options, lead):
    pacer, mixer, clock = paced(**options)
    pacer.push(speech(24000))
    for k in range(40):
        clock.now_s = 100 + k * 0.01
        pacer.due()
        assert mixer.position <= round((clock.now_s - 100) * 24000) + lead
        assert mixer.position >= round((clock.now_s - 100) * 24000) + lead - 480
    assert pacer.lead_samples == mixer.lead_samples == lead
    assert pacer.late_calls == 0


def test_a_cue_is_heard_within_the_lead_however_much_speech_is_queued():
    pacer, mixer, clock = paced()
    pacer.push(np.zeros(240_000, dtype=np.float32))
    pacer.due()
    mixer.play(noise_cue())
    clock.now_s += 0.02
    assert np.concatenate(pacer.due()).any()


def test_a_cue_without_speech_clocks_itself():
    pacer, mixer, clock = paced()
    assert pacer.due() == []
    assert pacer.wait_s() is None
    mixer.play(tone(4800))
    out = ask(pacer, clock, np.arange(100) * 0.01)
    np.testing.assert_array_equal(out[:4800], tone(4800).samples)
    assert len(out) == 4800
    assert mixer.stats.silence_frames == 10
    assert pacer.underruns == 0


def test_speech_that_comes_too_late_is_an_underrun_once():
    pacer, _, clock = paced()
    pacer.push(speech(4800))
    ask(pacer, clock, np.arange(100) * 0.01)
    assert pacer.underruns == 1
    pacer.push(speech(480))
    assert len(pacer.due()) == 1


def test_a_pause_after_the_end_is_none():
    pacer, _, clock = paced()
    pacer.push(speech(4800))
    pacer.end()
    ask(pacer, clock, np.arange(100) * 0.01)
    assert pacer.underruns == 0


def test_after_a_pause_the_lead_is_not_made_up_for():
    pacer, _, clock = paced()
    pacer.push(speech(480))
    pacer.end()
    pacer.due()
    clock.now_s += 60
    pacer.push(speech(24000))
    assert len(pacer.due()) == 2
    assert pacer.late_calls == 0


def test_wait_says_when_the_next_frame_is_due():
    pacer, _, clock = paced(lead_ms=80)
    pacer.push(speech(24000))
    assert pacer.wait_s() == 0.0
    pacer.due()
    wait = pacer.wait_s()
    assert wait == pytest.approx(0.02, abs=1e-3)
    clock.now_s += wait + 1e-6
    assert len(pacer.due()) == 1


def test_an_interrupt_fades_speech_out_that_has_been_released_to_its_last_sample():
    pacer, _, clock = paced()
    talk = tone(24000).samples[:980]
    pacer.push(talk)
    out = pacer.due()
    assert pacer.queued_samples < 30
    assert not pacer.is_silent
    pacer.interrupt()
    out.append(ask(pacer, clock, [k * 0.01 for k in range(20)]))
    heard = np.concatenate(out)
    np.testing.assert_array_equal(heard[: len(talk)][:960], talk[:960])
    assert find_clicks(heard).tolist() == []
    assert pacer.is_silent


@pytest.mark.parametrize("n_before", [0, 300], ids=["nothing queued", "less than the fade"])
def test_a_late_chunk_of_an_interrupted_answer_is_not_heard(n_before):
    pacer, _, clock = paced()
    talk = tone(24000).samples
    pacer.push(talk[:480])
    pacer.due()
    clock.now_s += 0.02
    if n_before:
        pacer.push(talk[480 : 480 + n_before])
    pacer.interrupt()
    pacer.push(0.3 * np.cos(np.arange(4800, dtype=np.float32) * 0.02))  # in mid-wave
    late = ask(pacer, clock, [clock.now_s - 100 + k * 0.01 for k in range(30)])
    assert np.abs(late[720:]).max() == 0.0
    assert np.abs(late).max() <= np.abs(talk).max(), "the fade of what was there, and nothing louder"
    assert find_clicks(np.concatenate([talk[:480], late])).tolist() == []


def test_without_speech_frames_are_released_at_most_their_own_lead_ahead():
    pacer, mixer, clock = paced(lead_ms=300, first_lead_ms=300, silence_lead_ms=80)
    mixer.play(tone(24000))
    for k in range(10):
        clock.now_s = 100 + k * 0.01
        pacer.due()
        assert mixer.position <= round(k * 240) + 1920
    pacer.push(speech(24000))
    pacer.due()
    assert mixer.position >= 90 * 24 + 7200 - 480


@pytest.mark.parametrize("continuous", [True, False])
def test_while_a_cue_only_waits_little_silence_lies_before_the_speech_that_comes(continuous):
    pacer, mixer, clock = paced(first_lead_ms=80, continuous=continuous)
    mixer.play(noise_cue(), at=24000)
    unheard = []
    for k in range(180):  # asked each 5 ms, up to 0.1 s before the cue
        clock.now_s = 100 + k * 0.005
        pacer.due()
        unheard.append(pacer.unheard_samples)
    assert pacer.late_calls == 0
    assert max(unheard) <= (1920 if continuous else 720) + 1  # rounding
    assert min(unheard) > 0, "the silence before the cue is counted as time"
    assert mixer.position == pytest.approx(24000 * 0.895, abs=1920 if continuous else 720)
    heard = ask(pacer, clock, np.arange(0.9, 1.0, 0.005))
    assert heard.any()
    assert pacer.unheard_samples > 1320, "what sounds has the whole lead"


@pytest.mark.parametrize("cue_s", [0.0, 0.005, 0.02, 0.03, 0.04, 0.49])
def test_a_cue_in_or_after_the_fade_of_an_interrupt_brings_nothing_of_the_old_voice_back_at_the_next_end(cue_s):
    pacer, mixer, clock = paced()
    pacer.push(vowel(72000))
    ask(pacer, clock, np.arange(0.0, 1.01, 0.005))
    pacer.interrupt()
    ask(pacer, clock, np.arange(1.01, 1.01 + cue_s, 0.005))
    mixer.play(noise_cue())
    ask(pacer, clock, np.arange(1.01 + cue_s, 2.5, 0.005))
    pacer.end()
    assert not ask(pacer, clock, np.arange(2.5, 3.0, 0.005)).any()


def test_an_interrupt_fades_and_tells_what_was_never_spoken():
    pacer, mixer, clock = paced()
    pacer.push(np.full(24000, 0.3, dtype=np.float32))
    released = sum(len(frame) for frame in pacer.due())
    dropped = pacer.interrupt(fade_ms=30)
    assert dropped == 24000 - released - 720
    out = ask(pacer, clock, np.arange(20) * 0.01)
    fade = out
    assert np.abs(np.diff(fade / 0.3, 2)).max() < 4.1e-4
    assert not fade[720:].any()
    pacer.push(np.full(4800, 0.3, dtype=np.float32))
    clock.now_s += 1
    assert not np.concatenate(pacer.due()).any()
    mixer.resume()


def test_a_sample_may_be_cut_in_two_by_the_network():
    pacer, _, clock = paced()
    pcm = (speech(4800) * 32767).astype("<i2").tobytes()
    for start in range(0, len(pcm), 333):
        pacer.push_pcm16(pcm[start : start + 333])
    out = ask(pacer, clock, np.arange(40) * 0.01)
    np.testing.assert_array_equal(out[:4800] * 32768, np.frombuffer(pcm, dtype="<i2"))


def test_a_cue_that_is_asked_for_too_late_lengthens_the_lead_too():
    pacer, mixer, clock = paced()
    mixer.play(tone(9600))
    out = ask(pacer, clock, [0.0, 0.1, *(0.12 + k * 0.01 for k in range(60))])
    assert pacer.late_calls == 1
    assert pacer.lead_samples == 1440
    np.testing.assert_array_equal(out[:9600], tone(9600).samples)


@pytest.mark.parametrize("pushed_at_s", [0.03, 0.06], ids=["in time", "after the end"])
def test_speech_that_came_in_time_counts_the_call_and_speech_that_came_too_late_does_not(pushed_at_s):
    pacer, _, clock = paced()
    pacer.push(speech(960))
    ask(pacer, clock, [0.0])
    clock.now_s = 100.0 + pushed_at_s
    pacer.push(speech(960))
    ask(pacer, clock, [0.07])
    assert pacer.late_calls == (1 if pushed_at_s < 0.04 else 0)


def talk_for(pacer, clock, start_s, duration_s, every_s=0.01):
    """Speech of so long, asked for every 10 ms, and the silence after it."""
    pacer.push(np.zeros(round(duration_s * 24000), dtype=np.float32))
    pacer.end()
    ask(pacer, clock, start_s + np.arange(0.0, duration_s + 0.2, every_s))


def test_half_a_minute_with_a_frame_to_spare_shortens_the_lead_in_the_next_silence():
    pacer, mixer, clock = paced()
    pacer.push(speech(4800))
    pacer.end()
    ask(pacer, clock, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert pacer.lead_samples == 1920
    talk_for(pacer, clock, 1.0, 29.0)
    assert pacer.lead_samples == 1920
    talk_for(pacer, clock, 40.0, 2.0)
    assert pacer.lead_samples == mixer.lead_samples == 1440
    talk_for(pacer, clock, 50.0, 31.0)
    talk_for(pacer, clock, 100.0, 31.0)
    assert pacer.lead_samples == mixer.lead_samples == 960


def test_a_lead_that_is_needed_is_kept():
    pacer, _, clock = paced()
    for start_s in (0.0, 50.0, 100.0):
        talk_for(pacer, clock, start_s, 40.0, every_s=0.05)  # Too slow for 40 ms of lead, just enough for 60.
        assert pacer.lead_samples == 1440
    assert pacer.late_calls == 1


class Tape:
    """A mixer that leaves all as it is."""

    sample_rate, lead_samples, active, holds_sound, muted_from = 1000, 0, False, False, -1

    @property
    def sounds(self):
        return self.active

    def mix(self, frame):
        return frame.copy()

    def silence(self, n_samples):
        return np.zeros(n_samples, dtype=np.float32)


SOFT = np.float32(2.0**-24)
"""Numbers of samples become sounds that nobody hears: the edges of a hole in them need no mending."""
STEPS = st.one_of(
    st.tuples(st.just("push"), st.integers(1, 100)),
    st.tuples(st.just("wait"), st.integers(0, 90)),
    st.tuples(st.just("cue"), st.booleans()),
    st.tuples(st.just("end"), st.none()),
)


@given(st.lists(STEPS, min_size=1, max_size=80), st.sampled_from([20, 30, 40, 80]))
def test_whenever_it_is_asked_all_speech_comes_once_in_order_and_silence_only_where_speech_is_missing(steps, first):
    clock, tape = Clock(), Tape()
    pacer = cues.Pacer(tape, frame_samples=20, lead_ms=80, first_lead_ms=first, clock=clock)
    n_pushed = n_released = 0
    for what, value in [*steps, ("end", None), *[("wait", 50)] * 200]:
        if what == "push":
            pacer.push(SOFT * np.arange(n_pushed + 1, n_pushed + value + 1, dtype=np.float32))
            n_pushed += value
        elif what == "wait":
            clock.now_s += value / 1000
        elif what == "cue":
            tape.active = value
        else:
            pacer.end()
        lead = pacer.lead_samples
        frames = pacer.due()
        assert lead <= pacer.lead_samples == tape.lead_samples <= 80
        assert sum(len(frame) for frame in frames) <= pacer.lead_samples
        for frame in frames:
            spoken = np.trim_zeros(frame, "b") / SOFT
            np.testing.assert_array_equal(spoken, np.arange(n_released + 1, n_released + len(spoken) + 1))
            n_released += len(spoken)
            assert len(spoken) == len(frame) or n_released == n_pushed
    assert n_released == n_pushed
    assert pacer.queued_samples == 0


def stalled(voice, n_before, *, active, is_asked=True):
    """Output for a voice that stops after some samples, without a word, and goes on 0.3 s later."""
    clock, tape = Clock(), Tape()
    tape.sample_rate, tape.active = 24000, active
    pacer = cues.Pacer(tape, clock=clock)
    pacer.push(voice[:n_before])
    heard = [ask(pacer, clock, np.arange(0, n_before / 24000 + (0.3 if is_asked else -0.02), 0.005))]
    clock.now_s = 100.0 + n_before / 24000 + 0.3
    pacer.push(voice[n_before:])
    pacer.end()
    tape.active = False
    heard.append(ask(pacer, clock, np.arange(n_before / 24000 + 0.3, len(voice) / 24000 + 1.0, 0.005)))
    return np.concatenate(heard), pacer


def vowel(n_samples=24000):
    return np.asarray(tone(n_samples, 220.0).samples)


@pytest.mark.parametrize("active", [True, False], ids=["over a cue", "without a cue"])
@pytest.mark.parametrize("n_before", [9600, 9700, 10001, 10077, 12345])
def test_a_voice_that_stalls_in_mid_sound_dies_away_and_fades_in_again(n_before, active):
    voice = vowel()
    heard, pacer = stalled(voice, n_before, active=active)
    assert find_clicks(np.insert(voice, n_before, np.zeros(7200, np.float32))).size > 0, "what it would be without"
    assert find_clicks(heard).size == 0
    assert pacer.underruns > 0
    np.testing.assert_array_equal(heard[: n_before - 240], voice[: n_before - 240])
    assert not heard[n_before + 240 : n_before + 4800].any() or not active
    end = n_before + (4800 if active else 480 - n_before % 480)
    back = end + np.flatnonzero(heard[end:])[0] - 1  # a fade begins with 0.0
    np.testing.assert_array_equal(heard[back + 120 : back + len(voice) - n_before], voice[n_before + 120 :])


@pytest.mark.parametrize("frame", [10, 480])
@pytest.mark.parametrize("ends", [False, True], ids=["stalls", "ends"])
@pytest.mark.parametrize("cue", [None, tone(4800, 600.0)], ids=["speech", "cue"])
def test_before_a_hole_all_that_a_limiter_delays_goes_out(cue, ends, frame):
    clock, mixer = Clock(), cues.Mixer(limiter=True)
    pacer = cues.Pacer(mixer, clock=clock, frame_samples=frame)
    if cue is None:
        pacer.push(vowel(9700))
    else:
        mixer.play(cue)
    if ends:
        pacer.end()
    before = ask(pacer, clock, np.arange(0.0, 1.0, 0.002))
    assert pacer.wait_s() is None
    pacer.push(vowel(4800))
    pacer.end()
    after = ask(pacer, clock, np.arange(1.0, 2.0, 0.002))
    assert np.abs(before[-1]) == 0.0
    assert not after[: mixer.latency_samples].any()
    assert after[:480].any()
    assert find_clicks(np.concatenate([before, np.zeros(2400, np.float32), after])).size == 0


@pytest.mark.parametrize("continuous", [True, False])
@pytest.mark.parametrize("n_samples", [9600, 9700, 10077])
def test_a_voice_that_ends_in_mid_sound_fades_out_and_is_no_underrun(n_samples, continuous):
    pacer, _, clock = paced(continuous=continuous)
    voice = vowel(24000)[:n_samples]
    pacer.push(voice)
    pacer.end()
    heard = ask(pacer, clock, np.arange(0.0, 1.0, 0.01))
    assert find_clicks(np.pad(voice, (0, 4800))).size > 0, "what it would be without"
    assert find_clicks(np.pad(heard, (0, 4800))).size == 0
    np.testing.assert_array_equal(heard[: n_samples - 240], voice[: n_samples - 240])
    assert not heard[n_samples + 480 :].any()
    assert pacer.underruns == 0


def ended(first, second, *, after_s, n_piece, step_s=0.01, **options):
    """Output for a voice that ends, and the next one, pushed piece by piece `after_s` after the first."""
    pacer, _, clock = paced(**options)
    pacer.push(first)
    pacer.end()
    out = [ask(pacer, clock, np.arange(0.0, after_s, step_s))]
    for start in range(0, len(second), n_piece):
        pacer.push(second[start : start + n_piece])
    pacer.end()
    out.append(ask(pacer, clock, np.arange(after_s, 2.0, step_s)))
    assert pacer.underruns == 0
    return np.concatenate(out)


@pytest.mark.parametrize("n_piece", [3, 100, 24000])
@pytest.mark.parametrize("after_s", [0.0, 0.2, 0.37], ids=lambda s: f"after {s:g} s")
@pytest.mark.parametrize("n_first", [9627, 9660, 10060, 10080])
@pytest.mark.parametrize("begin", [0, 4770], ids=["from silence", "in mid-sound"])
def test_a_voice_that_ends_in_mid_sound_fades_out_under_the_next_one_that_is_queued(n_first, begin, after_s, n_piece):
    first, second = vowel()[:n_first], vowel()[begin:]
    assert splatter_db(np.append(first, second), 4000) > -45, "what it would be without"
    heard = ended(first, second, after_s=after_s, n_piece=n_piece)
    assert splatter_db(heard, 4000) < -95
    np.testing.assert_array_equal(heard[:n_first], first)
    np.testing.assert_array_equal(heard[n_first + 240 : n_first + len(second)], second[240:])
    assert not heard[n_first + len(second) :].any()


@pytest.mark.parametrize("n_frame", [7, 240, 1000])
def test_the_fade_between_two_voices_depends_on_no_frame(n_frame):
    first, second = vowel()[:9627], vowel()[4827:9000]
    expected = ended(first, second, after_s=0.0, n_piece=5000)
    heard = ended(first, second, after_s=0.0, n_piece=5000, frame_samples=n_frame, step_s=0.0002)
    np.testing.assert_array_equal(heard[:13700], expected[:13700])


def test_a_sound_that_goes_on_over_an_end_hardly_changes():
    whole = vowel()
    heard = ended(whole[:9627], whole[9627:], after_s=0.0, n_piece=24000)
    np.testing.assert_allclose(heard[: len(whole)], whole, atol=0.01)


@pytest.mark.parametrize("n_second", [1, 5, 100])
def test_a_very_short_voice_after_one_that_ends_in_mid_sound_leaves_no_edge(n_second):
    heard = ended(vowel()[:9627], vowel()[4827 : 4827 + n_second], after_s=0.0, n_piece=1000)
    assert splatter_db(heard, 4000) < -95


def test_a_voice_that_ended_in_mid_sound_does_not_sound_again_after_a_hole_in_which_nobody_asked():
    first, second = vowel()[:9600], vowel()[4827:]
    pacer, _, clock = paced()
    pacer.push(first)
    pacer.end()
    ask(pacer, clock, np.arange(0.0, 0.375, 0.01))
    pacer.push(second)
    pacer.end()
    heard = ask(pacer, clock, np.arange(0.8, 2.0, 0.01))
    assert heard[0] == 0.0
    assert (np.abs(heard[:240]) <= np.abs(second[:240])).all()
    np.testing.assert_array_equal(heard[240 : len(second)], second[240:])


@pytest.mark.parametrize("n_before", [60, 240, 700])
def test_an_interrupt_near_the_end_of_a_voice_with_the_next_one_queued_leaves_no_edge(n_before):
    """The one that ends lies in the fade of the interrupt."""
    pacer, _, clock = paced()
    pacer.push(LOUD[: 4800 + n_before])
    pacer.end()
    pacer.push(LOUD[:9600])
    before = ask(pacer, clock, np.arange(0.0, 0.18, 0.02))
    assert len(before) == 4800
    pacer.interrupt()
    heard = np.append(before, ask(pacer, clock, np.arange(0.18, 0.5, 0.002)))
    assert np.abs(np.diff(heard, append=0.0)).max() <= 1.01 * STEEPEST


@pytest.mark.parametrize("n_back", [3, 7, 60, 119])
def test_an_interrupt_when_a_voice_that_ran_dry_has_only_just_come_back_leaves_no_edge(n_back):
    pacer, mixer, clock = paced()
    mixer.play(tone(2400), at=240_000)  # so that frames go out
    pacer.push(LOUD[:9700])
    before = ask(pacer, clock, np.arange(0.0, 1.0, 0.01))
    pacer.push(LOUD[9710 : 9710 + n_back])
    pacer.interrupt()
    heard = np.append(before, ask(pacer, clock, np.arange(1.0, 1.2, 0.01)))
    assert heard[len(before) :].any()
    assert np.abs(np.diff(heard, n=2)).max() <= 1.2 * STEEPEST * 2 * np.pi * 440.0 / 24_000


@pytest.mark.parametrize("n_before", [9600, 9700])
def test_without_a_cue_one_frame_fades_speech_out_and_then_none_is_due(n_before):
    pacer, _, clock = paced()
    pacer.push(vowel()[:n_before])
    heard = ask(pacer, clock, np.arange(0.0, 0.38, 0.01))
    clock.now_s = 100.39
    assert pacer.wait_s() is not None
    heard = np.concatenate([heard, ask(pacer, clock, np.arange(0.39, 1.0, 0.01))])
    assert len(heard) == 480 * (n_before // 480 + 1)
    assert find_clicks(heard).size == 0
    assert pacer.wait_s() is None
    assert pacer.underruns > 0


def test_small_pieces_that_come_in_time_are_released_as_they_are():
    pacer, _, clock = paced()
    voice = vowel(9600)
    heard = []
    for at, now_s in zip(range(0, 9600, 480), np.arange(0, 0.3, 0.009), strict=False):
        heard.append(ask(pacer, clock, [now_s]))
        pacer.push(voice[at : at + 480])
    heard.append(ask(pacer, clock, np.arange(0.18, 0.4, 0.01)))
    np.testing.assert_array_equal(np.concatenate(heard)[:9600], voice)


@pytest.mark.parametrize("active", [True, False], ids=["over a cue", "without a cue"])
@pytest.mark.parametrize(("n_samples", "dry_after_s"), [(100, 0.0), (1000, 0.02), (1440, 0.05), (48_000, 1.99)])
def test_it_says_when_speech_that_has_not_ended_runs_dry(n_samples, dry_after_s, active):
    pacer, mixer, clock = paced()
    if active:
        mixer.play(tone(2400), at=240_000)
        dry_after_s = dry_after_s // 0.02 * 0.02  # a frame is due 10 ms sooner
    assert pacer.dry_s() == 0.0
    pacer.push(vowel(60_000)[:n_samples])
    while not pacer.underruns:
        left_s = pacer.dry_s()
        assert left_s == pytest.approx(100.0 + dry_after_s - clock.now_s, abs=1e-4)
        pacer.due()
        assert (pacer.underruns > 0) == (left_s == 0.0)
        clock.now_s += 0.001


def test_a_cue_after_a_hole_brings_nothing_of_the_old_voice_back():
    pacer, mixer, clock = paced()
    pacer.push(vowel()[:9600])
    ask(pacer, clock, np.arange(0.0, 0.375, 0.01))
    mixer.play(cues.Cue(name="silent", samples=np.zeros(2400, dtype=np.float32), sample_rate=24000))
    assert not ask(pacer, clock, np.arange(0.6, 1.0, 0.01)).any()  # nobody has asked in the hole
    assert pacer.underruns == 1


def test_a_cue_after_a_recall_brings_nothing_of_the_old_voice_back():
    pacer, mixer, clock = paced()
    pacer.push(vowel()[:9600])
    ask(pacer, clock, np.arange(0.0, 0.375, 0.01))
    assert pacer.recall() > 0
    assert pacer.due() == []
    mixer.play(cues.Cue(name="silent", samples=np.zeros(2400, dtype=np.float32), sample_rate=24000))
    assert not ask(pacer, clock, np.arange(0.375, 1.0, 0.01)).any()


def test_what_comes_after_a_hole_in_which_nobody_asked_fades_in():
    voice = vowel()
    heard, pacer = stalled(voice, 9600, active=False, is_asked=False)
    assert pacer.underruns == 1
    assert len(heard) == len(voice)
    np.testing.assert_array_equal(heard[9720:], voice[9720:])
    assert abs(heard[9600]) == 0.0
    assert (np.abs(heard[9600:9720]) <= np.abs(voice[9600:9720])).all()


@pytest.mark.parametrize("has_ended", [True, False], ids=["ended", "stalled, and just come back"])
def test_an_interrupt_in_a_silence_begins_no_sound_at_full_level(has_ended):
    pacer, mixer, clock = paced()
    mixer.play(tone(2400), at=240_000)  # so that frames go out
    voice = vowel()
    pacer.push(voice[:9700])
    if has_ended:
        pacer.end()
    ask(pacer, clock, np.arange(0.0, 1.0, 0.01))
    if not has_ended:
        pacer.push(voice[9700:])
    pacer.interrupt()
    heard = ask(pacer, clock, np.arange(1.0, 1.2, 0.01))
    assert find_clicks(np.insert(heard, 0, np.zeros(480))).tolist() == []
    assert heard.any() != has_ended


def test_a_second_interrupt_brings_nothing_back():
    pacer, mixer, clock = paced(lead_ms=300, first_lead_ms=300)
    pacer.push(vowel())
    ask(pacer, clock, [0.0, 0.1])
    pacer.interrupt()
    mixer.resume()
    ask(pacer, clock, np.arange(0.1, 0.2, 0.01))
    pacer.interrupt()
    assert not ask(pacer, clock, np.arange(0.2, 0.6, 0.01)).any()


@pytest.mark.parametrize("begin", ["resume", "cue"])
@pytest.mark.parametrize(("first_ms", "wait_s"), [(30.0, 0.3), (30.0, 0.01), (100.0, 0.06), (250.0, 0.1)])
def test_a_second_interrupt_of_muted_speech_keeps_none_of_it_beyond_the_first_fade(first_ms, wait_s, begin):
    pacer, mixer, clock = paced()
    talk = vowel(72_000)
    pacer.push(talk)
    before = ask(pacer, clock, np.arange(0.0, 0.5, 0.01))
    pacer.interrupt(first_ms)
    fading = ask(pacer, clock, np.arange(0.5, 0.5 + wait_s, 0.01))
    pacer.push(talk)  # a late chunk of the old answer
    pacer.interrupt()
    if begin == "resume":
        mixer.resume()
    else:
        mixer.play(cues.Cue(name="silent", samples=np.zeros(2400, dtype=np.float32), sample_rate=24000))
    after = np.concatenate([before, fading, ask(pacer, clock, np.arange(0.5 + wait_s, 1.5, 0.01))])
    assert not after[len(before) + round(24 * first_ms) :].any()
    assert find_clicks(after).tolist() == []


LOUD = 0.9 * np.sin(2 * np.pi * 440.0 * np.arange(48_000) / 24_000)
STEEPEST = 0.9 * 2 * np.pi * 440.0 / 24_000  # between two of its samples


@pytest.mark.parametrize("phase", [0, 14, 28])
@pytest.mark.parametrize("gap_s", [0.0, 0.004, 0.012, 0.02, 0.024, 0.032, 0.04, 0.06])
@pytest.mark.parametrize("begin", ["muted", "resume", "cue"])
@pytest.mark.parametrize("fades_ms", [(30, 30), (250, 5), (30, 5), (5, 30)], ids=str)
def test_an_interrupt_during_the_fade_or_the_ramp_of_another_leaves_no_edge(fades_ms, begin, gap_s, phase):
    pacer, mixer, clock = paced()
    pacer.push(LOUD[phase:])
    out = [ask(pacer, clock, np.arange(0.0, 0.2, 0.004))]
    pacer.interrupt(fades_ms[0])
    if begin == "resume":
        mixer.resume()
    elif begin == "cue":
        mixer.play(cues.Cue(name="silent", samples=np.zeros(2400, dtype=np.float32), sample_rate=24000))
    pacer.push(LOUD)
    out.append(ask(pacer, clock, np.arange(0.2, 0.2 + gap_s, 0.004)))
    pacer.interrupt(fades_ms[1])
    out.append(ask(pacer, clock, np.arange(0.2 + gap_s, 0.7, 0.004)))
    assert np.abs(np.diff(np.concatenate(out), append=0.0)).max() <= 1.01 * STEEPEST


@pytest.mark.parametrize("n_samples", [4872, 5052])
def test_an_interrupt_fades_out_what_ends_in_mid_sound_before_the_fade_is_over(n_samples):
    pacer, _, clock = paced()
    pacer.push(LOUD[:n_samples])
    pacer.end()
    before = ask(pacer, clock, np.arange(0.0, 0.18, 0.002))
    pacer.interrupt()
    heard = np.append(before, ask(pacer, clock, np.arange(0.18, 0.5, 0.002)))
    assert np.abs(np.diff(heard, append=0.0)).max() <= 1.01 * STEEPEST


def test_an_interrupt_fades_out_speech_that_has_only_just_come():
    pacer, _, clock = paced()
    pacer.push(LOUD[:123])
    pacer.interrupt()
    heard = ask(pacer, clock, np.arange(0.0, 0.2, 0.01))
    assert heard.any()
    assert np.abs(np.diff(heard, append=0.0)).max() <= 1.01 * STEEPEST


@pytest.mark.parametrize("n_piece", [7, 480, 4800])
def test_speech_that_comes_in_mid_sound_after_an_interrupt_fades_in_however_it_is_cut(n_piece):
    pacer, mixer, clock = paced()
    pacer.push(LOUD[:4800])
    before = ask(pacer, clock, np.arange(0.0, 0.15, 0.01))
    pacer.interrupt()
    mixer.play(cues.Cue(name="silent", samples=np.zeros(2400, dtype=np.float32), sample_rate=24000))
    between = ask(pacer, clock, np.arange(0.15, 0.4, 0.01))
    for start in range(14, 4814, n_piece):
        pacer.push(LOUD[start : start + n_piece])
    pacer.end()
    heard = np.concatenate([before, between, ask(pacer, clock, np.arange(0.4, 0.8, 0.01))])
    assert np.abs(heard[-4800:]).max() > 0.4  # under the cue
    assert np.abs(np.diff(heard, append=0.0)).max() <= 1.01 * STEEPEST


def test_a_hole_between_words_is_left_as_it_is():
    voice = np.concatenate([vowel(9600), vowel(9600)])
    heard, _ = stalled(voice, 9600, active=True)
    np.testing.assert_array_equal(heard[:9600], voice[:9600])
    np.testing.assert_array_equal(heard[heard != 0.0], voice[voice != 0.0])


def test_over_a_mixer_that_was_closed_later_speech_passes_as_it_is():
    pacer, mixer, clock = paced()
    mixer.close()
    talk = speech(4800)
    pacer.push(talk)
    pacer.end()
    np.testing.assert_array_equal(ask(pacer, clock, np.arange(20) * 0.01), talk)


@pytest.mark.parametrize("fade_ms", [-10.0, 0.0, 1000.0, float("inf")])
def test_an_interrupt_keeps_as_much_speech_as_its_fade_takes(fade_ms):
    pacer, _, clock = paced()
    pacer.push(np.full(24000, 0.5, dtype=np.float32))
    ask(pacer, clock, [0.0])
    kept = 23040 - pacer.interrupt(fade_ms)
    assert kept == (6000 if fade_ms > 250 else 120)
    out = ask(pacer, clock, np.arange(40) * 0.01)
    assert not find_clicks(np.concatenate([np.full(24000, 0.5), out]))[1:].any()


def test_speech_that_an_output_mixes_by_itself_gives_what_due_gives():
    heard = []
    for by_itself in (False, True):
        now, mixer = [0.0], cues.Mixer()
        pacer = cues.Pacer(mixer, lead_ms=20, continuous=True, clock=lambda now=now: now[0])
        mixer.play(noise_cue(), at=700)
        pushes = {2: 700, 3: 100, 9: 2000}
        frames = []
        for tick in range(20):
            if tick in pushes:
                pacer.push(np.random.default_rng(tick).normal(0, 0.1, pushes[tick]))
            now[0] = tick * 0.02
            frames += [mixer.mix(speech) for speech in pacer.due_speech()] if by_itself else pacer.due()
        heard.append((np.concatenate(frames), pacer.underruns))
    np.testing.assert_array_equal(heard[0][0], heard[1][0])
    assert heard[0][1] == heard[1][1] > 0
    assert len(heard[0][0]) == 20 * 480


def closed():
    mixer = cues.Mixer()
    mixer.close()
    return mixer


@pytest.mark.parametrize(
    ("mixer", "options", "error", "words"),
    [
        (cues.Mixer, {"frame_samples": 0}, cues.CueValueError, "frame_samples is 0; .* from 1 to 240000"),
        (cues.Mixer, {"lead_ms": 5}, cues.CueValueError, "lead_ms is 5; it must be from 20 to 10000"),
        (cues.Mixer, {"lead_ms": float("nan")}, cues.CueValueError, "lead_ms is nan"),
        (cues.Mixer, {"first_lead_ms": 90}, cues.CueValueError, "first_lead_ms is 90; it must be from 20 to 80"),
        (cues.Mixer, {"clock": 0.0}, cues.CueTypeError, "clock is 0.0; it must be a function"),
        (lambda: 24000, {}, cues.CueTypeError, "mixer is 24000; it must be a cues.Mixer"),
        (closed, {}, cues.MixerClosedError, "a new session needs a new Mixer"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_pacer_that_cannot_be_is_refused(mixer, options, error, words):
    with pytest.raises(error, match=words):
        cues.Pacer(mixer(), **options)


@pytest.mark.parametrize(
    ("method", "value", "error", "words"),
    [
        ("push", [[0.1], [0.1, 0.2]], cues.CueValueError, "1-D: one channel"),
        ("push", [[0.1, 0.2]], cues.CueValueError, "1-D: one channel"),
        ("push_pcm16", np.ones(480, dtype=np.float32), cues.CueTypeError, "dtype float32.*int16.*`push`"),
        ("push_pcm16", 480, cues.CueTypeError, "data is int"),
        ("clear", "80", cues.CueTypeError, "keep_ms"),
        ("clear", float("inf"), cues.CueValueError, "keep_ms"),
    ],
    ids=["ragged", "2-D", "floats", "a number", "text", "forever"],
)
def test_an_argument_of_another_type_or_range_changes_nothing(method, value, error, words):
    pacer = paced()[0]
    pacer.push(speech(4800))
    with pytest.raises(error, match=words):
        getattr(pacer, method)(value)
    assert pacer.queued_samples == 4800
