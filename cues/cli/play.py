"""`cues play`: play cues on this machine's loudspeakers."""

from pathlib import Path

import click

from cues.arrays import Samples
from cues.cli import _options
from cues.cli._loudspeakers import play
from cues.cli._records import STANDARD, bank_of, complete_cue, recording_of, sound_of
from cues.cue import Cue
from cues.show.audition import in_a_row, over_speech, stand_in_speech

__all__ = ["command"]

_RATE_HZ = 24000
STAND_IN = Path("voice-like")
"""Value of `--over` for synthetic speech, instead of a file."""


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_cue)
@click.option(
    "--over",
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    help=f"Play them over this speech; '{STAND_IN}' needs no file.",
)
@_options.telephone
@_options.pack
def command(*, names: tuple[str, ...], over: Path | None, telephone: bool, pack: Path | None) -> None:
    """Play the cues NAME... one after the other.

    `motif:TOOL` is the sound derived from the name of a tool, - an audio file on standard input, and x.wav a file. Uses
    the extra `play`, else a program of the system (pw-play, paplay, afplay, aplay, play). Without loudspeakers
    use `cues mix` or `cues export`, which write files.
    """
    if [*names, str(over)].count(STANDARD) > 1:
        raise click.UsageError("standard input holds one sound: give - once")
    bank = bank_of(pack)
    sounds = [sound_of(bank, name) for name in names]
    samples = in_a_row(sounds) if over is None else _over(sounds, over)
    rate = _RATE_HZ
    if telephone:
        from cues.meters.telephone import RATE_HZ, over_telephone

        samples, rate = over_telephone(samples, rate), RATE_HZ
    if program := play(samples, rate):
        click.echo(f"played by {program}", err=True)


def _over(sounds: list[Cue], over: Path) -> Samples:
    if over == STAND_IN and not over.exists():
        return over_speech(sounds, stand_in_speech(_RATE_HZ), _RATE_HZ)
    from cues.signal.resample import resample

    speech = recording_of(over)
    return over_speech(sounds, resample(speech.samples, speech.sample_rate, _RATE_HZ), _RATE_HZ)
