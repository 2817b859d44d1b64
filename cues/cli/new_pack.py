"""`cues new-pack`: a pack to start from."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import chain
from pathlib import Path
from shlex import quote

import click

import cues
from cues.cli import _options
from cues.cli._records import counted
from cues.cli._terminal import harmless
from cues.errors import PackError
from cues.files import explained
from cues.library.audiofile import default_subtype, write_audio
from cues.library.pack import PACK_FILE, read_pack, sound_files
from cues.synthesis.catalog import CATALOG
from stream.speech import SPEAKERS

__all__ = ["command"]

_RATE_HZ = 48000
_PHRASE_S = 20.0


def _phrases_of(_: click.Context, __: click.Parameter, given: Sequence[str]) -> dict[str, list[str]]:
    """The phrases of each cue, from `CUE=TEXT`."""
    phrases: dict[str, list[str]] = {}
    for name, is_pair, text in (each.partition("=") for each in given):
        if name not in CATALOG or not text.strip() or not is_pair:
            raise click.BadParameter(f"{name!r}: write CUE=TEXT, with one of {', '.join(CATALOG)}")
        phrases.setdefault(name, []).append(text)
    return phrases


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--from", "source", type=_options.EXISTING_FOLDER, help="Take the sounds of this folder, which may be DIR."
)
@click.option("--voice", type=click.Choice(SPEAKERS), help="Speak phrases with this voice, for cues that are speech.")
@click.option("--language", default="en", show_default=True, help="Language of the voice, and of the stock phrases.")
@click.option(
    "--phrase",
    "phrases",
    multiple=True,
    metavar="CUE=TEXT",
    callback=_phrases_of,
    help="A phrase in place of the stock ones; give it again for more.",
)
def command(
    *, folder: Path, source: Path | None, voice: str | None, language: str, phrases: dict[str, list[str]]
) -> None:
    """Make a pack in DIR: a commented pack.toml, and the built-in sounds as WAV files to replace.

    DIR must be new or empty. With --from, the pack has a folder's sounds, and names those that are named after a cue.
    With --voice, it has spoken phrases; Pipecat and LiveKit need them made beforehand.
    """
    if phrases and voice is None:
        raise click.UsageError("--phrase needs --voice")
    with explained(folder, kind=PackError):
        in_place = source is not None and folder.exists() and folder.samefile(source)
        if in_place and (folder / PACK_FILE).exists():
            raise PackError(f"{folder}: has a {PACK_FILE}")
        if not in_place and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            sounds = folder.is_dir() and bool(sound_files(folder))
            takes = f", or take its sounds with --from {quote(str(folder))}" if sounds else ""
            raise PackError(f"{folder}: exists and is not empty; name a new or an empty folder{takes}")
        folder.mkdir(parents=True, exist_ok=True)
        given = sound_files(source) if source is not None else []
        entries = _built_in(folder) if source is None and voice is None else {}
        entries |= {path.stem: f'"{path.name}"' for path in given if path.stem in CATALOG}
        if voice is not None:
            entries |= asyncio.run(_speak(folder, voice, language, phrases or None, {path.name for path in given}))
        for path in [] if in_place else given:
            shutil.copyfile(path, folder / path.name)
        _write(folder / PACK_FILE, entries)
    shown = harmless(str(folder))
    n_sounds = counted(len(sound_files(folder)), "sound")
    click.echo(f"{shown}: pack.toml and {n_sounds}. Replace some, then: cues check {quote(shown)}")
    for file in read_pack(folder).unnamed:
        click.echo(f"! {harmless(file)}: pack.toml does not use it")


def _built_in(folder: Path) -> dict[str, str]:
    """Write the built-in sounds; returns their entries of a `pack.toml`."""
    bank = cues.load_bank("", sample_rate=_RATE_HZ)
    for name in CATALOG:
        write_audio(folder / f"{name}.wav", bank[name].samples, _RATE_HZ, "wav", default_subtype("wav"))
    return {name: f'"{name}.wav"' for name in CATALOG}  # `loop = true` would repeat a short sound without a pause


async def _speak(
    folder: Path, voice: str, language: str, texts: Mapping[str, Sequence[str]] | None, taken: set[str]
) -> dict[str, str]:
    """Write phrases that the voice speaks, under no name that is taken; returns their entries of a `pack.toml`."""
    from stream.session.spoken_phrases import spoken, wanted
    from stream.speech import choose_speaker
    from stream.speech.speaker import SAMPLE_RATE

    listed = wanted(texts, language)
    files = {name: [f"{name}-{number}.wav" for number, _ in enumerate(said, 1)] for name, said in listed.items()}
    if lost := sorted(taken.intersection(chain(*files.values()))):
        raise PackError(f"{lost[0]}: a phrase would replace this sound; rename it")
    of_voice = None if language == "en" else language
    async with contextlib.aclosing(await choose_speaker(voice, language=of_voice)) as speaker:
        for file, text in zip(chain(*files.values()), chain(*listed.values()), strict=True):
            samples = await spoken(speaker, text, limit_s=_PHRASE_S)
            write_audio(folder / file, samples, SAMPLE_RATE, "wav", default_subtype("wav"))
    return {name: f"{{ phrases = {json.dumps(each)} }}" for name, each in files.items()}


def _write(file: Path, entries: Mapping[str, str]) -> None:
    lines = [f"{name} = {entry}".ljust(55) + f" # {CATALOG[name].meaning}\n" for name, entry in entries.items()]
    template = resources.files(__package__).joinpath("new_pack.toml").read_text(encoding="utf-8")
    file.write_text(template.replace("{cues}", "".join(lines)), encoding="utf-8")
