"""The sound board in a real browser (`tests/support/chromium.py`).

Not among the tests that run by default, which need no browser: `python -m pytest -n 0 tests/browser`.
"""

import numpy as np
import pytest

import cues
from cues.library.bank import make_cue
from cues.show.audition import over_speech, stand_in_speech
from cues.show.board import Set, board_page
from cues.synthesis.catalog import CATALOG
from tests.support.chromium import until
from tests.support.live_server import board_server

HOSTILE = '"><img src=x onerror="document.title=1"><script>document.title=1</script>'
SPEECH = stand_in_speech(24000)[: round(1.6 * 24000)]
FIRST_DRAWN = "board.cards[0].panes.every(pane => pane.player?.getDuration() > 0 && pane.box.querySelector('.axis'))"


def cue_set(label, speech_lufs=-20.0, **more):
    own = {name: make_cue(name, None, 24000, speech_lufs) for name in CATALOG} | more
    return Set(label, own, dict.fromkeys(own, label))


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    sound = make_cue("listening", None, 24000, -20.0)
    hostile = cues.Cue(name=HOSTILE, samples=sound.samples, measured=sound.measured)
    page = board_page([cue_set("built in"), cue_set("mine", -30.0, **{HOSTILE: hostile})], SPEECH, 24000)
    path = tmp_path_factory.mktemp("board") / "board.html"
    path.write_text(page, encoding="utf-8")
    return path


@pytest.fixture
def open_page(browser):
    """A function that opens a page, and fails the test for whatever the browser complains of or loads."""
    complaints, contexts = [], []

    def opened(url, **settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
        page.goto(url)
        until(page, FIRST_DRAWN)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def playing(page):
    """Cards that play: number, set and mode."""
    return page.evaluate(
        "board.cards.flatMap((card, k) => card.playing ? [[k, card.panes.indexOf(card.active), card.mode]] : [])"
    )


def test_every_cue_plays_to_its_end_in_every_mode_and_set(open_page, board):
    page = open_page(board.as_uri())
    ended = page.evaluate(
        """async () => {
            const results = [];
            for (const card of board.cards) {
                await card.draw();
                for (const mode of card.modes.length ? ["alone", "speech", "phone"] : ["alone"]) {
                    await card.setMode(mode);
                    for (const pane of card.panes) {
                        await card.choose(pane);
                        const length = pane.player.getDuration();
                        pane.player.setTime(length - 0.05);
                        const end = new Promise((done) => pane.player.once("finish", () => done(true)));
                        await card.play();
                        results.push(await end && length > 0.1);
                    }
                }
            }
            return results;
        }"""
    )
    # Every cue in two sets and three ways; one more in one set.
    assert ended == [True] * (len(CATALOG) * 2 * 3 + 3)


def test_what_the_page_plays_over_speech_is_what_the_mixer_makes(open_page, board):
    page = open_page(board.as_uri())
    page.evaluate("board.cards[0].setMode('speech')")
    until(page, "board.cards[0].mode === 'speech' && board.cards[0].panes[0].box.querySelector('.mark.cue')")
    samples = page.evaluate("[...board.cards[0].panes[0].samples]")
    mixed = over_speech([make_cue("tool_call", None, 24000, -20.0)], SPEECH, 24000, first_at_s=len(SPEECH) / 48000)
    np.testing.assert_allclose(samples[: len(mixed)], mixed, atol=0.51 / 32767)


def test_keys_walk_through_the_cues_and_play_them(open_page, board):
    page = open_page(board.as_uri())
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "cue-1"
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "cue-2"
    page.keyboard.press("o")
    until(page, "document.querySelector('.status').textContent === 'Playing: agent, built in, over speech'")
    page.keyboard.press("x")
    until(page, "document.querySelector('.status').textContent === 'Playing: agent, mine, over speech'")
    page.keyboard.press("Escape")
    until(page, "document.querySelector('.status').textContent === ''")
    assert playing(page) == []
    assert page.evaluate("document.querySelector('.status').ariaLive") == "polite"
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.id") == "cue-1"


def test_another_mode_and_the_other_set_go_on_at_the_same_place(open_page, board):
    page = open_page(board.as_uri())
    page.evaluate("board.cards[1].setMode('speech')")
    until(page, "board.cards[1].mode === 'speech' && board.cards[1].active.box.querySelector('.mark.cue')")
    page.evaluate("board.cards[1].active.place = 0.1")
    for change in ("setMode('phone')", "choose(board.cards[1].panes[1])", "setMode('alone')"):
        page.evaluate(f"board.cards[1].{change}")
        assert page.evaluate("board.cards[1].active.place") == pytest.approx(0.1, abs=0.01)
    assert page.evaluate("board.cards[1].active === board.cards[1].panes[1]")


def test_keys_in_quick_succession_end_in_the_last_mode(open_page, board):
    page = open_page(board.as_uri())
    page.keyboard.press("j")
    for key in "otpxotxpto":
        page.keyboard.press(key)
    until(page, "board.cards[0].playing && board.cards[0].mode === 'speech'")
    until(page, "document.querySelectorAll('#cue-1 .axis').length === 2")
    page.keyboard.press("Escape")
    page.wait_for_timeout(300)
    assert playing(page) == []


def test_a_click_on_a_picture_seeks(open_page, board):
    page = open_page(board.as_uri())
    box = page.locator("#cue-1 .picture").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 40)
    until(page, "board.cards[0].active.player.getCurrentTime() > 0")
    middle = page.evaluate("board.cards[0].active.player.getCurrentTime() / board.cards[0].active.player.getDuration()")
    assert middle == pytest.approx(0.5, abs=0.03)


def test_sets_beside_each_other_have_equal_axes_and_the_offset_in_db(open_page, board):
    page = open_page(board.as_uri(), viewport={"width": 1200, "height": 900})
    axes = page.evaluate("board.cards[0].panes.map(pane => [pane.player.getDuration(), pane.box.offsetWidth])")
    assert axes[0] == axes[1]
    assert page.inner_text("#cue-1 .sets") == "built in\nmine +10.0 dB"


def test_the_tab_key_reaches_every_control(open_page, board):
    page = open_page(board.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("[...document.querySelectorAll('button')].every(button => button.tabIndex >= 0)")


def test_starting_one_cue_stops_the_other(open_page, board):
    page = open_page(board.as_uri())
    page.evaluate("board.cards[1].setMode('speech').then(() => board.cards[1].play())")
    until(page, "board.cards[1].playing")
    page.evaluate("board.cards[0].setMode('speech').then(() => board.cards[0].play())")
    until(page, "board.cards[0].playing")
    assert playing(page) == [[0, 0, "speech"]]


def test_the_level_meter_follows_the_sound(open_page, board):
    page = open_page(board.as_uri())
    page.evaluate("board.cards[0].setMode('speech').then(() => board.cards[0].play())")
    until(page, "Number(document.querySelector('#cue-1 .meter').ariaValueNow) > -40")
    page.keyboard.press("Escape")
    until(page, "document.querySelector('#cue-1 .meter').ariaValueNow === '-60'")


def test_each_cue_has_a_waveform_and_a_spectrogram(open_page, board):
    page = open_page(board.as_uri())
    page.keyboard.press("j")
    sizes = page.evaluate(
        """[...board.cards[0].panes[0].player.getWrapper().querySelectorAll('canvas')]
            .map(canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data)
            .map(pixels => new Set(new Uint32Array(pixels.buffer)).size)"""
    )
    assert len(sizes) >= 2
    assert max(sizes) > 50  # the spectrogram's colors


def test_a_hostile_name_does_nothing(open_page, board):
    page = open_page(board.as_uri())
    assert page.title() == "Sound board"
    assert page.evaluate("document.images.length") == 0
    assert HOSTILE in page.evaluate("[...document.querySelectorAll('h2')].map(heading => heading.textContent)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_page, board, scheme):
    page = open_page(board.as_uri(), color_scheme=scheme)
    colors = page.evaluate(
        """[...document.querySelectorAll('h1, h2, .meaning, dt, dd, .warning, nav a, .switch button')].map(element => {
            let ground = element;
            while (getComputedStyle(ground).backgroundColor === 'rgba(0, 0, 0, 0)') { ground = ground.parentElement; }
            return [getComputedStyle(element).color, getComputedStyle(ground).backgroundColor];
        })"""
    )
    assert colors
    for ink, ground in {tuple(pair) for pair in colors}:
        assert contrast(ink, ground) >= 4.5, (ink, ground)  # WCAG 2.2, 1.4.3 (AA)


def contrast(first, second):
    """Contrast ratio of two CSS colors (WCAG 2.2, "contrast ratio" and "relative luminance")."""
    lights = []
    for color in (first, second):
        channels = np.array([float(part) for part in color[color.index("(") + 1 : -1].split(",")[:3]]) / 255
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        lights.append(linear @ [0.2126, 0.7152, 0.0722])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize("width", [320, 360, 768, 1200])
def test_nothing_is_wider_than_the_screen(open_page, board, width):
    page = open_page(board.as_uri(), viewport={"width": width, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_print_has_every_picture_and_no_switch(open_page, board):
    page = open_page(board.as_uri())
    until(page, "[...document.querySelectorAll('.picture')].every((box) => box.querySelector('.axis'))")
    page.emulate_media(media="print")
    assert page.evaluate("[...document.querySelectorAll('.switch, .meter, .play')].every((one) => !one.offsetParent)")


def test_on_a_telephone_one_set_is_shown_and_the_other_a_tap_away(open_page, board):
    page = open_page(board.as_uri(), viewport={"width": 390, "height": 844})
    shown = "[...document.querySelectorAll('#cue-1 .column')].map(column => column.offsetParent !== null)"
    assert page.evaluate(shown) == [True, False]
    page.click("#cue-1 [data-set='1']")
    assert page.evaluate(shown) == [False, True]
    until(page, "board.cards[0].panes[1].player.getWrapper().offsetWidth > 300")
    assert page.evaluate("document.documentElement.scrollHeight") < 9000


def test_the_measures_of_a_cue_share_one_row_where_there_is_room(open_page, tmp_path):
    page = board_page([cue_set("built in")], stand_in_speech(24000)[:2400], 24000)
    (tmp_path / "board.html").write_text(page, encoding="utf-8")
    shown = open_page((tmp_path / "board.html").as_uri(), viewport={"width": 1300, "height": 900})
    tops = shown.evaluate("[...document.querySelectorAll('.measures')[0].children].map(each => each.offsetTop)")
    assert len(tops) == 5
    assert len(set(tops)) == 1


def test_controls_are_large_enough_for_fingers(open_page, board):
    page = open_page(board.as_uri(), viewport={"width": 360, "height": 740}, is_mobile=True)
    sizes = page.evaluate(
        "[...document.querySelectorAll('button, nav a, summary')].map(e => e.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 24  # WCAG 2.2, 2.5.8 (AA)


def test_the_served_page_loads_anew_when_a_pack_changes(browser, tmp_path):
    (tmp_path / "pack.toml").touch()
    made = []

    def make(state):
        made.append(1)
        return board_page([cue_set(f"version {len(made)}")], SPEECH, 24000, reload=f"changes?{state}")

    with board_server(make, [tmp_path]) as server:
        page = browser.new_page()
        page.goto(server.url)
        assert "version 1" in page.inner_text("header p")
        with page.expect_navigation():
            (tmp_path / "pack.toml").write_text("# changed")
        assert "version 2" in page.inner_text("header p")
        page.close()
