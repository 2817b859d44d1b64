import base64
import io
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image

import cues
from cues.library.bank import make_cue
from cues.meters.pitch import heard_notes
from cues.show.pictures import picture_svg
from cues.show.png import HEAT, indexed_png
from cues.show.sketch import SKETCH
from cues.show.sounds import at_loudness, turns, wav_uri

AGENT, WORKING = (make_cue(name, None, 24000, -20.0) for name in ("agent", "working"))


def test_a_png_is_read_back_as_it_was_drawn():
    pixels = np.random.default_rng(1).integers(0, 256, (17, 31)).astype(np.uint8)
    image = Image.open(io.BytesIO(indexed_png(pixels)))
    assert image.size == (31, 17)
    assert np.array_equal(np.asarray(image.convert("RGB")), HEAT[pixels])


def test_louder_colors_are_lighter():
    lightness = HEAT.astype(float) @ [0.2126, 0.7152, 0.0722]  # ITU-R BT.709
    assert np.all(np.diff(lightness) > -1.0)
    assert lightness[-1] - lightness[0] > 200


def test_a_picture_is_one_well_formed_element_that_says_what_it_shows():
    svg = ET.fromstring(picture_svg(AGENT.samples, 24000, title='a "cue" & <more>', clicks=[100]))
    assert svg.attrib["aria-label"] == 'a "cue" & <more>'
    labels = [element.text for element in svg.iter("text")]
    assert {"Hz", "LUFS", "click", "260 ms", "1 k"} <= set(labels)
    assert len(svg.findall("polygon")) == 1


@pytest.mark.parametrize("n_samples", [1, 7, 500, 240000])
@pytest.mark.parametrize("rate", [8000, 48000])
def test_any_sound_can_be_drawn(n_samples, rate):
    samples = np.random.default_rng(1).uniform(-1, 1, n_samples).astype(np.float32)
    for sound in (samples, np.zeros(n_samples, dtype=np.float32)):
        svg = picture_svg(sound, rate, title="x")
        ET.fromstring(svg)
        assert "nan" not in svg


def test_a_wav_of_the_page_holds_the_samples():
    import soundfile

    data = base64.b64decode(wav_uri(AGENT.samples, 24000).removeprefix("data:audio/wav;base64,"))
    samples, rate = soundfile.read(io.BytesIO(data))
    assert rate == 24000
    assert np.abs(samples - AGENT.samples).max() < 2 / 32768


@pytest.mark.parametrize("lufs", [-40.0, -26.0, -12.0])
def test_cues_are_brought_to_the_same_loudness(lufs):
    leveled = at_loudness(AGENT, lufs)
    assert cues.measure(leveled.samples, 24000).m100_max_lufs == pytest.approx(lufs, abs=0.01)


def test_no_cue_is_brought_beyond_full_scale():
    assert cues.true_peak_dbtp(at_loudness(AGENT, 20.0).samples, oversampling=16) < -0.9


def test_a_cue_that_loops_is_heard_twice():
    assert len(turns(WORKING)) == 2 * len(WORKING)
    assert turns(AGENT) is AGENT.samples


def test_the_sketch_keeps_its_three_faults():
    # The figures of the first sketch: its arpeggio's last sample is 0.151, its glide falls to 154 Hz instead of 280,
    # and its time base reaches the end point.
    assert SKETCH["agent"]()[-1] == pytest.approx(0.151, abs=0.0005)
    glide = SKETCH["error"]()
    crossings = np.flatnonzero(np.diff(np.signbit(glide[-500:])))
    half_periods = np.diff(crossings)
    assert 24000 / (2 * half_periods[-1]) == pytest.approx(156.0, abs=6.0)
    assert heard_notes(SKETCH["tool_call"](), 24000) == ("E5", "A5")


def test_a_notebook_shows_a_player_and_a_picture():
    html = make_cue("agent", None, 24000, -20.0)._repr_html_()
    assert html.count("<audio") == html.count("<svg") == 1
    strange = cues.Cue(name="<script>x</script>", samples=AGENT.samples, sample_rate=4000)
    html = strange._repr_html_()
    assert "<script" not in html
    assert html.count("<audio") == 1
