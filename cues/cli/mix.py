"""`cues mix`: mix cues into a speech file, with the engine of live sessions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from cues.cli import _options
from cues.cli._files import save_picture, write_standard_output
from cues.cli._records import STANDARD, bank_of, complete_cue, counted, cue_of, number, print_json, recording_of
from cues.cli._terminal import harmless
from cues.library.audiofile import WRITABLE, averaged, default_subtype, encoded, write_audio
from cues.meters.telephone import RATE_HZ, over_telephone
from cues.mixing.offline import Insert, mix_recording
from cues.mixing.voice import MAX_GAIN_DB
from cues.show.plots import CUE_COLOR, SPEECH_COLOR, draw_spectrogram, draw_waveform, new_figure

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
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
        name, _, time = value.rpartition("@")
        time_s = seconds_of(time)
        if not name or time_s is None or time_s > _MAX_TIME_S:
            self.fail(f"{value!r} is not a cue and a time, such as tool_call@1.25, @250ms or @1:02.5", param, ctx)
        return name, time_s

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
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
    type=_options.Number(-120.0, MAX_GAIN_DB),
    default=0.0,
    show_default=True,
    help="Gain of every cue, dB.",
)
@_options.telephone
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
    telephone: bool,
    limiter: bool,
    png: Path | None,
    as_json: bool,
) -> None:
    """Mix cues into the file SPEECH (- is standard input) as a live session does.

    A cue may start anywhere up to the end of the speech; silence is added until the last cue ends. The file's sample
    rate and channels stay.
    """
    _options.one_standard_output("--out", out, as_json=as_json)
    bank = bank_of(pack)
    for name, _ in wanted:
        cue_of(bank, name)  # report an unknown name before reading a long file
    target = out or Path("speech-mixed.wav" if str(speech) == STANDARD else f"{speech.stem}-mixed.wav")
    if target.exists() and speech.exists() and target.samefile(speech):
        raise click.BadParameter(f"{str(target)!r} is the speech itself; it is not overwritten", param_hint="'--out'")
    recording = recording_of(speech)
    talk = recording.samples if recording.channels.shape[1] == 1 else recording.channels
    rate, length_s = recording.sample_rate, len(talk) / recording.sample_rate
    for name, at_s in wanted:  # a time after the end is probably wrong
        if at_s > length_s:
            raise click.BadParameter(
                f"'{name}@{at_s:g}' is after the end of {str(speech)!r}, which lasts {length_s:.3f} s",
                param_hint="'--cue'",
            )
    inserts = [Insert(cue=bank[name], at_s=at_s, gain_db=gain_db, placement=placement) for name, at_s in wanted]  # type: ignore[arg-type]  # click has checked it
    mixed = mix_recording(talk, rate, inserts, limiter=limiter)
    samples = mixed.samples
    if telephone:  # which has one channel
        samples, rate = over_telephone(averaged(samples), rate), RATE_HZ
    if png is not None:
        save_picture(_picture(averaged(samples), rate, inserts), png)
    if str(target) == STANDARD:
        write_standard_output(encoded(samples, rate, "wav", default_subtype("wav")))
        return
    file_format = target.suffix[1:].lower()
    write_audio(target, samples, rate, file_format, default_subtype(file_format))
    duration_s = round(len(samples) / rate, 6)
    if as_json:
        print_json(
            {
                "file": str(target),
                "sample_rate": rate,
                "duration_s": duration_s,
                "cues": [{"name": name, "at_s": at_s} for name, at_s in wanted],
                "stats": asdict(mixed.stats),
            }
        )
    else:
        click.echo(f"{harmless(str(target))}: {number(duration_s, 's', 2)} with {counted(len(wanted), 'cue')}")
        if png is not None:
            click.echo(f"picture: {harmless(str(png))}")


def _picture(samples: NDArray[np.float32], sample_rate: int, inserts: Sequence[Insert]) -> Figure:
    """Waveform and spectrogram of a mix, with each cue shaded."""
    figure = new_figure(10.0, 5.0)
    waveform, spectrogram = figure.subplots(2, 1, sharex=True)
    draw_waveform(waveform, samples, sample_rate, color=SPEECH_COLOR)
    waveform.set_xlabel("")
    draw_spectrogram(spectrogram, samples, sample_rate)
    for insert in inserts:
        for axes in (waveform, spectrogram):
            axes.axvspan(insert.at_s, insert.at_s + insert.cue.duration_s, color=CUE_COLOR, alpha=0.25, linewidth=0)
        at = (insert.at_s, 0.97)
        waveform.annotate(insert.cue.name, at, xycoords=("data", "axes fraction"), va="top", fontsize=9)
    figure.suptitle(f"{len(samples) / sample_rate:.1f} s with {counted(len(inserts), 'cue')}")
    return figure
