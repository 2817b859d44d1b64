"""`cues live` in a thread, for tests."""

import asyncio
import threading
from contextlib import contextmanager
from functools import partial

from cues.cli._watching import Sounds
from cues.cli.live.browser.app import LivePages
from cues.cli.live.browser.conversation import Conversation, Setup
from cues.cli.live.browser.server import LiveServer
from cues.cli.live.scripts import built_in_scripts, served


@contextmanager
def live_server(
    *,
    speaker="voice-like",
    pack="",
    scripts=None,
    buffer_ms=80,
    poll_s=0.02,
    targets=None,
    **address,
):
    """A running server: its URL in `.url`, its open pages in `.pages`."""
    started, servers, failures = threading.Event(), [], []
    scripts = built_in_scripts() if scripts is None else scripts

    async def serve():
        async with served(scripts) as recorded:
            sounds = Sounds(pack)
            setup = Setup(targets=targets or recorded, bank=sounds.bank, speaker=speaker)
            shown = [{"title": script.title, "prompt": script.prompt} for script in scripts]
            hello = {"answers": "recordings", "speaker": speaker, "buffer_ms": buffer_ms, "scripts": shown}
            pages = LivePages(partial(Conversation, setup), sounds, hello, poll_s)
            server = LiveServer(pages.app(), **address)
            server.pages = pages
            servers.append(server)
            started.set()
            await server.serve()

    def run():
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.is_set():
                raise
            failures.append(error)
            started.set()

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    if failures:
        thread.join()
        raise failures[0]
    try:
        yield servers[0]
    finally:
        servers[0].close()
        thread.join()
