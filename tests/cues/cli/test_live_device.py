"""The loudspeakers of a live session: every sample once, in order; late silence is dropped, sound never."""

import miniaudio
import numpy as np
import pytest

from cues.cli.live.sound_device import SoundDevice
from cues.errors import CueError

NULL = [miniaudio.Backend.NULL]
INSTEAD = "read it"


def pull(device, *sizes):
    """Samples for a device that asks for so many each time."""
    source = device._source()
    next(source)
    return np.concatenate([source.send(size) for size in sizes])


def test_a_device_is_given_every_sample_once_and_zeros_while_there_are_none():
    device = SoundDevice(24000, INSTEAD, backends=NULL)
    for start in range(0, 1000, 240):
        device.write(np.arange(start, min(start + 240, 1000), dtype=np.float32) + 1.0)
    given = pull(device, 7, 300, 480, 500)
    assert np.array_equal(given[:1000], np.arange(1, 1001))
    assert not given[1000:].any()


def test_after_a_stall_silence_is_dropped_and_sound_is_not():
    device = SoundDevice(24000, INSTEAD, backends=NULL)
    for _ in range(100):
        device.write(np.ones(240, dtype=np.float32))
    for _ in range(100):
        device.write(np.zeros(240, dtype=np.float32))
    assert device.queued_samples == 24000


def test_leaving_the_block_waits_until_all_was_heard():
    with SoundDevice(24000, INSTEAD, backends=NULL) as device:
        device.write(np.ones(2400, dtype=np.float32))
    assert device._heard.is_set()


def test_a_device_that_cannot_be_opened_is_one_clear_line():
    with pytest.raises(CueError, match="cannot be opened"):
        SoundDevice(24000, INSTEAD, backends=[miniaudio.Backend.WASAPI])
