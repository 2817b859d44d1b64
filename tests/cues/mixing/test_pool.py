"""Many sessions in one table."""

from contextlib import suppress

import numpy as np
import pytest

import cues
from tests.support.mixing_scripts import noise_cue, speech, tone
from tests.support.threads import run_together

pytestmark = pytest.mark.usefixtures("loops")


def frames(n, seed=0):
    return speech(n * 480, seed).reshape(n, 480)


def test_a_cue_sounds_in_its_session_only():
    pool = cues.MixerPool(sessions=3)
    pool[1].play(noise_cue())
    out = pool.mix(np.zeros((3, 480), dtype=np.float32))
    assert out.any(axis=1).tolist() == [False, True, False]


def test_a_closed_session_makes_room_for_a_new_one_and_disturbs_nobody():
    pool = cues.MixerPool(sessions=2)
    for mixer in pool:
        mixer.play(tone(48000))
    first = pool.mix(np.zeros((2, 480), dtype=np.float32))
    np.testing.assert_array_equal(first[0], first[1])
    old = pool[0]
    old.close()
    new = pool[0]
    assert new is not old
    assert (new.position, new.active, pool[1].position) == (0, False, 480)
    out = pool.mix(np.zeros((2, 480), dtype=np.float32))
    assert not out[0].any()
    assert out[1].any()
    with pytest.raises(cues.CueError, match="closed"):
        old.play(tone())


def test_numbers_count_from_the_end_too_and_end_somewhere():
    pool = cues.MixerPool(sessions=2)
    assert pool[-1] is pool[1]
    with pytest.raises(IndexError, match="2 sessions"):
        pool[2]


@pytest.mark.parametrize(
    ("given", "error"),
    [(np.zeros((2, 480), dtype=np.float32), ValueError), (np.zeros((3, 480), dtype=np.int16), TypeError)],
    ids=["shape", "dtype"],
)
def test_frames_of_another_kind_are_refused(given, error):
    pool = cues.MixerPool(sessions=3)
    with pytest.raises(error) as caught:
        pool.mix(given)
    assert isinstance(caught.value, cues.CueError)
    assert pool[0].position == 0


def test_a_session_of_a_pool_takes_at_most_384_bytes():
    assert cues.MixerPool(sessions=100).nbytes <= 384 * 100


def test_a_closed_session_fades_out_until_somebody_asks_for_its_place():
    pool = cues.MixerPool(sessions=2)
    pool[0].play(cues.Cue(name="steady", samples=np.full(24000, 0.25)))
    quiet = np.zeros((2, 480), dtype=np.float32)
    out = [pool.mix(quiet)[0] for _ in range(4)]
    old = pool[0]
    old.close()
    out += [pool.mix(quiet)[0] for _ in range(4)]
    gain = np.concatenate(out).astype(np.float64) / 0.25
    assert np.abs(np.diff(gain, 2)).max() <= 4.1e-4
    assert not gain[-480:].any()
    assert pool[0] is not old


def test_any_thread_may_ask_for_sessions_play_in_them_and_close_them_while_another_mixes():
    pool, frame = cues.MixerPool(sessions=3), np.zeros((3, 480), dtype=np.float32)
    n_bytes = pool.nbytes

    def use():
        for number in range(200):
            mixer = pool[number % 3]
            with suppress(cues.MixerClosedError):  # by another thread
                mixer.play(noise_cue(), loop=True)
            mixer.close()
            assert [len(pool), len(list(pool)), pool.nbytes] == [3, 3, n_bytes]

    run_together(use, use, lambda: [pool.mix(frame) for _ in range(300)])
    for mixer in pool:
        mixer.close()
    sessions = list(pool)
    assert [pool.mix(frame).any() for _ in range(3)][1:] == [False, False]
    assert not any(mixer.active for mixer in sessions)


def test_voices_of_a_closed_session_end_when_a_new_one_takes_its_place():
    pool = cues.MixerPool(sessions=2)
    old = pool[0]
    voice = old.play(cues.Cue(name="steady", samples=np.full(24000, 0.25), loop=True))
    quiet = np.zeros((2, 480), dtype=np.float32)
    pool.mix(quiet)
    old.close()
    assert pool[0] is not old
    assert not voice.done
    pool.mix(quiet)
    assert voice.done
    assert not old.active
    assert not pool[0].active


def test_threads_that_ask_for_a_renewed_session_at_once_get_the_same():
    pool = cues.MixerPool(sessions=1)
    for _ in range(40):
        pool[0].close()
        got = []
        run_together(*[lambda got=got: got.append(pool[0])] * 4)
        assert len(got) == 4
        assert all(mixer is pool[0] for mixer in got)
