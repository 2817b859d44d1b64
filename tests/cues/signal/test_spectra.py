import numpy as np
import pytest

from cues.signal.spectra import short_time_power


@pytest.mark.parametrize("length", [1024, 961])
def test_a_tone_is_strongest_in_its_own_bin_at_its_own_time(length):
    rate, hz = 24000, 3000.0
    samples = np.zeros(24000)
    samples[12000:] = np.sin(2 * np.pi * hz / rate * np.arange(12000))
    power = short_time_power(samples, np.array([0, 6000, 18000, 24000 + length // 2]), length, 4 * length)
    assert power.shape == (4, 2 * length + 1)
    assert power[2].argmax() * rate / (4 * length) == pytest.approx(hz, abs=rate / (4 * length))
    assert not power[:2].any()
