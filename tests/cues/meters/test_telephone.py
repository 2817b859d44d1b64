import numpy as np
import pytest

from cues.errors import CueTypeError
from cues.meters.telephone import RATE_HZ, mulaw_decode, mulaw_encode, over_telephone

# ITU-T G.711, table 2b: the decoder's output at the ends of the eight segments, in units of its 14-bit scale.
G711_TABLE_2B = {
    0x80: 8031, 0x8F: 4191, 0x9F: 2079, 0xAF: 1023, 0xBF: 495, 0xCF: 231, 0xDF: 99, 0xEF: 33, 0xFE: 2, 0xFF: 0,
}  # fmt: skip


@pytest.mark.parametrize(("code", "level"), G711_TABLE_2B.items(), ids=hex)
def test_decoding_follows_the_table_of_g711(code, level):
    positive, negative = mulaw_decode(np.array([code, code & 0x7F], dtype=np.uint8))
    assert positive == level / 8192
    assert negative == -level / 8192


def test_every_code_survives_decoding_and_encoding():
    codes = np.arange(256, dtype=np.uint8)
    again = mulaw_encode(mulaw_decode(codes))
    # 0x7F is the negative zero: it comes back as the positive one.
    assert np.array_equal(np.delete(again, 0x7F), np.delete(codes, 0x7F))
    assert again[0x7F] == 0xFF


def test_what_lies_beyond_full_scale_is_clipped():
    assert np.array_equal(mulaw_encode(np.array([5.0, -5.0])), [0x80, 0x00])


def test_the_quantization_keeps_38_db_over_a_wide_range():
    # G.711 keeps a signal-to-noise ratio of about 38 dB for a sine (G.712, figure 9 asks for 33 dB at −10 dBm0).
    sine = 0.3 * np.sin(2 * np.pi * 1017.0 * np.arange(8000) / 8000)
    noise = mulaw_decode(mulaw_encode(sine)) - sine
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
