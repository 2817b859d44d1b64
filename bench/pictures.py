"""The pictures of the sound design, made anew: ramps, and the sound board.

python -m bench.pictures samples            ramps.png
python -m bench.pictures samples --pages    board.png and live*.png; needs Chromium and the extra `browser`
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from cues.library.bank import make_cue
from cues.show.audition import stand_in_speech
from cues.show.board import Set, board_page
from cues.signal.fades import raised_cosine
from cues.synthesis.catalog import CATALOG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

RATE = 24000


def ramps() -> Figure:
    """Four onsets of 10 ms of a 1 kHz tone: the ramps, and their spectra."""
    n = RATE // 100
    shapes = {
        "no ramp": np.ones(n),
        "linear": np.arange(n) / n,
        "sine": np.sin(np.pi / 2 * np.arange(n) / n),
        "raised cosine": raised_cosine(n),
    }
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for label, ramp in shapes.items():
        # The other end fades over 200 ms, so that only the onset is seen.
        envelope = np.concatenate([np.zeros(n), ramp, np.ones(RATE // 10), 1.0 - raised_cosine(RATE // 5)])
        tone = envelope * np.sin(2 * np.pi * 1000.0 * np.arange(len(envelope)) / RATE + 1.0)
        power = np.abs(np.fft.rfft(tone, 1 << 16)) ** 2
        khz = np.fft.rfftfreq(1 << 16, 1.0 / RATE) / 1000
        smooth = np.convolve(power, np.ones(64) / 64, mode="same")
        left.plot(1000 * np.arange(-n // 2, n) / RATE, np.concatenate([np.zeros(n // 2 + n % 2), ramp]), label=label)
        right.plot(khz, 10 * np.log10(smooth / smooth.max() + 1e-16), linewidth=0.9)
    left.set_xlabel("time (ms)")
    left.set_ylabel("gain")
    left.legend()
    right.set_xlabel("frequency (kHz)")
    right.set_ylabel("dB below the tone")
    right.set_ylim(-150, 0)
    right.grid(alpha=0.25)
    return figure


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's browser."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    arguments += ["--autoplay-policy=no-user-gesture-required"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        yield browser
        browser.close()


def board(folder: Path) -> None:
    """The top of the sound board as Chromium shows it."""
    cues = {name: make_cue(name, None, RATE, -20.0) for name in CATALOG}
    page_text = board_page([Set("built in", cues, dict.fromkeys(cues, "built in"))], stand_in_speech(RATE), RATE)
    with tempfile.TemporaryDirectory() as temporary, chromium() as browser:
        file = Path(temporary) / "board.html"
        file.write_text(page_text, encoding="utf-8")
        page = browser.new_page(viewport={"width": 1100, "height": 800})
        page.goto(file.as_uri())
        page.wait_for_load_state("load")
        page.screenshot(path=folder / "board.png")


def live(folder: Path) -> None:
    """`cues live` in the demo's answer, on a desk and on a telephone."""
    command = [sys.executable, "-m", "cues", "live", "--port", "0", "--buffer-ms", "300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, chromium() as browser:
        assert server.stdout is not None
        url = server.stdout.readline().split()[1]
        sizes = {"live.png": (1280, 800, "light", 8.0), "live-390.png": (390, 844, "dark", 3.6)}
        for name, (width, height, scheme, at_s) in sizes.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(url)
            wait(page, "live.state.open")
            page.click("#scripts button")
            wait(page, f"live.report?.position > {at_s} * 24000")
            page.screenshot(path=folder / name)
        server.send_signal(signal.SIGINT)


def wait(page: Page, expression: str) -> None:
    """Until it is true; the page's policy forbids Playwright's own waiting."""
    while not page.evaluate(expression):
        page.wait_for_timeout(50)


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", action="store_true")
    options = parser.parse_args()
    if options.pages:
        board(options.folder)
        live(options.folder)
        return
    ramps().savefig(options.folder / "ramps.png", dpi=90)


if __name__ == "__main__":
    main()
