import numpy as np
import pytest

from cues.meters.telephone import over_telephone
from cues.signal.g711 import bytes_of_samples, samples_of_bytes


def test_the_quantization_keeps_38_db_over_a_wide_range():
    # G.711 keeps a signal-to-noise ratio of about 38 dB for a sine (G.712, figure 9 asks for 33 dB at −10 dBm0).
    sine = 0.3 * np.sin(2 * np.pi * 1017.0 * np.arange(8000) / 8000)
    noise = samples_of_bytes(bytes_of_samples(sine.astype(np.float32))) - sine
    assert 10 * np.log10(np.mean(sine**2) / np.mean(noise**2)) > 36.0


@pytest.mark.parametrize(
    ("hz", "low_db", "high_db"), [(100, -120, -35), (1000, -0.5, 0.5), (3000, -0.5, 0.5), (3800, -120, -35)]
)
def test_only_the_band_of_a_telephone_passes(hz, low_db, high_db):
    sine = 0.3 * np.sin(2 * np.pi * hz * np.arange(24000) / 24000)
    heard = over_telephone(sine, 24000)[2000:6000]
    gain_db = 20 * np.log10(np.sqrt(np.mean(heard**2) + 1e-12) / np.sqrt(np.mean(sine**2)))
    assert low_db < gain_db < high_db
