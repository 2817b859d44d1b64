import sys

import cues
from cues.library.bank import make_cue

AGENT = make_cue("agent", None, 24000, -20.0)


def test_a_notebook_shows_a_player_and_a_picture():
    html = AGENT._repr_html_()
    assert html.count("<audio") == html.count('<img alt="Waveform') == 1
    assert 'src="data:image/png;base64,' in html


def test_a_cue_at_a_rate_without_meters_has_a_player_alone():
    html = cues.Cue(name="<script>x</script>", samples=AGENT.samples, sample_rate=4000)._repr_html_()
    assert "<script" not in html
    assert html.count("<audio") == 1
    assert "<img" not in html


def test_without_matplotlib_a_notebook_shows_the_player(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert AGENT._repr_html_().count("<audio") == 1
