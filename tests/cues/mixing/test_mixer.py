"""The mixer: nothing while idle, each cue at its sample, and an end."""

import gc
import tracemalloc

import numpy as np
import pytest

import cues
from cues.mixing.sound import prepare
from tests.support.mixing_scripts import RATE, noise_cue, run, speech, tone, zeros

pytestmark = pytest.mark.usefixtures("loops")


def test_an_idle_mixer_returns_the_frame_itself():
    mixer = cues.Mixer()
    frame = speech(480)
    assert mixer.mix(frame) is frame
    assert mixer.position == 480


def test_after_the_last_ramp_the_mixer_is_idle_again():
    mixer = cues.Mixer()
    mixer.play(tone())
    run(mixer, zeros(24000))
    frame = zeros(480)
    assert mixer.mix(frame) is frame
    assert not mixer.active


def test_idle_does_not_read_the_frame_and_a_guard_does():
    bad = np.array([0.1, np.nan, np.inf, 0.2], dtype=np.float32)
    assert cues.Mixer().mix(bad) is bad
    guarded = cues.Mixer(guard=True)
    np.testing.assert_array_equal(guarded.mix(bad), np.array([0.1, 0, 0, 0.2], dtype=np.float32))
    assert guarded.stats.nonfinite_samples == 2
    clean = zeros(4)
    assert guarded.mix(clean) is clean


@pytest.mark.parametrize("at", [0, 1, 479, 480, 481, 1234])
def test_a_scheduled_cue_begins_at_its_sample(at):
    mixer = cues.Mixer()
    cue = noise_cue()
    mixer.play(cue, at=at)
    out = run(mixer, zeros(6000))
    assert np.flatnonzero(out)[0] == at
    np.testing.assert_array_equal(out[at : at + len(cue)], prepare(cue, RATE).samples)


def test_a_cue_with_edges_of_its_own_is_played_as_it_is():
    mixer = cues.Mixer()
    cue = tone()
    mixer.play(cue, at=100)
    out = run(mixer, zeros(6000))
    np.testing.assert_array_equal(out[100 : 100 + len(cue)], cue.samples)


def test_a_cue_whose_time_has_passed_starts_at_once_and_is_counted():
    mixer = cues.Mixer()
    mixer.mix(zeros(480))
    mixer.play(noise_cue(), at=100)
    assert mixer.mix(zeros(480))[0] != 0
    assert (mixer.stats.started, mixer.stats.late) == (1, 1)


def test_a_cue_half_a_day_ahead_begins_at_its_sample():
    mixer = cues.Mixer()
    at = 3 << 29
    mixer.play(noise_cue(), at=at + 5)
    hours = zeros(1 << 29)  # never touched, so it takes no memory
    for _ in range(3):
        assert mixer.mix(hours) is hours
    assert np.flatnonzero(mixer.mix(zeros(480)))[0] == 5


def test_silence_moves_the_session_on_and_is_counted():
    mixer = cues.Mixer()
    mixer.play(noise_cue(), at=480)
    assert not mixer.silence(480).any()
    assert mixer.silence(480).any()
    assert (mixer.position, mixer.stats.silence_frames) == (960, 2)


def test_a_closed_mixer_lets_frames_pass_and_plays_nothing():
    mixer = cues.Mixer()
    mixer.play(cues.Cue(name="steady", samples=np.full(24000, 0.25)))
    run(mixer, zeros(4800))
    mixer.close()
    with pytest.raises(cues.CueError, match="closed"):
        mixer.play(tone())
    gain = run(mixer, zeros(24000)) / 0.25
    assert np.abs(np.diff(np.concatenate([[1.0], gain]), 2)).max() <= 4.1e-4
    frame = zeros(480)
    assert mixer.mix(frame) is frame
    mixer.close()


def test_all_python_objects_of_a_mixer_take_at_most_two_kibibytes():
    """With its state of 384 bytes and its compiled methods."""
    kept = [cues.Mixer() for _ in range(3)]
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept += [cues.Mixer() for _ in range(200)]
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken / 200 <= 2048


def test_eight_voices_take_at_most_384_bytes_and_with_a_limiter_one_kibibyte():
    assert cues.Mixer().state_bytes <= 384
    assert cues.Mixer(limiter=True, follow_speech=True).state_bytes <= 1024
