import numpy as np
import pytest
from matplotlib.figure import Figure

import cues
from cues.show.plots import draw_loudness, draw_spectrogram, draw_waveform, overview

TONE = (0.5 * np.sin(2 * np.pi * 2000 / 24000 * np.arange(12000))).astype(np.float32)


@pytest.fixture
def axes():
    return Figure().subplots()


def test_waveform_has_seconds_and_full_scale(axes):
    draw_waveform(axes, TONE, 24000)
    assert axes.get_xlim() == (0.0, 0.5)
    assert axes.get_ylim() == pytest.approx((-0.575, 0.575), abs=0.01)


def test_spectrogram_shows_a_tone_at_its_frequency(axes):
    image = draw_spectrogram(axes, TONE, 24000)
    level = np.asarray(image.get_array())
    edges_hz = image.get_coordinates()[:, 0, 1]
    row = level[:, level.shape[1] // 2].argmax()
    assert edges_hz[row] <= 2000.0 <= edges_hz[row + 1]
    assert axes.get_yscale() == "log"
    assert level.max() == pytest.approx(0.0)


def test_loudness_curve_tops_out_at_m100(axes):
    draw_loudness(axes, TONE, 24000)
    top = max(axes.lines[0].get_ydata())
    assert top == pytest.approx(cues.measure(TONE).m100_max_lufs, abs=0.01)


def test_an_overview_has_a_row_for_each_cue():
    figure = overview(cues.load_bank())
    assert len(figure.axes) == 16
    lengths = [axes.get_xlim()[1] for axes in figure.axes[::2]]
    bank = cues.load_bank()
    assert lengths == pytest.approx([cue.duration_s * (2 if cue.loop else 1) for cue in bank.values()])
    assert len({axes.get_ylim() for axes in figure.axes[::2]}) == 1
    assert "E5 A5" in figure.axes[0].get_ylabel()
