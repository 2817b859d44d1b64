"""The servers of `cues live` and of the sound board in a thread, for tests."""

import asyncio
import threading
from contextlib import contextmanager

from cues.cli._page_server import PageServer, Watched, reloading_page, watched_bank
from cues.cli.live.browser.app import LivePages
from cues.cli.live.browser.conversation import ConversationOptions
from cues.cli.live.scripts import built_in_scripts


@contextmanager
def page_server(app, **address):
    """A running `PageServer` of an application."""
    server = PageServer(app, **address)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def board_server(make, folders, **address):
    """The sound board's server, with the page that `make` makes."""
    return page_server(reloading_page(Watched(make, folders), poll_s=0.01), **address)


def live_server(
    *, speaker="voice-like", pack="", scripts=None, buffer_ms=80, targets=None, offers_scripts=True, **address
):
    """A running `cues live`; without its scripts on the page, it takes any question, as with a live model."""
    scripts = built_in_scripts() if scripts is None else scripts
    asked = targets or [script.target() for script in scripts]
    options = ConversationOptions(targets=asked, bank=watched_bank(pack), speaker=speaker)
    shown = [{"title": each.title, "prompt": each.prompt} for each in scripts] if offers_scripts else []
    hello = {"answers": "recordings", "speaker": speaker, "buffer_ms": buffer_ms, "scripts": shown}
    return page_server(LivePages(options, hello, poll_s=0.02).app(), **address)
