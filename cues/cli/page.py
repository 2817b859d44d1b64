"""`cues page`: the sound board."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

import cues
from cues.cli import _options
from cues.cli._minute import minute
from cues.cli._records import bank_of, source_of
from cues.cli._telephone import telephone_bank
from cues.cli._terminal import harmless
from cues.files import explained
from cues.library.bank import Bank
from cues.library.pack import find_pack_dir
from cues.meters.telephone import RATE_HZ, over_telephone
from cues.show.audition import LINE, at_speech_level, stand_in_speech
from cues.show.board import Set, board_page, sound_board_packages

__all__ = ["command"]

_RATE_HZ = 24000
_BUILT_IN = "built in"


@click.command()
@click.argument("out", metavar="[OUT.html]", type=_options.OutFile(".html", ".htm"), required=False)
@click.option(
    "--pack",
    "packs",
    multiple=True,
    type=_options.EXISTING_FOLDER,
    help="A pack to show beside the built-in cues (default: CUES_PACK's); twice: two packs beside each other.",
)
@click.option("--over", metavar="FILE", type=_options.EXISTING_FILE, help="Your speech, in place of the speaker's.")
@_options.speaker
@click.option("--serve", is_flag=True, help="Serve the page on this machine, and reload it when a pack changes.")
@click.option("--port", type=_options.PORT, default=8485, show_default=True, help="Port of --serve; 0: a free one.")
def command(
    *, out: Path | None, packs: tuple[Path, ...], over: Path | None, speaker: str, serve: bool, port: int
) -> None:
    """Make a page that plays and shows every cue: alone, over speech, over a telephone.

    OUT.html is one self-contained file: you can mail it, or open it on a phone.
    """
    if (out is None) == (not serve):
        raise click.UsageError("give OUT.html, or --serve" if out is None else "give OUT.html or --serve, not both")
    if serve:
        sound_board_packages()  # what is missing is said now, not to the browser
    speech, who = _speech(over, speaker)
    folders = packs or tuple(filter(None, [find_pack_dir(None)]))

    def make(reload: str) -> str:
        banks = {folder: bank_of(folder if packs else None, _RATE_HZ) for folder in folders}
        own = cues.load_bank("", sample_rate=_RATE_HZ)  # "" ignores the pack of this machine.
        answer = over_telephone(speech, _RATE_HZ)[: 3 * RATE_HZ]
        heard = minute(telephone_bank(next(iter(banks.values()), own)), answer)
        return board_page(_sets(banks, own), speech, _RATE_HZ, speaker=who, reload=reload, minute=heard)

    if serve:
        from cues.cli._page_server import PageServer, Watched, reloading_page

        page = Watched(lambda state: make(f"changes?{state}"), folders)
        server = PageServer(reloading_page(page), port=port)
        watched = harmless(f", watching {', '.join(map(str, folders))}") if folders else ""
        click.echo(f"serving on {server.url}{watched} (Ctrl-C ends)")
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(server.serve())
        return
    assert out is not None
    text = make("")
    with explained(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    click.echo(f"{harmless(str(out))}: {len(text) / 2**20:.1f} MB; open it in a browser")


def _sets(banks: Mapping[Path, Bank], own: Bank) -> list[Set]:
    """The columns of the page: two packs, or the built-in cues (`own`) and at most one pack."""
    sets = []
    for folder, bank in banks.items():
        # The page may be shared: leave out paths of this machine.
        sources = {name: Path(source_of(bank, name)).name for name in bank}
        sets.append(Set(folder.resolve().name, dict(bank), sources))
    if len(sets) < 2:
        sets.insert(0, Set(_BUILT_IN, dict(own), dict.fromkeys(own, _BUILT_IN)))
    return sets


def _speech(over: Path | None, speaker: str) -> tuple[NDArray[np.float32], str]:
    """Speech under the cues, and the name of its speaker."""
    if over is not None:
        from cues.library.audiofile import read_recording
        from cues.signal.resample import resample

        recording = read_recording(over)
        return resample(recording.samples, recording.sample_rate, _RATE_HZ), over.name
    if speaker == "voice-like":
        return stand_in_speech(_RATE_HZ), "voice-like"
    return asyncio.run(_spoken(speaker))


async def _spoken(speaker: str) -> tuple[NDArray[np.float32], str]:
    """The line of every audition at −20 LUFS, and the name of its speaker."""
    from cues.signal.resample import resample
    from stream.speech import choose_speaker
    from stream.speech.speaker import SAMPLE_RATE

    async with contextlib.aclosing(await choose_speaker(speaker)) as chosen:
        await chosen.send(LINE)
        await chosen.finish()
        samples = np.concatenate([speech.samples async for speech in chosen])
    return resample(at_speech_level(samples, SAMPLE_RATE), SAMPLE_RATE, _RATE_HZ), chosen.name
