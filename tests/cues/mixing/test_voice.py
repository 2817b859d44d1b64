"""A voice: its gain, its loop, its end, and its slot."""

import numpy as np
import pytest

import cues
from tests.support.mixing_scripts import RATE, noise_cue, run, tone, zeros

pytestmark = pytest.mark.usefixtures("loops")


def test_stop_fades_over_the_time_that_is_asked_for():
    mixer = cues.Mixer()
    voice = mixer.play(cues.Cue(name="steady", samples=np.full(48000, 0.25)))
    run(mixer, zeros(4800))
    voice.stop(fade_ms=20)
    gain = run(mixer, zeros(4800)) / 0.25
    assert np.flatnonzero(gain)[-1] == pytest.approx(480, abs=3)
    assert np.abs(np.diff(np.concatenate([[1.0], gain]), 2)).max() < 4.1e-4
    assert voice.done


def test_gain_changes_are_ramps_and_the_last_one_wins():
    mixer = cues.Mixer()
    voice = mixer.play(cues.Cue(name="steady", samples=np.full(48000, 0.25)), gain_db=-6)
    out = [run(mixer, zeros(2400))]
    for gain_db in (-20.0, 0.0, -3.0):
        voice.gain_db = gain_db
        out.append(run(mixer, zeros(100)))
    out.append(run(mixer, zeros(2400)))
    gain = np.concatenate(out)[1000:] / 0.25
    assert gain[-1] == pytest.approx(10 ** (-3 / 20), abs=1e-6)
    assert np.abs(np.diff(gain, 2)).max() <= 4.1e-4
    assert voice.gain_db == -3.0


def test_a_loop_has_no_seam_and_goes_on():
    mixer = cues.Mixer()
    t = np.arange(2400)
    seamless = cues.Cue(name="hum", samples=0.2 * np.sin(2 * np.pi * 200 * t / RATE))
    voice = mixer.play(seamless, loop=True)
    out = run(mixer, zeros(24000))
    expected = 0.2 * np.sin(2 * np.pi * 200 * np.arange(24000) / RATE)
    np.testing.assert_allclose(out[240:], expected[240:], atol=1e-5)
    voice.stop()
    run(mixer, zeros(4800))
    assert not mixer.active


def test_a_loop_that_does_not_fit_gets_a_crossfaded_seam():
    mixer = cues.Mixer()
    saw = cues.Cue(name="saw", samples=0.2 * np.sin(2 * np.pi * 201.3 * np.arange(2400) / RATE))
    mixer.play(saw, loop=True)
    out = run(mixer, zeros(24000))
    assert np.abs(np.diff(out, 2)).max() < 1.5 * 0.2 * (2 * np.pi * 201.3 / RATE) ** 2


def test_the_least_important_and_then_the_oldest_voice_is_stolen():
    mixer = cues.Mixer(voices=2)
    long = tone(24000)
    important = mixer.play(long, priority=1)
    first = mixer.play(long)
    mixer.mix(zeros(480))
    second = mixer.play(long)
    mixer.mix(zeros(480))
    assert (important.done, first.done, second.done) == (False, True, False)
    refused = mixer.play(long, priority=-1)
    mixer.mix(zeros(480))
    assert refused.done
    assert (mixer.stats.started, mixer.stats.stolen) == (3, 2)


def test_a_stolen_voice_fades_in_5_ms():
    mixer = cues.Mixer(voices=1)
    steady = cues.Cue(name="steady", samples=np.full(24000, 0.25))
    mixer.play(steady)
    run(mixer, zeros(4800))
    mixer.play(cues.Cue(name="silent", samples=np.zeros(4800)))
    gain = run(mixer, zeros(4800)) / 0.25
    assert np.flatnonzero(gain)[-1] == pytest.approx(120, abs=3)
    assert np.abs(np.diff(np.concatenate([[1.0, 1.0], gain]), 2)).max() <= 4.1e-4


def test_a_stop_in_a_change_of_gain_and_a_sooner_one_after_it_do_not_click():
    """The first makes finished samples of a loop, which have no turns that the second could go back by."""
    mixer = cues.Mixer()
    voice = mixer.play(cues.Cue(name="steady", samples=np.full(2400, 0.1)), loop=True)
    out = [mixer.silence(2400)]
    voice.gain_db = -6
    out.append(mixer.silence(50))
    voice.stop(fade_ms=2000)
    out.append(mixer.silence(9600))
    voice.stop(fade_ms=30)
    out.append(mixer.silence(9600))
    gain = np.concatenate(out).astype(np.float64) / 0.1
    assert np.abs(np.diff(gain, 2)).max() <= 4.1e-4
    assert not mixer.active


@pytest.mark.parametrize("before_stop", [50, 2400], ids=["in a change of gain", "at rest"])
def test_a_gain_that_is_set_after_a_stop_is_not_heard(before_stop):
    tails = []
    for gain_db in (-12.0, 20.0):
        mixer = cues.Mixer()
        voice = mixer.play(cues.Cue(name="steady", samples=np.full(48000, 0.1)))
        mixer.silence(2400)
        voice.gain_db = -12
        mixer.silence(before_stop)
        voice.stop(fade_ms=1000)
        mixer.silence(100)
        voice.gain_db = gain_db
        tails.append(mixer.silence(24000))
    np.testing.assert_array_equal(*tails)


def test_a_voice_that_fades_out_already_makes_room_before_any_other():
    mixer = cues.Mixer(voices=2)
    long = tone(24000)
    older, important = mixer.play(long), mixer.play(long, priority=5)
    mixer.silence(480)
    important.stop(fade_ms=1000)
    mixer.silence(480)
    newer = mixer.play(long)
    mixer.silence(480)
    assert (older.done, important.done, newer.done) == (False, True, False)


def test_a_cue_after_a_release_is_heard_however_important_what_fades_was():
    mixer = cues.Mixer(voices=1)
    mixer.play(tone(24000), priority=9)
    mixer.silence(480)
    mixer.release()
    mixer.play(noise_cue())
    mixer.silence(480)
    assert mixer.stats.started == 2


def test_a_voice_tells_its_state():
    mixer = cues.Mixer()
    voice = mixer.play(tone(960, 660.0), gain_db=-3)
    told = [repr(voice)]
    for _ in range(3):
        mixer.silence(480)
        told.append(repr(voice))
    states = ["waiting", "sounding", "done", "done"]
    assert told == [f"<Voice of 'tone 660', {state}, -3 dB>" for state in states]


@pytest.mark.parametrize(
    ("placement", "before", "onset"), [("overlay", 480, 639), ("in_pause", 480, 1839), ("in_pause", 720, 1839)]
)
def test_voices_that_are_stopped_before_they_begin_never_do(placement, before, onset):
    mixer = cues.Mixer(gap_limit_ms=50)
    talk = np.full(2400, 0.3, dtype=np.float32)  # no pause
    voices = [mixer.play(noise_cue(), at=600 + k, placement=placement) for k in range(40)]
    mixer.mix(talk[:before])
    for voice in voices[:39]:
        voice.stop()
    mixer.mix(talk)
    assert mixer.stats.started == 1
    assert [voice.onset for voice in voices] == [None] * 39 + [onset]


def test_play_loops_a_cue_that_is_meant_to_loop_unless_told_otherwise():
    samples = tone(960).samples
    looping, once = (cues.Cue(name="tick", samples=samples, loop=loop) for loop in (True, False))
    for cue, loop, goes_on in ((looping, None, True), (looping, False, False), (once, None, False), (once, True, True)):
        mixer = cues.Mixer()
        voice = mixer.play(cue, loop=loop)
        mixer.silence(24000)
        assert voice.done is not goes_on
