"""The servers of `cues live` and of the sound board in a thread, for tests."""

import asyncio
import threading
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, nullcontext

from cues.cli._page_server import PageServer, reloading_page
from cues.cli._watching import Watched, watched_bank
from cues.cli.live.browser.app import LivePages
from cues.cli.live.browser.conversation import ConversationOptions
from cues.cli.live.scripts import built_in_scripts, served


@contextmanager
def page_server(app, **address):
    """A running `PageServer` of an application, which an async context manager gives."""
    started = Future()

    async def serve():
        async with app as made:
            server = PageServer(made, **address)
            started.set_result(server)
            await server.serve()

    def run():
        try:
            asyncio.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=run)
    thread.start()
    server = started.result()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def board_server(make, folders, **address):
    """The sound board's server, with the page that `make` makes."""
    return page_server(nullcontext(reloading_page(Watched(make, folders), poll_s=0.01)), **address)


def live_server(
    *, speaker="voice-like", pack="", scripts=None, buffer_ms=80, targets=None, offers_scripts=True, **address
):
    """A running `cues live`; without its scripts on the page, it takes any question, as with a live model."""
    scripts = built_in_scripts() if scripts is None else scripts

    @asynccontextmanager
    async def app():
        async with served(scripts) as recorded:
            options = ConversationOptions(targets=targets or recorded, bank=watched_bank(pack), speaker=speaker)
            shown = [{"title": each.title, "prompt": each.prompt} for each in scripts] if offers_scripts else []
            hello = {"answers": "recordings", "speaker": speaker, "buffer_ms": buffer_ms, "scripts": shown}
            yield LivePages(options, hello, poll_s=0.02).app()

    return page_server(app(), **address)
