"""The listener of a mixer: the speech of each frame, before it is mixed."""

import numpy as np

import cues
from tests.support.listening import RATE, steady_voice

FRAME = steady_voice(0.1)[480:960]


def test_the_listener_gets_each_frame_before_it_is_mixed_and_the_mixer_is_idle_again_afterwards():
    mixer, seen = cues.Mixer(RATE), []
    mixer.observe(lambda speech: seen.append((mixer.position, speech.copy())))
    assert np.array_equal(mixer.mix(FRAME), FRAME)
    mixer.mix_pcm16(bytes(960))
    mixer.silence(480)
    mixer.observe(None)
    mixer.mix(FRAME)
    assert mixer.mix(FRAME) is FRAME
    assert [at for at, _ in seen] == [0, 480, 960]
    assert np.array_equal(seen[0][1], FRAME)
    assert not seen[1][1].any()


def test_a_closed_mixer_has_no_listener():
    mixer, seen = cues.Mixer(RATE), []
    mixer.observe(seen.append)
    mixer.close()
    mixer.mix(FRAME)
    assert seen == []


def test_a_voice_that_the_listener_starts_or_stops_does_so_in_that_frame():
    mixer = cues.Mixer(RATE, duck_db=0.0)
    cue = cues.load_bank()["tool_call"]
    mixer.observe(lambda _: mixer.play(cue) if mixer.position == 480 else None)
    mixer.mix(np.zeros(480, dtype=np.float32))
    assert np.array_equal(mixer.mix(np.zeros(480, dtype=np.float32)), cue.samples[:480])
    voice = mixer.play(cue, at=24000)
    mixer.observe(lambda _: voice.stop())
    mixer.mix(np.zeros(24000, dtype=np.float32))
    assert not mixer.mix(np.zeros(24000, dtype=np.float32)).any()


def test_sessions_of_a_pool_have_listeners_of_their_own():
    pool, seen = cues.MixerPool(sessions=3, frame_samples=480), []
    pool[1].observe(lambda speech: seen.append(speech.copy()))
    frames = np.stack([FRAME * n for n in (1, 2, 3)])
    assert np.array_equal(pool.mix(frames), frames)
    assert np.array_equal(seen, frames[1:2])
