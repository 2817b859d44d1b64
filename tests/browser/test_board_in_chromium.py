"""The sound board in a real browser: the system's Chromium (`chromium`, or the one that `$CHROMIUM` names), headless.

Not among the tests that run by default, which need no browser: `python -m pytest -n 0 tests/browser`.
"""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

import cues
from cues.cli._page_server import PageServer
from cues.library.bank import make_cue
from cues.show.audition import stand_in_speech
from cues.show.board import Set, board_page
from cues.synthesis.catalog import CATALOG

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]
HOSTILE = '"><img src=x onerror="document.title=1"><script>document.title=1</script>'
ALL_LOADED = "[...document.querySelectorAll('audio')].every(player => player.readyState >= 1)"
# What began and what was stopped, in order: sounds are short, and may be over before one looks.
LOG = """
window.log = [];
for (const kind of ['play', 'pause']) {
    document.addEventListener(kind, event => window.log.push(`${kind} ${event.target.ariaLabel}`), true);
}
"""


def until(page, expression):
    """Wait until it is true. Playwright's own waiting evaluates text inside of the page, which its policy forbids."""
    for _ in range(500):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never true: {expression}")


def cue_set(label, speech_lufs=-20.0, **more):
    own = {name: make_cue(name, None, 24000, speech_lufs) for name in CATALOG} | more
    return Set(label, own, dict.fromkeys(own, label))


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    sound = make_cue("listening", None, 24000, -20.0)
    hostile = cues.Cue(name=HOSTILE, samples=sound.samples, measured=sound.measured)
    # Short sounds, so that each of them can be played to its end.
    speech = stand_in_speech(24000)[: round(0.6 * 24000)]
    page = board_page([cue_set("built in"), cue_set("mine", -30.0, **{HOSTILE: hostile})], speech, 24000)
    path = tmp_path_factory.mktemp("board") / "board.html"
    path.write_text(page, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser():
    assert CHROMIUM, "no Chromium here: install the package `chromium`, or name one with $CHROMIUM"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser):
    """A function that opens a page, and fails the test for whatever the browser complains of or loads."""
    complaints, contexts = [], []

    def opened(url, **settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        context.add_init_script(LOG)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
        page.goto(url)
        until(page, ALL_LOADED)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def test_every_player_plays_to_its_end(open_page, board):
    page = open_page(board.as_uri())
    ended = page.evaluate(
        """async () => {
            const players = [...document.querySelectorAll('audio')].filter(player => player.duration < 4);
            const results = [];
            for (const player of players) {
                player.playbackRate = 8;
                const end = new Promise(done => player.addEventListener('ended', () => done(true), { once: true }));
                await player.play();
                results.push(await end && player.error === null && player.currentTime > 0);
            }
            return [results, document.querySelectorAll('audio').length];
        }"""
    )
    results, n_players = ended
    assert all(results)
    # All but the loop's: two turns of it, and 5 s over speech, in either set.
    assert n_players - len(results) == 6


def test_keys_walk_through_the_cues_and_play_them(open_page, board):
    page = open_page(board.as_uri())
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "cue-1"
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "cue-2"
    page.keyboard.press("o")
    until(page, "log.includes('play agent, built in, over speech')")
    page.keyboard.press("o")
    until(page, "log.includes('play agent, mine, over speech')")
    page.keyboard.press("p")
    until(page, "log.includes('play agent, built in, alone')")
    assert page.evaluate("document.querySelector('.status').ariaLive") == "polite"
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.id") == "cue-1"


def test_the_tab_key_reaches_every_player(open_page, board):
    page = open_page(board.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reachable = page.evaluate("[...document.querySelectorAll('audio')].every(player => player.tabIndex >= 0)")
    assert reachable


def test_starting_one_player_stops_the_other(open_page, board):
    page = open_page(board.as_uri())
    page.evaluate("document.querySelectorAll('audio')[26].play()")
    page.evaluate("document.querySelectorAll('audio')[2].play()")
    until(page, "log.length >= 3")
    assert page.evaluate("log") == [
        "play working, built in, over speech",
        "play tool_call, built in, over speech",
        "pause working, built in, over speech",
    ]
    assert page.inner_text(".status") == "Playing: tool_call, built in, over speech"


def test_escape_stops_what_plays(open_page, board):
    page = open_page(board.as_uri())
    page.evaluate("document.querySelectorAll('audio')[26].play()")
    page.keyboard.press("Escape")
    until(page, "log.length >= 2")
    assert page.evaluate("log") == ["play working, built in, over speech", "pause working, built in, over speech"]
    assert page.inner_text(".status") == ""


def test_a_hostile_name_does_nothing(open_page, board):
    page = open_page(board.as_uri())
    assert page.title() == "Sound board"
    assert page.evaluate("document.images.length") == 0
    assert HOSTILE in page.evaluate("[...document.querySelectorAll('h2')].map(heading => heading.textContent)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_page, board, scheme):
    page = open_page(board.as_uri(), color_scheme=scheme)
    colors = page.evaluate(
        """[...document.querySelectorAll('h1, h2, .meaning, dt, dd, .warning, nav a')].map(element => {
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


def test_no_word_of_a_player_is_broken_on_a_telephone(open_page, board):
    page = open_page(board.as_uri(), viewport={"width": 390, "height": 844})
    heights = page.evaluate("[...document.querySelectorAll('.players span')].map(each => each.offsetHeight)")
    assert heights
    assert max(heights) < 30  # one line, of 24 px


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
        "[...document.querySelectorAll('audio, nav a, summary')].map(e => e.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 24  # WCAG 2.2, 2.5.8 (AA)


def test_the_served_page_loads_anew_when_a_pack_changes(browser, tmp_path):
    (tmp_path / "pack.toml").touch()
    made = []

    def make(reload):
        made.append(1)
        return board_page([cue_set(f"version {len(made)}")], stand_in_speech(24000), 24000, reload=reload)

    server = PageServer(make, [Path(tmp_path)], 0, poll_s=0.05)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        page = browser.new_page()
        page.goto(server.url)
        assert "version 1" in page.inner_text("header p")
        with page.expect_navigation():
            (tmp_path / "pack.toml").write_text("# changed")
        assert "version 2" in page.inner_text("header p")
    finally:
        page.close()
        server.close()
        thread.join()
