"""The limiter: nothing but a delay, or a true peak under −0.95 dBTP."""

import numpy as np
import pytest

import cues
from tests.support.mixing_scripts import RATE, mixing_with, speech, tone

pytestmark = pytest.mark.usefixtures("loops")


def limited(samples, rate=RATE):
    mixer = cues.Mixer(rate, limiter=True)
    out = np.concatenate([mixer.mix(samples[k : k + 480]) for k in range(0, len(samples), 480)])
    return out, mixer


def test_while_it_has_nothing_to_do_it_only_delays():
    talk = speech(24000, peak=0.7)
    out, mixer = limited(talk)
    late = mixer.latency_samples
    np.testing.assert_array_equal(out[late:], talk[:-late])
    assert mixer.stats.limited_samples == 0


@pytest.mark.parametrize("seed", range(12))
def test_sound_up_to_minus_1_5_dbtp_only_passes_later(seed):
    """Noise of a random band up to 0.42 of the rate, and a tone at its upper end."""
    rng, n = np.random.default_rng(seed), 4800
    low, high = np.sort(rng.uniform(0.001, 0.42, 2))
    spectrum, fraction = np.fft.rfft(rng.standard_normal(n)), np.fft.rfftfreq(n)
    spectrum[(fraction < low) | (fraction > high)] = 0
    fade = np.hanning(n) ** 0.2
    for sound in (np.fft.irfft(spectrum) * fade, np.sin(2 * np.pi * high * np.arange(n)) * fade):
        peak_dbtp = cues.true_peak_dbtp(sound.astype(np.float32), RATE, oversampling=16)
        quiet = (sound * 10 ** ((-1.5 - peak_dbtp) / 20)).astype(np.float32)
        out, mixer = limited(quiet)
        np.testing.assert_array_equal(out[mixer.latency_samples :], quiet[: -mixer.latency_samples])


@pytest.mark.parametrize("rate", [8000, 16000, 24000, 44100, 48000])
def test_its_delay_is_at_most_1500_microseconds(rate):
    assert 0 < cues.Mixer(rate, limiter=True).latency_samples <= 1.5e-3 * rate


def test_below_8_khz_it_is_refused():
    with pytest.raises(cues.CueError, match="8000"):
        cues.Mixer(6000, limiter=True)


@pytest.mark.parametrize("fraction", [0.05, 0.125, 0.25, 1 / 3, 0.37, 0.42])
@pytest.mark.parametrize("level", [1.0, 1.41, 4.0])
def test_true_peaks_of_tones_stay_under_the_ceiling(fraction, level):
    t = np.arange(7200)
    # Ends that are cut hold all frequencies: the tone fades at both.
    edges = np.clip(np.minimum(t, 7000 - t) / 240, 0, 1)
    tone_ = level * np.sin(2 * np.pi * fraction * t + np.pi / 4) * (0.5 - 0.5 * np.cos(np.pi * edges))
    out, _ = limited(tone_.astype(np.float32))
    assert cues.true_peak_dbtp(out, RATE, oversampling=16) <= -0.95


@pytest.mark.parametrize("seed", range(4))
def test_true_peaks_of_bursts_of_noise_stay_under_the_ceiling(seed):
    """Full-scale noise up to 0.42 of the rate that comes and goes at once."""
    rng = np.random.default_rng(seed)
    spectrum = np.fft.rfft(rng.standard_normal(16384))
    spectrum[int(0.42 * 16384) :] = 0
    noise = np.fft.irfft(spectrum)
    noise *= 1.5 / np.abs(noise).max() * (np.sin(np.arange(16384) / 700) > 0)
    out, mixer = limited(noise.astype(np.float32))
    assert cues.true_peak_dbtp(out, RATE, oversampling=16) <= -0.95
    assert mixer.stats.limited_samples > 0


def test_a_loud_cue_over_loud_speech_stays_under_the_ceiling_and_the_gain_moves_smoothly():
    mixer = cues.Mixer(limiter=True)
    mixer.play(tone(12000, peak=1.0), at=2400)
    talk = speech(24000, peak=1.0)
    out = np.concatenate([mixer.mix(talk[k : k + 480]) for k in range(0, 24000, 480)])
    assert cues.true_peak_dbtp(out, RATE, oversampling=16) <= -0.95
    assert np.abs(out).max() > 0.7


def far_above_full_scale():
    rng = np.random.default_rng(3)
    talk = rng.uniform(-1, 1, 9600).astype(np.float32)
    talk[rng.integers(0, 9600, 900)] = rng.choice(np.array([3e38, -3e38, 30, np.inf, np.nan], dtype=np.float32), 900)
    return talk


def peaks_about_the_ceiling():
    """Tones up to 0.49 of the rate whose samples lie under the ceiling, and whose peaks between them may not."""
    k, hz = np.arange(640), np.linspace(0.005, 0.49, 40)[:, None]
    levels = np.linspace(0.8, 0.9, 40)[:, None] * np.sin(np.pi * k / 640)
    return (levels * np.sin(2 * np.pi * hz * k + np.pi / 4)).astype(np.float32).ravel()


@pytest.mark.parametrize("sound", [far_above_full_scale, peaks_about_the_ceiling])
def test_compiled_and_numpy_limiters_agree(sound):
    talk = sound()
    told = []
    for kind in ("numpy", "compiled"):
        with mixing_with(kind):
            out, mixer = limited(talk)
            told.append((out, mixer.stats))
    assert np.abs(told[0][0] - told[1][0]).max() <= 1 / 32768
    assert told[0][1] == told[1][1]
