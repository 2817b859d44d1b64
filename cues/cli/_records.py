"""Cues and sounds that are named on the command line, and their records, for tables and `--json`."""

import io
import json
import math
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

import cues
from cues.cue import Cue
from cues.errors import AudioFileError
from cues.library import audiofile
from cues.library.bank import Bank
from cues.library.pack import MOTIF, Override, find_pack_dir, read_pack
from cues.meters.loudness import measure
from cues.meters.pitch import heard_notes
from cues.synthesis.catalog import CATALOG

__all__ = [
    "STANDARD",
    "bank_of",
    "complete_cue",
    "counted",
    "cue_of",
    "cue_record",
    "number",
    "override_of",
    "print_json",
    "recording_of",
    "sound_of",
    "source_of",
]

STANDARD = "-"
"""Name of standard input and output."""
_INPUT = "standard input"


def bank_of(pack: Path | None, sample_rate: int = 24000) -> Bank:
    """The bank of a command; the error of a pack names its first problem, and the command that lists all."""
    try:
        return cues.load_bank(pack, sample_rate=sample_rate)
    except (cues.PackError, cues.AudioFileError) as error:
        folder = find_pack_dir(pack)
        if folder is None or not folder.is_dir():
            raise
        raise type(error)(f"{error} (cues check {shlex.quote(str(folder))} lists all)", fix=error.fix) from error


def cue_of(bank: Bank, name: str) -> Cue:
    """The cue of a name; an unknown one raises `UnknownCueError` with a suggestion."""
    # A live session gives a tool without a name some motif; on the command line it is a mistake.
    if name == f"{MOTIF}:":
        raise cues.UnknownCueError(f"{name!r} lacks the name of a tool; it is written like {MOTIF}:read_file")
    return bank[name]


def sound_of(bank: Bank, name: str) -> Cue:
    """The cue of a name, or an audio file (`-` for standard input) at its own level and the bank's rate."""
    if name == STANDARD:
        name, sound = _INPUT, audiofile.decoded(_standard_input(audiofile.MAX_FILE_BYTES), _INPUT)
    elif name not in bank and Path(name).suffix.lower() in audiofile.ENDINGS:
        sound = audiofile.read_audio(Path(name))
    else:
        return cue_of(bank, name)
    from cues.signal.resample import resample

    samples = resample(*sound, bank.sample_rate)
    return Cue(name=name, samples=samples, sample_rate=bank.sample_rate, measured=measure(samples, bank.sample_rate))


def recording_of(path: Path) -> audiofile.Recording:
    """The recording in a file, or on standard input if the path is `-`."""
    if str(path) != STANDARD:
        return audiofile.read_recording(path)
    return audiofile.read_recording(io.BytesIO(_standard_input(audiofile.MAX_RECORDING_BYTES)), _INPUT)


def _standard_input(most_bytes: int) -> bytes:
    """All of standard input; `AudioFileError` if it is a terminal, or longer than `most_bytes`."""
    if sys.stdin is None or sys.stdin.isatty():
        raise AudioFileError(f"{_INPUT}: is a terminal; it must be an audio file, as in `cat x.wav | cues …`")
    data = sys.stdin.buffer.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise AudioFileError(f"{_INPUT}: has more than {most_bytes} bytes")
    return data


def override_of(bank: Bank, name: str) -> Override | None:
    """The settings of a pack's cue, or of an audio file as a pack would have it; None for a built-in cue and `-`."""
    if name in bank:
        return read_pack(bank.pack_dir).cues.get(name) if bank.pack_dir is not None else None
    return None if name == STANDARD else Override(where=name, file=Path(name), file_name=name)


def source_of(bank: Bank, name: str) -> str:
    """Origin of a cue: `built in`, the pack's file, or the pack's spec."""
    if name.startswith("motif:"):
        return "derived from the tool's name"
    if bank.pack_dir is None or (override := read_pack(bank.pack_dir).cues.get(name)) is None:
        return "built in"
    if override.file is not None or override.phrases:
        return ", ".join(map(str, (override.file,) if override.file else override.phrases))
    return f"{bank.pack_dir / 'pack.toml'} ({'spec' if override.spec else 'built in, adjusted'})"


def cue_record(cue: Cue, source: str) -> dict[str, Any]:
    """Record of a cue, JSON-serializable: the keys of `cues list --json` and `cues show --json`."""
    measured = {} if cue.measured is None else asdict(cue.measured)
    built_in = CATALOG.get(cue.name)
    return {
        "name": cue.name,
        "meaning": built_in.meaning if built_in else None,
        "source": source,
        "length_ms": round(1000.0 * cue.duration_s, 3),
        "sample_rate": cue.sample_rate,
        "n_samples": len(cue),
        "loop": cue.loop,
        "notes": list(heard_notes(cue.samples, cue.sample_rate)),
        **{key: _finite(value) for key, value in measured.items()},
    }


def _finite(value: float | None) -> float | None:
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None


def number(value: float | None, unit: str = "", digits: int = 1) -> str:
    """`value` as text, with a typographic minus sign; a dash for None."""
    if value is None:
        return "–"
    text = f"{value:.{digits}f}".replace("-", "−")
    return f"{text} {unit}" if unit else text


def counted(n: int, thing: str) -> str:
    """`1 cue`, `2 cues`."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def print_json(value: object) -> None:
    """Print `value` as one indented JSON document."""
    click.echo(json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False))


def complete_cue(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names in the bank that begin with `incomplete`, for shell completion."""
    try:
        names = list(bank_of(ctx.params.get("pack")))
    except cues.CueError:
        names = list(CATALOG)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
