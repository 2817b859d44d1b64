import base64
import hashlib
import html.parser
import json
import re

import numpy as np
import pytest

import cues
from cues.library.bank import make_cue
from cues.meters.telephone import over_telephone
from cues.show.audition import over_speech, stand_in_speech
from cues.show.board import Set, at_loudness, board_page, pcm_text
from cues.synthesis.catalog import CATALOG
from tests.support.routing import spoken

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onfocus='alert(1)' autofocus x='",
    "{{ 7 * 7 }}{% raw %}",
    "</style></title><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "\u202egnp.exe\x1b[31m",
    "]]>--><!--",
]
SPEECH = stand_in_speech(24000)


class Page(html.parser.HTMLParser):
    """Every element of a page, and its text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def built_in(names=tuple(CATALOG)):
    return Set(
        "built in", {name: make_cue(name, None, 24000, -20.0) for name in names}, dict.fromkeys(names, "built in")
    )


@pytest.fixture(scope="module")
def page():
    return board_page([built_in()], SPEECH, 24000, speaker="voice-like")


def sounds_of(page):
    """The samples in a page."""
    return json.loads(re.search(r'<script type="application/json" id="sounds">(.*?)</script>', page, re.DOTALL)[1])


def pcm(text):
    return np.frombuffer(base64.b64decode(text), "<i2")


def put_together(sounds, column, mode):
    """Samples that the page's script makes for a mode: speech and silence, with the stretch that the cue changes."""
    change = sounds["cards"][column[0]][column[1]][mode]
    whole = np.zeros(change["length"], dtype=np.int16)
    speech = pcm(sounds[mode])
    whole[: len(speech)] = speech
    samples = pcm(change["samples"])
    whole[change["at"] : change["at"] + len(samples)] = samples
    return whole


def test_every_cue_has_a_card_with_one_play_button_and_three_ways_to_hear_it(page):
    parsed = Page(page)
    labels = [attributes.get("aria-label") for attributes in parsed.all("button")]
    for name in CATALOG:
        assert labels.count(f"Play {name}") == 1
    modes = [attributes["data-mode"] for attributes in parsed.all("button") if "data-mode" in attributes]
    assert modes == ["alone", "speech", "phone"] * len(CATALOG)
    assert [attributes["id"] for attributes in parsed.all("article")] == [
        f"cue-{k}" for k in range(1, len(CATALOG) + 1)
    ]


@pytest.mark.parametrize("name", CATALOG)
def test_what_is_heard_is_what_the_mixer_makes_of_speech_and_cue(page, name):
    sounds, number = sounds_of(page), list(CATALOG).index(name)
    cue = make_cue(name, None, 24000, -20.0)
    mixed = over_speech([cue], SPEECH, 24000, first_at_s=0.9)
    expected = {"speech": mixed, "phone": over_telephone(mixed, 24000)}
    for mode, samples in expected.items():
        np.testing.assert_allclose(put_together(sounds, (number, 0), mode) / 32767, samples, atol=0.51 / 32767)
    np.testing.assert_allclose(pcm(sounds["cards"][number][0]["alone"]) / 32767, cue.samples, atol=0.51 / 32767)


def test_the_page_is_small_and_loads_nothing_and_only_its_own_script_and_style_hold(page):
    assert page.count(pcm_text(SPEECH)) == 1
    assert len(page) < 3 * 2**20
    for tag, attributes in Page(page).elements:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("data:", "#")), (tag, name)
    assert "@import" not in page
    assert "url(" not in page
    policy = next(a["content"] for a in Page(page).all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    (text,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    (style,) = Page(page).all("style")
    assert f"style-src 'nonce-{style['nonce']}'" in policy
    assert "connect-src" not in policy


def test_hostile_names_stay_text():
    sound = make_cue("listening", None, 24000, -20.0)
    own = {name: cues.Cue(name=name, samples=sound.samples, measured=sound.measured) for name in HOSTILE}
    page = board_page(
        [Set(HOSTILE[1], own, dict.fromkeys(own, HOSTILE[0])), Set(HOSTILE[4], own, dict.fromkeys(own, HOSTILE[2]))],
        SPEECH,
        24000,
        title=HOSTILE[0],
        speaker=HOSTILE[1],
    )
    parsed = Page(page)
    assert len(parsed.all("script")) == 2  # the samples and the program
    assert len(parsed.all("style")) == 1
    assert parsed.all("img") == []
    assert {name for _, attributes in parsed.elements for name in attributes if name.startswith("on")} == set()
    shown = {text.strip() for text in parsed.texts}
    for name in HOSTILE:
        assert name in shown


def test_packs_stand_beside_each_other_at_equal_loudness():
    quiet = make_cue("agent", None, 24000, -40.0)
    page = board_page([built_in(("agent",)), Set("mine", {"agent": quiet}, {})], SPEECH, 24000)
    levels = re.findall(r"<dt>loudest 100 ms</dt><dd>(.*?)</dd>", page)
    assert set(levels) == {"−26.0 LUFS"}
    assert "<small>+20.0 dB</small>" in page
    assert "at equal loudness" in page


def test_a_pack_may_lack_what_another_one_has_and_what_is_wrong_with_a_cue_is_on_its_card():
    broken = cues.Cue(name="mine", samples=0.1 + 0.0 * make_cue("agent", None, 24000, -20.0).samples)
    page = board_page(
        [built_in(("agent",)), Set("mine", {**built_in(("agent",)).cues, "mine": broken}, {})], SPEECH, 24000
    )
    assert len(Page(page).all("section")) == 2 + 1
    assert "DC: its mean is" in page


@pytest.mark.parametrize("lufs", [-40.0, -12.0, 20.0])
def test_cues_are_brought_to_the_same_loudness_and_none_beyond_full_scale(lufs):
    leveled = at_loudness(make_cue("agent", None, 24000, -20.0), lufs).samples
    assert cues.true_peak_dbtp(leveled, oversampling=16) < -0.9
    if lufs < 0.0:
        assert cues.measure(leveled).m100_max_lufs == pytest.approx(lufs, abs=0.01)


def test_the_mark_of_phrases_is_where_they_begin():
    page = board_page([Set("mine", {"error": spoken("error")}, {})], SPEECH, 24000)
    (sound,) = (card[0] for card in sounds_of(page)["cards"])
    assert len(SPEECH) / 24000 - 0.05 <= sound["onsetS"] <= len(SPEECH) / 24000 + 0.3


def test_phrases_are_as_loud_over_speech_as_their_cue_alone():
    words = spoken("error")
    softer = at_loudness(words, cues.measure(words.samples).m100_max_lufs - 20.0)
    for before, after in zip(words.phrases, softer.phrases, strict=True):
        np.testing.assert_allclose(after.samples, 0.1 * before.samples, rtol=1e-3)
