import numpy as np
import pytest

from cues.meters.telephone import over_telephone


@pytest.mark.parametrize(
    ("hz", "low_db", "high_db"), [(100, -120, -35), (1000, -0.5, 0.5), (3000, -0.5, 0.5), (3800, -120, -35)]
)
def test_only_the_band_of_a_telephone_passes(hz, low_db, high_db):
    sine = 0.3 * np.sin(2 * np.pi * hz * np.arange(24000) / 24000)
    heard = over_telephone(sine, 24000)[2000:6000]
    gain_db = 20 * np.log10(np.sqrt(np.mean(heard**2) + 1e-12) / np.sqrt(np.mean(sine**2)))
    assert low_db < gain_db < high_db


def test_a_period_of_a_loop_is_what_the_telephone_carries_of_the_running_loop():
    t = np.arange(24000) / 24000
    period = 0.1 * (np.sin(2 * np.pi * 350 * t) + np.cos(2 * np.pi * 1237 * t))
    running = over_telephone(np.tile(period, 5), 24000)[16000:24000]
    assert np.abs(over_telephone(period, 24000, loop=True) - running).max() < 0.004  # one step of the µ-law
    assert np.abs(over_telephone(period, 24000) - running).max() > 0.02
