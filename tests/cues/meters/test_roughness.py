"""Roughness against E. Zwicker, H. Fastl: Psychoacoustics (1990), section 11.1 and figure 11.2."""

import numpy as np
import pytest

from cues.meters.roughness import roughness_asper

RATE = 24000


def modulated(carrier_hz, modulation_hz, depth=1.0, rate=RATE):
    t = np.arange(rate) / rate
    envelope = 1.0 + depth * np.sin(2 * np.pi * modulation_hz * t)
    return (0.1 * envelope * np.sin(2 * np.pi * carrier_hz * t)).astype(np.float32)


@pytest.mark.parametrize("rate", [16000, 24000, 48000])
def test_the_reference_is_one_asper(rate):
    assert roughness_asper(modulated(1000, 70, rate=rate), rate) == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(
    ("carrier_hz", "modulation_hz", "asper"),
    [
        (125, 34, 0.35),
        (250, 43, 0.49),
        (500, 56, 0.68),
        (2000, 68, 0.84),
        (1000, 50, 0.85),
        (1000, 100, 0.75),
        (1000, 160, 0.34),
    ],
)
def test_amplitude_modulated_tones_are_as_rough_as_listeners_say(carrier_hz, modulation_hz, asper):
    """17 % is just noticeable; 25 % is within the scatter of the listeners and the published models."""
    assert roughness_asper(modulated(carrier_hz, modulation_hz), RATE) == pytest.approx(asper, rel=0.25)


@pytest.mark.parametrize("depth", [0.4, 0.5, 0.7])
def test_roughness_grows_with_the_depth_of_modulation_to_the_power_of_1_6(depth):
    ratio = roughness_asper(modulated(1000, 70, depth), RATE) / roughness_asper(modulated(1000, 70), RATE)
    assert ratio == pytest.approx(depth**1.6, rel=0.17)


def test_steady_and_slowly_changing_sounds_are_smooth():
    for smooth in (modulated(1000, 70, 0.0), modulated(1000, 4), np.zeros(100, dtype=np.float32)):
        assert roughness_asper(smooth, RATE) < 0.05


@pytest.mark.parametrize("hz", [440, 523, 660])
@pytest.mark.parametrize("tick_ms", [25, 40, 60, 100])
def test_a_lone_tick_is_smooth_wherever_it_lies(hz, tick_ms):
    n = np.arange(RATE * tick_ms // 1000)
    tick = 0.1 * np.hanning(len(n)) * np.sin(2 * np.pi * hz * n / RATE)
    for start_ms in range(0, 300, 10):
        loop = np.zeros(2 * RATE, dtype=np.float32)
        loop[RATE * start_ms // 1000 :][: len(n)] = tick
        assert roughness_asper(loop, RATE) == 0.0


def test_a_rough_stretch_of_half_a_second_is_found_wherever_it_lies():
    rough = modulated(1000, 70)[: RATE // 2]
    for start in range(0, RATE // 2, 1700):
        assert roughness_asper(np.pad(rough, (start, RATE)), RATE) == pytest.approx(1.0, rel=0.05)


def test_a_louder_sound_is_rougher_and_its_digital_level_does_not_matter():
    sound = modulated(1000, 70)
    assert roughness_asper(sound * 0.01, RATE) == pytest.approx(roughness_asper(sound, RATE), rel=1e-3)
    assert (
        roughness_asper(sound, RATE, level_db=40.0)
        < roughness_asper(sound, RATE)
        < roughness_asper(sound, RATE, level_db=70.0)
    )
