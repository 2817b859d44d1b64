"""Speech that begins after a cue, or comes back from a pause, is at full level from its first sample."""

import numpy as np
import pytest

import cues
from cues.meters.clicks import find_clicks
from tests.support.listening import new_clicks
from tests.support.mixing_scripts import RATE, speech, zeros

pytestmark = pytest.mark.usefixtures("loops")

BANK = cues.load_bank()
ONE_SHOT = [name for name, cue in BANK.items() if not cue.loop]
FIRST = round(0.3 * RATE)
TICK_END = round(0.040 * RATE)
DUCK = 10 ** (-6 / 20)
QUIET = np.float32(0.003)  # below −50 dBFS: a pause, and loud enough to read the gain from


def voice(n_samples: int) -> np.ndarray:
    """Speech whose first sample is loud and whose syllables have pauses."""
    t = np.arange(n_samples) / RATE
    rise = np.clip(t / 0.004, 0, 1)
    return (0.3 * rise * np.sin(2 * np.pi * 220 * t + 1) * (0.6 + 0.4 * np.cos(2 * np.pi * 4 * t))).astype(np.float32)


def level_db(samples: np.ndarray) -> float:
    return 10 * np.log10(np.mean(samples.astype(np.float64) ** 2))


def in_frames(mixer, samples, frame=480):
    return np.concatenate([mixer.mix(samples[k : k + frame]).copy() for k in range(0, len(samples), frame)])


@pytest.mark.parametrize("after_ms", [0, 1, 7, 20, 150])
@pytest.mark.parametrize("name", ONE_SHOT)
def test_the_answer_right_after_a_cue_is_at_full_level(name, after_ms):
    cue, answer, mixer = BANK[name], voice(FIRST), cues.Mixer()
    mixer.play(cue)
    begin = len(cue.samples) + after_ms * RATE // 1000
    out = in_frames(mixer, np.concatenate([zeros(begin), answer]))
    np.testing.assert_array_equal(out[begin:], answer)


@pytest.mark.parametrize("after_ms", [0, 5, 60, 160, 700, 2000])
@pytest.mark.parametrize("ticks", [1, 3])
def test_the_answer_after_a_tick_is_at_full_level(ticks, after_ms):
    """While the waiting sound goes on: a tick that is silent by now has ended."""
    working, answer, mixer = BANK["working"], voice(FIRST), cues.Mixer()
    mixer.play(working, loop=True)
    begin = (ticks - 1) * len(working.samples) + TICK_END + after_ms * RATE // 1000
    mixer.silence(begin)
    out = in_frames(mixer, answer)
    assert level_db(out) == pytest.approx(level_db(answer), abs=0.01)
    assert np.abs(out[:FIRST] - answer).max() < 1e-3


def test_a_tick_that_is_stopped_by_speech_does_not_duck_it():
    working, answer, mixer = BANK["working"], voice(2 * FIRST), cues.Mixer()
    tick = mixer.play(working, loop=True)
    mixer.silence(RATE)
    head = mixer.mix(answer[:480]).copy()
    tick.stop()
    out = np.concatenate([head, in_frames(mixer, answer[480:])])
    np.testing.assert_array_equal(out, answer)


def test_speech_under_the_next_tick_is_ducked_until_a_pause():
    working, mixer = BANK["working"], cues.Mixer()
    mixer.play(working, loop=True)
    period = len(working.samples)
    level = np.full(3 * period, 0.2, dtype=np.float32)
    level[: RATE // 2] = 0
    pause = slice(2 * period + RATE, 2 * period + RATE + RATE // 5)
    level[pause] = 0
    out = in_frames(mixer, level)
    np.testing.assert_array_equal(out[RATE // 2 : period], level[RATE // 2 : period])
    ducked = slice(period + 1200, pause.start)
    assert np.median(out[ducked]) == pytest.approx(0.2 * DUCK, rel=1e-4)
    np.testing.assert_array_equal(out[pause.stop :], level[pause.stop :])


def test_a_cue_between_two_ticks_ducks_the_speech_under_it():
    """The duck for the next tick is planned by then."""
    working, success, mixer = BANK["working"], BANK["success"], cues.Mixer()
    mixer.play(working, loop=True)
    mixer.silence(RATE)
    mixer.play(success)
    level = np.full(4800, 0.2, dtype=np.float32)
    mixed = mixer.mix(level)
    ducked = mixed[600:] - success.samples[600:4800]
    np.testing.assert_allclose(ducked, 0.2 * DUCK, atol=1e-5)


@pytest.mark.parametrize("back_ms", [90, 120, 250, 400])
@pytest.mark.parametrize("pause_ms", [10, 150, 350])
def test_speech_that_comes_back_from_a_pause_is_at_full_level(pause_ms, back_ms):
    """In the hold, and while the duck comes back."""
    mixer, cue = cues.Mixer(), BANK["success"]
    talk = np.concatenate([voice(RATE), voice(RATE)])
    end = RATE // 2 + len(cue.samples)
    pause = slice(end + pause_ms * RATE // 1000, end + (pause_ms + back_ms) * RATE // 1000)
    talk[pause] = 0
    mixer.play(cue, at=RATE // 2)
    out = in_frames(mixer, talk)
    np.testing.assert_array_equal(out[pause.stop :], talk[pause.stop :])


@pytest.mark.parametrize("pause_ms", [0, 100, 240, 300, 420, 480])
def test_the_duck_is_lifted_by_a_ramp_of_5_ms_at_least_and_bends_no_more_than_a_fade(pause_ms):
    """A hum too quiet for speech is the meter; loud speech goes on for `pause_ms` after the cue."""
    mixer = cues.Mixer()
    n = 2400 + pause_ms * RATE // 1000
    level = np.concatenate([np.full(n, 0.4), np.full(RATE, QUIET)]).astype(np.float32)
    mixer.play(cues.Cue(name="silent", samples=np.zeros(2400)))
    gain = (in_frames(mixer, level) / level).astype(np.float64)
    assert (gain[n + round(0.086 * RATE) :] == 1).all()
    assert np.abs(np.diff(gain, 2)).max() <= 4.1e-4
    rising = np.flatnonzero((gain[n:] < 1 - 1e-4) & (np.diff(gain[n - 1 :]) > 1e-5))
    assert len(rising) == 0 or len(rising) > 0.003 * RATE


def test_a_short_silence_before_any_speech_was_heard_lifts_nothing_within_20_ms():
    mixer = cues.Mixer()
    mixer.play(cues.Cue(name="silent", samples=np.zeros(10)))
    gain = in_frames(mixer, np.full(4800, QUIET)) / QUIET
    assert gain[479] < 0.51
    assert (gain[480 + 120 :] == 1).all()


@pytest.mark.parametrize("options", [{}, {"limiter": True}, {"guard": True}], ids=str)
def test_lifting_is_the_same_for_any_cut(options):
    rng = np.random.default_rng(5)
    talk = speech(4 * RATE) * (np.arange(4 * RATE) // 3000 % 3 > 0)
    told = []
    for cut in (4 * RATE, 480, 77):
        mixer, out = cues.Mixer(**options), []
        mixer.play(BANK["working"], loop=True)
        for at in np.random.default_rng(1).integers(0, 4 * RATE, 8):
            mixer.play(BANK[ONE_SHOT[at % len(ONE_SHOT)]], at=int(at))
        while mixer.position < 4 * RATE:
            n = min(4 * RATE - mixer.position, int(rng.integers(1, cut + 1)))
            out.append(np.array(mixer.mix(talk[mixer.position : mixer.position + n])))
        told.append(np.concatenate(out))
    np.testing.assert_array_equal(told[0], told[1])
    np.testing.assert_array_equal(told[0], told[2])


def test_answers_after_cues_and_ticks_make_no_click():
    mixer, rng = cues.Mixer(), np.random.default_rng(2)
    pieces = []
    for k in range(60):
        pieces += [speech(int(rng.integers(4000, 30000)), seed=k), zeros(int(rng.integers(500, 20000)))]
    talk = np.concatenate(pieces)
    for at in rng.integers(0, len(talk), 120):
        mixer.play(BANK[ONE_SHOT[at % len(ONE_SHOT)]], at=int(at))
    mixer.play(BANK["working"], loop=True)
    out = in_frames(mixer, talk)
    assert len(find_clicks(talk)) < 200
    assert new_clicks(out, talk) == []


@pytest.mark.parametrize("frame", [480, 700, 113])
def test_a_loop_that_was_stopped_between_two_ticks_ducks_no_speech_where_its_next_tick_would_have_been(frame):
    tick = np.zeros(6000, dtype=np.float32)
    tick[:960] = 0.1 * np.sin(np.arange(960) * 0.2) * np.hanning(960)
    mixer = cues.Mixer()
    mixer.play(cues.Cue(name="tick", samples=tick, loop=True))
    in_frames(mixer, zeros(2000))
    mixer.release(10)
    mixer.resume()
    answer = np.full(9000, 0.25, dtype=np.float32)
    in_frames(mixer, answer[:1000])  # fades out and in again
    np.testing.assert_array_equal(in_frames(mixer, answer, frame), answer)
