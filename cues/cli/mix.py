"""`cues mix`: cues into a speech file, by the engine of live sessions."""

from __future__ import annotations

import json
from pathlib import Path

import click

import cues
from cues.audiofile import FORMATS, default_subtype, write_audio
from cues.cli._records import pick
from cues.mixing.offline import Insert, mix_recording
from cues.mixing.voices import MAX_GAIN_DB
from cues.recordings import read_recording

__all__ = ["command"]


class CueAt(click.ParamType):  # type: ignore[type-arg]  # generic only in the newest click
    """`NAME@SECONDS`, as in `tool_call@1.25`."""

    name = "NAME@SECONDS"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """The name and the time."""
        name, at, seconds = value.rpartition("@")
        try:
            time_s = float(seconds)
        except ValueError:
            time_s = -1.0
        if not at or not name or not 0.0 <= time_s <= 1e6:
            self.fail(f"{value!r} is not a cue and a time, such as tool_call@1.25", param, ctx)
        return name, time_s


@click.command()
@click.argument("speech", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--cue", "wanted", type=CueAt(), multiple=True, help="A cue and its time; may be given many times.")
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Default: SPEECH-mixed.wav, here.")
@click.option("--pack", "pack_dir", type=click.Path(path_type=Path), help="Overlay the built-in cues with this pack.")
@click.option("--placement", type=click.Choice(["overlay", "replace", "gap"]), default="overlay", show_default=True)
@click.option("--gain-db", type=click.FloatRange(-120.0, MAX_GAIN_DB), default=0.0, show_default=True)
@click.option("--limiter", is_flag=True, help="Hold true peaks at or under −0.95 dBTP.")
@click.option("--json", "as_json", is_flag=True, help="Say what was mixed as JSON.")
def command(
    *,
    speech: Path,
    wanted: tuple[tuple[str, float], ...],
    out: Path | None,
    pack_dir: Path | None,
    placement: str,
    gain_db: float,
    limiter: bool,
    as_json: bool,
) -> None:
    """Mix cues into the file SPEECH, as a live session would have them."""
    bank = cues.load_bank(pack_dir)
    pick(bank, (name for name, _ in wanted))  # an unknown name is told before a long file is read
    target = out or Path(f"{speech.stem}-mixed.wav")
    if target.exists() and target.samefile(speech):
        raise click.BadParameter(f"{target} is the speech itself; it is not overwritten", param_hint="--out")
    recording = read_recording(speech)
    inserts = [Insert(cue=bank[name], at_s=at_s, gain_db=gain_db, placement=placement) for name, at_s in wanted]  # type: ignore[arg-type]  # click has checked it
    mixed = mix_recording(recording.samples, recording.sample_rate, inserts, limiter=limiter)
    file_format = target.suffix[1:].lower() if target.suffix[1:].lower() in FORMATS else "wav"
    write_audio(target, mixed.samples, recording.sample_rate, file_format, default_subtype(file_format))
    report = {
        "file": str(target),
        "sample_rate": recording.sample_rate,
        "duration_s": round(len(mixed.samples) / recording.sample_rate, 6),
        "cues": [{"name": name, "at_s": at_s} for name, at_s in wanted],
        "stats": dict(mixed.stats),
    }
    click.echo(json.dumps(report, indent=2) if as_json else _sentence(report, len(wanted)))


def _sentence(report: dict[str, object], n_cues: int) -> str:
    return f"{report['file']}: {report['duration_s']} s with {n_cues} cue{'s' if n_cues != 1 else ''}"
