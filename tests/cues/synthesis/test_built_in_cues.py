"""Every built-in cue: on target, soft at its edges, fit for a telephone, told apart by rhythm."""

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import cues
from cues.synthesis.catalog import CATALOG

GOLDEN = Path(__file__).parent / "golden"
NAMES = list(CATALOG)
# The true peak is a float32 product. A process with another OpenBLAS core type, which may have written the levels to
# the disk, rounds it by up to one step (1.2e-7, or 1.0e-6 dB) otherwise.
FLOAT32_DB = 1e-5
TARGETS_LU = {
    "tool_call": -6, "agent": -6, "success": -6, "error": -3, "working": -14, "thinking": -14, "listening": -6,
    "attention": -6,
}  # fmt: skip


@pytest.fixture(scope="module", params=[8000, 24000, 48000])
def bank(request):
    return cues.load_bank(sample_rate=request.param)


@pytest.mark.parametrize("name", NAMES)
def test_loudness_is_on_target(bank, name):
    measured = cues.measure(bank[name].samples, bank.sample_rate)
    assert measured.m100_max_lufs == pytest.approx(-20 + TARGETS_LU[name], abs=0.01)
    own = asdict(bank[name].measured)
    assert own.pop("missed_lu") == pytest.approx(0.0, abs=0.01)
    expected = {key: level for key, level in asdict(measured).items() if key != "missed_lu"}
    assert own == pytest.approx(expected, abs=FLOAT32_DB)


@pytest.mark.parametrize("name", NAMES)
def test_peak_dc_and_edges(bank, name):
    cue = bank[name]
    assert cues.true_peak_dbtp(cue.samples, bank.sample_rate, oversampling=64) <= -3.0
    assert abs(cue.samples.mean(dtype=np.float64)) < 1e-6
    assert cue.samples[0] == cue.samples[-1] == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_the_rendered_sound_times_one_number(bank, name):
    rendered = cues.render(bank[name].spec, bank.sample_rate)
    gain = np.abs(bank[name].samples).max() / np.abs(rendered).max()
    np.testing.assert_allclose(bank[name].samples, rendered * gain, atol=1e-7)


def power_spectrum(x, sample_rate):
    return np.fft.rfftfreq(1 << 16, 1 / sample_rate), np.abs(np.fft.rfft(x[: 1 << 16], 1 << 16)) ** 2


@pytest.mark.parametrize("name", NAMES)
def test_a_telephone_carries_the_cue(bank, name):
    """300 to 3400 Hz hold nearly all of it, and what the band takes away costs less than 1 LU."""
    hz, power = power_spectrum(bank[name].samples, bank.sample_rate)
    assert power[(hz >= 300) & (hz <= 3400)].sum() > 0.9 * power.sum()
    assert power[(hz >= 125) & (hz <= 5000)].sum() > 0.999 * power.sum()


def test_the_original_ideas_are_kept():
    specs = {name: CATALOG[name].spec for name in ("tool_call", "agent", "error")}
    assert [note.hz for note in specs["tool_call"].notes] == [660, 880]
    assert [note.hz for note in specs["agent"].notes] == pytest.approx([523.25, 659.26, 783.99])
    assert (specs["error"].notes[0].hz, specs["error"].notes[0].sweep_per_s) == (440, -3)
    assert [spec.envelope.decay_per_s for spec in specs.values()] == [15, 10, 12]
    assert [spec.peak for spec in specs.values()] == [0.4, 0.4, 0.35]
    assert all(sum(level**2 for level in entry.spec.timbre.partials[1:]) > 0.05 for entry in CATALOG.values())
    assert np.flatnonzero(cues.load_bank()["working"].samples).max() <= 0.040 * 24000  # a short tick


def fingerprint(cue):
    """Length, levels, and energy per 20 ms in four bands, dB."""
    frame = cue.sample_rate // 50
    x = cue.samples[: min(len(cue.samples), 20 * frame)]
    edges = (100, 600, 1200, 2400, 6000)
    rows = []
    for start in range(0, len(x), frame):
        hz, power = power_spectrum(x[start : start + frame], cue.sample_rate)
        bands = [power[(hz >= low) & (hz < high)].sum() for low, high in pairwise(edges)]
        rows.append([round(float(10 * np.log10(band + 1e-9)), 1) for band in bands])
    return {
        "n_samples": len(cue.samples),
        "m100_max_lufs": round(cue.measured.m100_max_lufs, 2),
        "true_peak_dbtp": round(cue.measured.true_peak_dbtp, 2),
        "band_edges_hz": edges,
        "band_energy_db": rows,
    }


@pytest.mark.parametrize("name", NAMES)
def test_cue_sounds_as_its_golden_fingerprint_says(name, update_golden):
    """Levels within 0.05 dB, band energies within 0.5 dB where they are above −30 dB; listen before updating."""
    now, path = fingerprint(cues.load_bank()[name]), GOLDEN / f"{name}.json"
    if update_golden:
        rows = ",\n    ".join(json.dumps(row) for row in now.pop("band_energy_db"))
        head = json.dumps(now, indent=2).rstrip("}\n").rstrip()
        path.write_text(f'{head},\n  "band_energy_db": [\n    {rows}\n  ]\n}}\n')
        return
    then = json.loads(path.read_text())
    assert now["n_samples"] == then["n_samples"]
    for level in ("m100_max_lufs", "true_peak_dbtp"):
        assert now[level] == pytest.approx(then[level], abs=0.05)
    new, old = np.array(now["band_energy_db"]), np.array(then["band_energy_db"])
    assert new.shape == old.shape
    heard = np.maximum(new, old) > -30
    np.testing.assert_allclose(new[heard], old[heard], atol=0.5)
