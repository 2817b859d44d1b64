"""Gain of the speech: ducked, replaced, waited for, faded by a release."""

import numpy as np
import pytest

import cues
from tests.support.mixing_scripts import RATE, noise_cue, run, speech, tone, zeros

pytestmark = pytest.mark.usefixtures("loops")

DUCK = 10 ** (-6 / 20)


def test_speech_is_ducked_by_6_db_held_and_brought_back():
    mixer = cues.Mixer()
    ones = np.full(48000, 0.5, dtype=np.float32)
    mixer.play(cues.Cue(name="silent", samples=np.zeros(4800)), at=4800)
    gain = run(mixer, ones) / 0.5
    assert (gain[:4800] == 1).all()
    duck_end = 9600 + round(0.2 * RATE)
    np.testing.assert_allclose(gain[4800 + 480 : duck_end], DUCK, atol=1e-6)
    assert (gain[duck_end + round(0.3 * RATE) :] == 1).all()
    assert np.abs(np.diff(gain, 2)).max() < 1e-4


def test_two_cues_in_a_row_do_not_pump():
    mixer = cues.Mixer()
    quiet = cues.Cue(name="silent", samples=np.zeros(2400))
    for at in (0, 2400 + 4000):
        mixer.play(quiet, at=at)
    gain = run(mixer, np.ones(24000, dtype=np.float32) * 0.5) / 0.5
    np.testing.assert_allclose(gain[480 : 6400 + 2400], DUCK, atol=1e-6)


def test_replace_crossfades_speech_out_and_back_at_equal_power():
    mixer = cues.Mixer()
    n, fade = 9600, round(0.02 * RATE)
    steady = cues.Cue(name="steady", samples=np.full(n, 0.25))
    mixer.play(steady, placement="replace", at=1000)
    without = run(mixer, zeros(24000)) / 0.25
    mixer = cues.Mixer()
    mixer.play(cues.Cue(name="silent", samples=np.zeros(n)), placement="replace", at=1000)
    gain = run(mixer, np.full(24000, 0.5, dtype=np.float32)) / 0.5
    assert (gain[1000 + fade : 1000 + n - fade] == 0).all()
    np.testing.assert_allclose(gain[1000 : 1000 + n] ** 2 + without[1000 : 1000 + n] ** 2, 1.0, atol=1e-3)
    assert np.abs(np.diff(gain, 2)).max() < 6.5e-4
    assert (gain[1000 + n :] == 1).all()


def test_in_pause_waits_for_the_pause_in_the_speech():
    mixer = cues.Mixer()
    talk = speech(24000)
    talk[:] = np.where(np.arange(24000) < 12000, 0.3 * np.sin(np.arange(24000)), 0)
    mixer.play(noise_cue(), placement="in_pause")
    out = run(mixer, talk, 123)
    assert np.flatnonzero(out[12000:])[0] == 80 * 24


def test_in_pause_gives_up_waiting_at_its_limit():
    mixer = cues.Mixer(gap_limit_ms=300)
    mixer.play(cues.Cue(name="steady", samples=np.full(960, 0.2)), placement="in_pause")
    talk = (0.3 * np.sin(np.arange(12000))).astype(np.float32)
    out = run(mixer, talk)
    np.testing.assert_array_equal(out[:7200], talk[:7200])
    assert mixer.stats.started == 1
    assert not np.array_equal(out[7200:7300], talk[7200:7300])


def test_release_fades_everything_and_cancels_what_was_scheduled():
    mixer = cues.Mixer()
    talk = np.full(9600, 0.3, dtype=np.float32)
    playing = mixer.play(tone(48000))
    waiting = mixer.play(tone(), at=4000)
    run(mixer, talk[:960])
    mixer.release(fade_ms=30)
    out = run(mixer, talk)
    assert np.abs(out[:360]).max() > 0.01
    assert not out[720:].any()
    assert playing.done
    assert waiting.done
    assert not mixer.active


@pytest.mark.parametrize("fade_ms", [-3, 0, 5, 30, 250, 4000])
def test_a_release_takes_from_5_to_250_ms(fade_ms):
    mixer = cues.Mixer()
    mixer.release(fade_ms=fade_ms)
    gain = run(mixer, np.full(12000, 0.5, dtype=np.float32)) / 0.5
    assert np.flatnonzero(gain)[-1] == pytest.approx(min(max(fade_ms, 5), 250) * 24, abs=2)
    assert np.abs(np.diff(gain, 2)).max() <= 4.1e-4


def test_silence_lasts_until_resume():
    mixer = cues.Mixer()
    mixer.release()
    talk = np.full(4800, 0.3, dtype=np.float32)
    run(mixer, talk)
    assert not run(mixer, talk).any()
    mixer.resume()
    out = run(mixer, talk)
    np.testing.assert_array_equal(out[480:], talk[480:])
    assert np.abs(np.diff(out / 0.3, 2)).max() < 4e-4


def test_silence_lasts_until_the_next_cue():
    mixer = cues.Mixer()
    mixer.release()
    talk = np.full(4800, 0.3, dtype=np.float32)
    run(mixer, talk)
    mixer.play(cues.Cue(name="silent", samples=np.zeros(4800)))
    np.testing.assert_allclose(run(mixer, talk)[480:], 0.3 * DUCK, atol=1e-6)
