"""G.711, against the standard's own tables."""

import itertools

import numpy as np
import pytest

from cues.signal.g711 import bytes_of_samples, samples_of_bytes
from cues.signal.pcm import float_of_int16

ALL = float_of_int16(np.arange(-32768, 32768).astype(np.int16))
# The decoder's output at both ends of the eight segments, the loudest first, in units of the tables: ITU-T G.711
# (11/88), table 2b for µ-law (14 bits) and table 1b for A-law (13 bits).
SEGMENTS = {
    "mulaw": (8192, [(8031, 4191), (3999, 2079), (1983, 1023), (975, 495), (471, 231), (219, 99), (93, 33), (30, 0)]),
    "alaw": (4096, [(4032, 2112), (2016, 1056), (1008, 528), (504, 264), (252, 132), (126, 66), (63, 33), (31, 1)]),
}
# What a transmitter sends for them: all bits of µ-law are inverted, and every other bit of A-law.
SENT = {"mulaw": lambda n: 0x80 | n, "alaw": lambda n: (0xFF - n) ^ 0x55}


def levels_of(law):
    """The 128 positive levels of a law, the loudest first, full scale ±1.0: 16 equal steps a segment."""
    full_scale, segments = SEGMENTS[law]
    return np.concatenate([np.linspace(first, last, 16) for first, last in segments]) / full_scale


@pytest.mark.parametrize("law", SEGMENTS)
def test_every_code_has_the_level_of_the_standards_table(law):
    codes = np.array([SENT[law](n) for n in range(128)], dtype=np.uint8)
    np.testing.assert_array_equal(samples_of_bytes(codes.tobytes(), law), levels_of(law))
    np.testing.assert_array_equal(samples_of_bytes((codes ^ 0x80).tobytes(), law), -levels_of(law))


# The encoder's decision values at the ends of the segments, the softest first: tables 2a and 1a. Each segment has 16
# equal intervals, but for the softest of µ-law, whose first one is half as long as the others.
DECISIONS = {
    "mulaw": ([0, 31, 95, 223, 479, 991, 2015, 4063, 8159], [0, *range(1, 31, 2)]),
    "alaw": ([0, 32, 64, 128, 256, 512, 1024, 2048, 4096], list(range(0, 32, 2))),
}


@pytest.mark.parametrize("law", SEGMENTS)
def test_every_sample_has_the_level_of_the_interval_that_the_standards_table_puts_it_into(law):
    ends, decisions = DECISIONS[law]
    for first, last in itertools.pairwise(ends[1:]):
        decisions = [*decisions, *np.linspace(first, last, 17)[:-1]]
    full_scale, _ = SEGMENTS[law]
    positive = ALL[ALL >= 0]
    intervals = np.searchsorted(decisions, positive * full_scale, side="right") - 1
    expected = levels_of(law)[::-1][intervals]
    np.testing.assert_array_equal(samples_of_bytes(bytes_of_samples(positive, law), law), expected)
    # A negative sample and its complement are the same distance from zero, in the codec's view.
    negative = ALL[ALL < 0][::-1]
    np.testing.assert_array_equal(samples_of_bytes(bytes_of_samples(negative, law), law), -expected)


@pytest.mark.parametrize("law", SEGMENTS)
def test_samples_beyond_full_scale_are_clipped(law):
    loud = bytes_of_samples(np.array([5.0, -5.0, 1.0, -1.0], dtype=np.float32), law)
    assert loud[:2] == loud[2:]
