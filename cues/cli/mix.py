"""`cues mix`: mix cues into a speech file, with the engine of live sessions."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from cues.cli import _options
from cues.cli._records import bank_of, complete_cue, number, pick, print_json
from cues.cli._sounds import STANDARD, read_standard_input, write_standard_output
from cues.cli._terminal import harmless
from cues.library.audiofile import WRITABLE, default_subtype, encoded, write_audio
from cues.library.recordings import MAX_RECORDING_BYTES, read_recording
from cues.mixing.offline import Insert, mix_recording
from cues.mixing.voice import MAX_GAIN_DB

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["command"]


_MAX_TIME_S = 1e6
_SECONDS = re.compile(r"(?:(?:(\d+):)?(\d+):)?(\d*\.?\d+|\d+\.)(ms|s)?", re.ASCII)


def seconds_of(text: str) -> float | None:
    """Seconds of `1.25`, `1.25s`, `1250ms`, `0:01.25` or `0:00:01.25`; None for other text."""
    found = _SECONDS.fullmatch(text.strip().lower())
    if found is None:
        return None
    hours, minutes, seconds, unit = found.groups()
    if minutes is not None and (unit or float(seconds) >= 60.0):
        return None
    return 3600.0 * int(hours or 0) + 60.0 * int(minutes or 0) + float(seconds) / (1000.0 if unit == "ms" else 1.0)


class CueAt(click.ParamType):  # type: ignore[type-arg]  # generic only in the newest click
    """`NAME@SECONDS`, as in `tool_call@1.25`."""

    name = "NAME@SECONDS"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """The name and the time."""
        name, _, time = value.rpartition("@")
        time_s = seconds_of(time)
        if not name or time_s is None or time_s > _MAX_TIME_S:
            self.fail(f"{value!r} is not a cue and a time, such as tool_call@1.25, @250ms or @1:02.5", param, ctx)
        return name, time_s

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names of cues, followed by `@`."""
        return [CompletionItem(f"{name.value}@") for name in complete_cue(ctx, param, incomplete)]


@click.command()
@click.argument("speech", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option("--cue", "wanted", type=CueAt(), multiple=True, required=True, help="A cue and its time; repeatable.")
@click.option(
    "-o",
    "--out",
    type=_options.OutFile(*WRITABLE, standard=True),
    help="WAV, FLAC or OGG; - writes WAV to standard output. Default: SPEECH-mixed.wav, here.",
)
@_options.pack
@click.option(
    "--placement",
    type=click.Choice(["overlay", "replace", "in_pause"]),
    default="overlay",
    show_default=True,
    help="Over the speech, instead of it, or in its next pause.",
)
@click.option(
    "--gain-db",
    type=click.FloatRange(-120.0, MAX_GAIN_DB),
    default=0.0,
    show_default=True,
    help="Gain of every cue, dB.",
)
@click.option("--limiter", is_flag=True, help="Limit true peaks to −0.95 dBTP.")
@click.option("--png", type=_options.OutFile(".png"), help="Write a picture: waveform, spectrogram and cues.")
@_options.json_output
def command(
    *,
    speech: Path,
    wanted: tuple[tuple[str, float], ...],
    out: Path | None,
    pack: Path | None,
    placement: str,
    gain_db: float,
    limiter: bool,
    png: Path | None,
    as_json: bool,
) -> None:
    """Mix cues into the file SPEECH (- is standard input) as a live session does.

    A cue may start anywhere up to the end of the speech; silence is added until the last cue ends.
    """
    _options.one_standard_output("--out", out, as_json=as_json)
    bank = bank_of(pack)
    pick(bank, (name for name, _ in wanted))  # report an unknown name before reading a long file
    is_piped = str(speech) == STANDARD
    target = out or Path("speech-mixed.wav" if is_piped else f"{speech.stem}-mixed.wav")
    if target.exists() and speech.exists() and target.samefile(speech):
        raise click.BadParameter(f"{str(target)!r} is the speech itself; it is not overwritten", param_hint="'--out'")
    recording = (
        read_recording(io.BytesIO(read_standard_input(MAX_RECORDING_BYTES)), "standard input")
        if is_piped
        else read_recording(speech)
    )
    rate = recording.sample_rate
    _check_times(wanted, len(recording.samples) / rate, speech)
    inserts = [Insert(cue=bank[name], at_s=at_s, gain_db=gain_db, placement=placement) for name, at_s in wanted]  # type: ignore[arg-type]  # click has checked it
    mixed = mix_recording(recording.samples, rate, inserts, limiter=limiter)
    if png is not None:
        _draw(mixed.samples, rate, inserts, png)
    if str(target) == STANDARD:
        write_standard_output(encoded(mixed.samples, rate, "wav", default_subtype("wav")))
    else:
        file_format = target.suffix[1:].lower()
        write_audio(target, mixed.samples, rate, file_format, default_subtype(file_format))
    report = {
        "file": str(target),
        "sample_rate": rate,
        "duration_s": round(len(mixed.samples) / rate, 6),
        "cues": [{"name": name, "at_s": at_s} for name, at_s in wanted],
        "stats": dict(mixed.stats),
    }
    if str(target) == STANDARD:
        return
    if as_json:
        print_json(report)
    else:
        click.echo(_sentence(report, len(wanted)))


def _draw(samples: NDArray[np.float32], sample_rate: int, inserts: Sequence[Insert], png: Path) -> None:
    from cues.cli._pictures import picture_of_mix, save_picture

    spans = [(insert.cue.name, insert.at_s, insert.cue.duration_s) for insert in inserts]
    n_cues = "1 cue" if len(spans) == 1 else f"{len(spans)} cues"
    save_picture(picture_of_mix(samples, sample_rate, spans, f"{len(samples) / sample_rate:.1f} s with {n_cues}"), png)


def _check_times(wanted: tuple[tuple[str, float], ...], length_s: float, speech: Path) -> None:
    """Reject a cue after the end of the speech: its time is probably wrong."""
    for name, at_s in wanted:
        if at_s > length_s:
            raise click.BadParameter(
                f"'{name}@{at_s:g}' is after the end of {str(speech)!r}, which lasts {length_s:.3f} s",
                param_hint="'--cue'",
            )


def _sentence(report: dict[str, Any], n_cues: int) -> str:
    cues = "1 cue" if n_cues == 1 else f"{n_cues} cues"
    return f"{harmless(report['file'])}: {number(report['duration_s'], 's', 2)} with {cues}"
