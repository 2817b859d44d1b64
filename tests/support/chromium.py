"""The system's Chromium (`chromium`, or the one that `$CHROMIUM` names), headless, for tests in a browser."""

import os
import shutil
from contextlib import contextmanager

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


@contextmanager
def chromium():
    """A running browser."""
    assert CHROMIUM, "no Chromium here: install the package `chromium`, or name one with $CHROMIUM"
    from playwright.sync_api import sync_playwright  # an extra, which only the tests in a browser need

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


def until(page, expression):
    """Wait until it is true. Playwright's own waiting evaluates text inside of the page, which its policy forbids."""
    for _ in range(1500):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"never true: {expression}")
