"""Frames of several channels: each has the bits of a mixer for it alone, where the speech is the same in all."""

import numpy as np
import pytest

import cues
from tests.support.mixing_scripts import random_script, speech, tone, zeros

pytestmark = pytest.mark.usefixtures("loops")


def one_column(channels):
    """Mix mono frames by a mixer of several channels; each channel must come out the same."""

    class Stacked:
        def __init__(self, **options):
            self.mixer = cues.Mixer(channels=channels, **options)

        def __getattr__(self, name):
            return getattr(self.mixer, name)

        def mix(self, frame):
            out = self.mixer.mix(np.repeat(frame[:, None], channels, axis=1))
            for channel in range(1, channels):
                np.testing.assert_array_equal(out[:, channel], out[:, 0])
            return out[:, 0]

    return Stacked


@pytest.mark.parametrize("options", [{}, {"limiter": True}, {"guard": True}, {"follow_speech": True}], ids=str)
@pytest.mark.parametrize("channels", [2, 3])
def test_each_channel_has_the_bits_of_one(channels, options):
    script = random_script(channels, n_samples=12000, **options)
    mono, mixer = script.run(lambda: 480)
    stacked, twin = script.run(lambda: 700, one_column(channels)(**options))
    np.testing.assert_array_equal(stacked, mono)
    assert twin.mixer.stats.started == mixer.stats.started


def test_channels_of_their_own_stay_apart():
    talk = np.stack([speech(4800, seed=1), speech(4800, seed=2)], axis=1)
    mixer, alone = cues.Mixer(channels=2), [cues.Mixer(), cues.Mixer()]
    for each in (mixer, *alone):
        each.play(tone(4000))
    out = np.concatenate([mixer.mix(talk[k : k + 480]) for k in range(0, 4800, 480)])
    for channel, single in enumerate(alone):
        expected = np.concatenate(
            [single.mix(np.ascontiguousarray(talk[k : k + 480, channel])) for k in range(0, 4800, 480)]
        )
        np.testing.assert_array_equal(out[:4000, channel], expected[:4000])


def test_int16_is_interleaved():
    talk = (speech(2400) * 32767).astype("<i2")
    mixer, mono = cues.Mixer(channels=2), cues.Mixer()
    for each in (mixer, mono):
        each.play(tone(1000))
    mixed = np.frombuffer(mixer.mix_pcm16(np.repeat(talk, 2).tobytes()), "<i2").reshape(-1, 2)
    np.testing.assert_array_equal(mixed[:, 0], np.frombuffer(mono.mix_pcm16(talk.tobytes()), "<i2"))
    np.testing.assert_array_equal(mixed[:, 0], mixed[:, 1])
    with pytest.raises(cues.CueValueError, match="a multiple of 4 for 2 channels"):
        mixer.mix_pcm16(b"abcdef")


def test_an_idle_frame_is_handed_back_and_others_are_refused():
    mixer, frame, out = cues.Mixer(channels=2), np.zeros((480, 2), np.float32), np.zeros((480, 2), np.float32)
    assert mixer.mix(frame) is frame
    assert mixer.mix(frame, out=out) is out
    assert mixer.silence(480).shape == (480, 2)
    assert mixer.position == 1440
    for bad in (zeros(480), np.zeros((480, 3), np.float32), np.zeros((2, 480), np.float32).T[:, :1]):
        with pytest.raises(cues.CueValueError, match=r"it must be \(n_samples, 2\)"):
            mixer.mix(bad)
    np.testing.assert_array_equal(mixer.mix(np.ones((2, 480), np.float32).T), np.ones((480, 2)))
    with pytest.raises(cues.CueValueError, match="channels is 0"):
        cues.Mixer(channels=0)
