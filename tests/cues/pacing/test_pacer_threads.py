"""A voice that pushes from its own thread, and commands to the mixer from others, under forced switching."""

import threading

import numpy as np
import pytest

import cues
from tests.support.mixing_scripts import noise_cue
from tests.support.threads import run_together


class Now:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.mark.parametrize("seed", range(4))
def test_speech_pushed_from_another_thread_comes_out_whole_and_in_order(seed):
    x, rng = np.arange(1, 200_001, dtype=np.float32) * np.float32(2.0**-20), np.random.default_rng(seed)
    clock, frames, is_pushed = Now(), [], threading.Event()
    pacer = cues.Pacer(cues.Mixer(), clock=clock)

    def push():
        for piece in np.split(x, np.sort(rng.integers(0, len(x), 400))):
            pacer.push(piece)
        pacer.end()
        is_pushed.set()

    def release():
        while not is_pushed.is_set() or pacer.queued_samples:
            if pacer.queued_samples < 4800 and not is_pushed.is_set():
                continue  # Time stands still: an underrun would fade.
            clock.now_s += 0.013
            frames.extend(speech.copy() for speech in pacer.due_speech())
            pacer.wait_s()

    run_together(push, release)
    assert (pacer.queued_samples, pacer.underruns) == (0, 0)
    samples = np.concatenate(frames)
    np.testing.assert_array_equal(samples[samples > 0][: len(x)], x)  # behind it, the fade of what ends in mid-sound


@pytest.mark.parametrize("seed", range(4))
def test_what_is_dropped_and_what_is_released_is_all_that_was_pushed(seed):
    clock, mixer = Now(), cues.Mixer()
    pacer = cues.Pacer(mixer, clock=clock)
    n_pieces, n_piece, dropped, n_released = 3000, 333, [], [0]
    is_pushed, piece = threading.Event(), np.full(n_piece, 1e-4, dtype=np.float32)  # too soft for a fade to matter

    def push():
        for _ in range(n_pieces):
            pacer.push(piece)
        is_pushed.set()

    def release():
        rng = np.random.default_rng(seed)
        while not is_pushed.is_set() or pacer.queued_samples:
            clock.now_s += 0.013
            if rng.random() < 0.1:
                dropped.append(pacer.clear(keep_ms=float(rng.integers(0, 50))))
            n_released[0] += sum(int(np.count_nonzero(speech)) for speech in pacer.due_speech())

    run_together(push, release)
    assert n_released[0] + sum(dropped) == n_pieces * n_piece


def test_commands_to_the_mixer_from_other_threads_raise_nothing_and_leave_it_idle():
    clock, mixer = Now(), cues.Mixer(voices=2)
    pacer = cues.Pacer(mixer, clock=clock, continuous=True)
    cue, over = noise_cue(), threading.Event()

    def command():
        for n in range(300):
            voice = mixer.play(cue, priority=n % 3, loop=n % 5 == 0)
            voice.gain_db = -6.0
            voice.stop(10.0)
            if n % 7 == 0:
                mixer.release(5.0)
                mixer.resume()
        over.set()

    def release():
        while not over.is_set():
            clock.now_s += 0.013
            for frame in pacer.due():
                assert np.isfinite(frame).all()

    run_together(command, release)
    for _ in range(100):
        clock.now_s += 0.02
        pacer.due()
    assert not mixer.active


@pytest.mark.parametrize("seed", range(4))
def test_utterances_that_end_in_another_thread_come_out_whole_and_in_order(seed):
    # Too soft for a fade to matter.
    x, rng = np.arange(1, 100_001, dtype=np.float32) * np.float32(2.0**-30), np.random.default_rng(seed)
    clock, frames, is_pushed = Now(), [], threading.Event()
    pacer = cues.Pacer(cues.Mixer(), clock=clock)

    def push():
        for piece in np.split(x, np.sort(rng.integers(0, len(x), 2000))):
            pacer.push(piece)
            pacer.end()
            pacer.end()
        is_pushed.set()

    def release():
        while not is_pushed.is_set() or pacer.queued_samples:
            clock.now_s += 0.001
            frames.extend(speech.copy() for speech in pacer.due_speech())
            pacer.wait_s()

    run_together(push, release)
    samples = np.concatenate(frames)
    np.testing.assert_array_equal(samples[samples > 0], x)
