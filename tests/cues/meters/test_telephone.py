import numpy as np
import pytest

from cues.errors import CueTypeError
from cues.meters.telephone import RATE_HZ, over_telephone
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


def test_the_length_is_that_of_8_khz():
    assert RATE_HZ == 8000
    assert len(over_telephone(np.zeros(4801, dtype=np.float32), 48000)) == 800


def test_integers_are_refused():
    with pytest.raises(CueTypeError, match="int16"):
        over_telephone(np.zeros(10, dtype=np.int16), 8000)
