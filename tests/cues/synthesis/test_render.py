import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cues
from cues.synthesis.catalog import CATALOG
from cues.synthesis.spec import Envelope, LowPass, Note, Spec, Timbre
from tests.support.listening import splatter_db

RATE = 24000


def momentary_hz(x, at_s, width_s=0.008):
    """Frequency around a moment: the slope of the analytic signal's phase, weighed by its power."""
    from scipy.signal import firwin, hilbert

    n = round(at_s * RATE)
    analytic = hilbert(np.convolve(x, firwin(201, [120, 520], fs=RATE, pass_zero=False), "same"))
    part = analytic[n - round(width_s * RATE) : n + round(width_s * RATE)]
    return np.angle(np.sum(part[1:] * np.conj(part[:-1]))) * RATE / (2 * np.pi)


# The faults of the first sketch, which had its phase as f(t)·t, cut envelopes off, and counted the time base's end.


def test_the_sweep_ends_where_it_says():
    """Phase as f(t)·t runs to f·(1 − 3t): 154 Hz at 150 ms; its integral runs to 440·e^(−0.45) = 280.5 Hz."""
    x = cues.render(CATALOG["error"].spec)
    for at_s in (0.05, 0.10, 0.15):
        assert momentary_hz(x, at_s) == pytest.approx(440 * np.exp(-3 * at_s), rel=0.02)


@pytest.mark.parametrize("name", CATALOG)
def test_the_envelope_is_not_cut_off(name):
    """The sketch's arpeggio ended at 0.151: a click louder than its notes' attacks."""
    x = cues.render(CATALOG[name].spec)
    assert x[0] == x[-1] == 0.0
    assert np.abs(x[-40:]).max() < 0.002


def test_the_time_base_leaves_out_its_end_point():
    """A time base that includes it is stretched by n/(n − 1): its tone comes out 0.28 per mille flat."""
    x = cues.render(Spec(notes=(Note(hz=1000, length_ms=1000),), timbre=Timbre(partials=(1.0,))))
    assert len(x) == 24000
    spectrum = np.abs(np.fft.rfft(x * np.hanning(len(x)), 1 << 20))
    assert np.argmax(spectrum) * RATE / (1 << 20) == pytest.approx(1000.0, abs=0.02)


def test_attack_splatters_no_more_than_a_raised_cosine_may():
    tone = Spec(
        notes=(Note(hz=1000, length_ms=200),),
        timbre=Timbre(partials=(1.0,)),
        envelope=Envelope(attack_ms=10, decay_per_s=0, release_ms=10),
    )
    assert splatter_db(cues.render(tone), 4000) < -95


@pytest.mark.parametrize("name", CATALOG)
def test_nothing_of_a_built_in_cue_lies_above_4_khz(name):
    """In float32: its rounding alone is 20 dB louder than the splatter of the ramps."""
    assert splatter_db(cues.render(CATALOG[name].spec), 4300) < -85


notes = st.builds(
    Note,
    hz=st.floats(60, 6000),
    length_ms=st.floats(60, 300),
    start_ms=st.floats(0, 300),
    level_db=st.floats(-20, 6),
    sweep_per_s=st.floats(-5, 5),
)
specs = st.builds(
    Spec,
    notes=st.lists(notes, min_size=1, max_size=4).map(tuple),
    timbre=st.builds(
        Timbre, partials=st.lists(st.floats(0.01, 1), min_size=1, max_size=6).map(tuple), damping=st.floats(0, 3)
    ),
    envelope=st.builds(Envelope, attack_ms=st.floats(5, 25), decay_per_s=st.floats(0, 60), release_ms=st.floats(5, 30)),
    low_pass=st.none() | st.builds(LowPass, cutoff_hz=st.floats(200, 9000), order=st.floats(1, 8)),
    peak=st.floats(0.01, 1),
    tail_ms=st.floats(0, 50),
)


@given(spec=specs, sample_rate=st.sampled_from([16000, 22050, 24000, 44100]))
@settings(max_examples=40)
def test_any_spec_renders_finite_of_its_length_silent_at_both_ends_without_dc(spec, sample_rate):
    x = cues.render(spec, sample_rate)
    assert x.dtype == np.float32
    assert abs(len(x) - spec.length_ms * sample_rate / 1000) <= 0.5 + 1e-9  # the nearest; of two as near, either
    assert np.isfinite(x).all()
    assert x[0] == x[-1] == 0.0
    assert np.abs(x).max() == pytest.approx(spec.peak, rel=1e-5)
    assert abs(x.mean(dtype=np.float64)) < 1e-6
    np.testing.assert_array_equal(x, cues.render(spec, sample_rate))


def test_harmonics_above_what_the_rate_can_hold_are_left_out():
    spec = Spec(notes=(Note(hz=1500, length_ms=200),), timbre=Timbre(partials=(1.0, 0.5, 0.5, 0.5)))
    x = cues.render(spec, 8000)
    spectrum = np.abs(np.fft.rfft(x * np.hanning(len(x)))) ** 2
    hz = np.fft.rfftfreq(len(x), 1 / 8000)
    near = np.abs(hz - 1500) < 60
    near |= np.abs(hz - 3000) < 60
    assert spectrum[~near].sum() < 1e-3 * spectrum.sum()


def test_a_spec_that_a_rate_cannot_hold_is_refused():
    with pytest.raises(cues.CueValueError, match="silent at 8000 Hz"):
        cues.render(Spec(notes=(Note(hz=5000, length_ms=100),)), 8000)


def test_a_sweep_far_beyond_the_band_ends_in_silence():
    note = Note(hz=2000, length_ms=4000, sweep_per_s=50)
    x = cues.render(Spec(notes=(note,), low_pass=LowPass(order=12), envelope=Envelope(decay_per_s=0)))
    assert np.isfinite(x).all()
    assert np.abs(x[12000:-2400]).max() < 1e-3


def test_a_low_pass_weighs_the_harmonics():
    note, partials = Note(hz=500, length_ms=300), Timbre(partials=(0.5, 0.5, 0.5, 0.5), damping=0)
    spectra = []
    for low_pass in (None, LowPass(cutoff_hz=1000, order=4)):
        spec = Spec(notes=(note,), timbre=partials, envelope=Envelope(decay_per_s=0), low_pass=low_pass)
        x = cues.render(spec)
        spectra.append(np.abs(np.fft.rfft(x * np.hanning(len(x)), RATE))[[500, 1000, 1500, 2000]])
    ratio = spectra[1] / spectra[0]
    expected_db = [10 * np.log10(1 / (1 + (f / 1000) ** 8)) for f in (500, 1000, 1500, 2000)]
    np.testing.assert_allclose(20 * np.log10(ratio / ratio[0]), np.array(expected_db) - expected_db[0], atol=0.1)


def test_a_glide_of_no_speed_sounds_like_none():
    def rendered(sweep_per_s):
        return cues.render(cues.Spec(notes=(cues.Note(hz=600, length_ms=120, sweep_per_s=sweep_per_s),)))

    np.testing.assert_array_equal(rendered(5e-324), rendered(0.0))
