"""`cues batch`: measure thousands of recordings, or mix cues into them."""

import glob
import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from statistics import median
from typing import Any

import click

from cues.batch.recordings import Source, find_sources
from cues.batch.rows import ENDINGS as TABLES
from cues.batch.run import Run, Task, run_batch
from cues.cli import _options
from cues.cli._records import bank_of, number, print_json
from cues.cli._terminal import console, harmless
from cues.errors import CueError
from cues.mixing.warmup import has_object_file

__all__ = ["command"]

_FAILURES_TOLD = 20
_FLAGGED_DBTP = -1.0
_HEARD_LU = 0.5

# The options of every run; the commands pass them on as `how`.
_how = _options.together(
    click.option("--workers", type=click.IntRange(1, 1024), help="Processes; by default one per core."),
    click.option("--dask", metavar="ADDRESS", help="Use the Dask cluster of this scheduler instead."),
    click.option("--fresh", is_flag=True, help="Discard the results of earlier runs."),
    _options.json_output,
)


def _out_folder(name: str) -> _options.Decorator:
    """The option for the folder of the recordings that a run writes."""
    text = f"Folder for the recordings, and for the table {name}.csv."
    kind = click.Path(path_type=Path, file_okay=False)
    return click.option("--out", type=kind, default=name, show_default=True, help=text)


@click.group(context_settings={"max_content_width": 100})
def command() -> None:
    """Measure thousands of recordings, or mix cues into them.

    Each result is in the table as soon as its file is done: after a failure (a broken file, a dead worker, a full disk)
    or Ctrl-C, the same command resumes. Exit code 1 if a file failed.
    """


@command.command(short_help="Measure loudness, true peak and clicks.")
@click.argument("place", metavar="DIR|GLOB|URL")
@click.option(
    "-o",
    "--output",
    "--out",
    type=_options.OutFile(*TABLES),
    default="measures.csv",
    show_default=True,
    help="The table: .csv or .jsonl.",
)
@click.option("--exact", is_flag=True, help="True peak at 16 times the rate instead of 4.")
@_how
def measure(*, place: str, output: Path, exact: bool, **how: Any) -> None:
    """Measure loudness, true peak and clicks of all recordings at DIR|GLOB|URL.

    Folders are searched recursively, patterns only with **. A URL (s3://…) needs the extra `batch`.
    """
    from cues.batch.measuring import COLUMNS, Measure

    tasks = [Measure(source, exact) for source in find_sources(place)]
    run = _run(tasks, output, COLUMNS, how)
    measured = [row for row in run.rows if row["status"] == "ok"]
    loudness = sorted(row["integrated_lufs"] for row in measured if row["integrated_lufs"] is not None)
    loudest = sorted(row["m100_max_lufs"] for row in measured if row["m100_max_lufs"] is not None)
    middle = median(loudness) if loudness else None
    low, high = (loudness[0], loudness[-1]) if loudness else (None, None)
    peaks = [row["true_peak_dbtp"] for row in measured if row["true_peak_dbtp"] is not None]
    summary = {
        "median_lufs": middle,
        "lowest_lufs": low,
        "highest_lufs": high,
        "above_1_dbtp": sum(peak > _FLAGGED_DBTP for peak in peaks),
        "with_clicks": sum(row["n_clicks"] > 0 for row in measured),
    }
    n_short = len(measured) - len(loudness)
    too_short = f" (without {n_short} shorter than 400 ms, or silent)" if n_short else ""
    span = f"{number(low)} to {number(high, 'LUFS')}, median {number(middle)}" if loudness else "none"
    lines = [
        f"loudness: {span}{too_short}",
        *([f"loudest 100 ms: {number(loudest[0])} to {number(loudest[-1], 'LUFS')}"] if loudest else []),
        f"true peak above −1 dBTP: {summary['above_1_dbtp']}; with clicks: {summary['with_clicks']}",
    ]
    _finish(run, output, summary, lines if measured else [], how)


@command.command(short_help="Bring recordings to one loudness.")
@click.argument("place", metavar="DIR|GLOB")
@_out_folder("normalized")
@click.option("--target-lufs", type=_options.Number(-60.0, 0.0), default=-20.0, show_default=True, help="Loudness.")
@click.option("--ceiling-dbtp", type=_options.Number(-20.0, 0.0), default=-1.0, show_default=True, help="True peak.")
@click.option("--m100", is_flag=True, help="By the loudest 100 ms, as cues are leveled; shorter than 400 ms always.")
@_how
def normalize(*, place: str, out: Path, target_lufs: float, ceiling_dbtp: float, m100: bool, **how: Any) -> None:
    """Bring all recordings at DIR|GLOB to one loudness, each by one gain.

    A recording keeps its name, sample rate, channels and sample format (WAV or FLAC; others, such as MP3 and ADPCM,
    become WAV of 24 bits); one that the ceiling keeps too quiet is in the table with missed_lu. Of a DIR|GLOB around
    --out, what is in --out is not read.
    """
    from cues.batch.normalizing import COLUMNS, Normalize

    sources, results, base = find_sources(place), out.resolve(), _base_of(place)
    if base.resolve() in results.parents:
        sources = [each for each in sources if results not in Path(each.file).resolve().parents]
    if not sources:
        raise CueError(f"{place}: has only the recordings in {out}")
    names = {source: Path(source.file).relative_to(base).with_suffix("") for source in sources}
    ending = {source: ".flac" if source.file.lower().endswith(".flac") else ".wav" for source in sources}
    level = target_lufs, ceiling_dbtp, m100
    tasks = [Normalize(source, f"{out / names[source]}{ending[source]}", *level) for source in sources]
    if len({task.output for task in tasks}) < len(tasks):
        raise CueError(
            f"{place}: two recordings would have one name; normalize one format at a time, each with its --out"
        )
    table = out / "normalized.csv"
    run = _rewrite(tasks, table, COLUMNS, how)
    limited = sum(row["status"] == "ok" and row["missed_lu"] < -_HEARD_LU for row in run.rows)
    summary = {"target_lufs": target_lufs, "limited": limited}
    lines = [f"recordings in {harmless(str(out))}; the ceiling kept {limited} below the target"]
    _finish(run, table, summary, lines, how)


@command.command()
@click.argument("plan", metavar="PLAN", type=_options.EXISTING_FILE)
@_out_folder("mixed")
@_options.pack
@_how
def mix(*, plan: Path, out: Path, pack: Path | None, **how: Any) -> None:
    """Mix cues into recordings by PLAN.

    PLAN is a CSV file with the columns file, cue and time_s, and optionally gain_db and output; or a .jsonl file with
    one such object per line. Each line adds one cue to a file. A recording keeps its sample rate, channels and sample
    format (WAV or FLAC; others, such as MP3 and ADPCM, become WAV of 24 bits).
    """
    from cues.batch.mixing import COLUMNS, Mix
    from cues.batch.plan import read_plan

    recordings, pack_state = read_plan(plan, list(bank_of(pack))), _pack_state(pack)
    tasks = [
        Mix(Source.at(Path(planned.file)), planned.cues, str(out / planned.output), *pack_state)
        for planned in recordings
    ]
    table = out / "mixed.csv"
    run = _rewrite(tasks, table, COLUMNS, how)
    _finish(run, table, {}, [f"recordings in {harmless(str(out))}"], how)


def _pack_state(pack: Path | None) -> tuple[str | None, str]:
    """Folder of the pack, and a stamp that changes with its `pack.toml` and the sounds that it names."""
    from cues.library.pack import PACK_FILE, find_pack_dir, read_pack

    folder = find_pack_dir(pack)
    if folder is None:
        return None, ""
    sounds = {path for cue in read_pack(folder).cues.values() for path in (cue.file, *cue.phrases) if path is not None}
    files = [path for path in (folder / PACK_FILE, *sorted(sounds)) if path.is_file()]
    states = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return str(folder.resolve()), repr(states)


def _base_of(place: str) -> Path:
    """The folder that names of results are relative to: `place` itself, or the part of a pattern without wildcards."""
    path = Path(place)
    if path.exists():
        return path if path.is_dir() else path.parent
    plain = takewhile(lambda part: not glob.has_magic(part), path.parent.parts)
    return Path(*plain)


def _rewrite(tasks: Sequence[Any], table: Path, columns: Sequence[str], how: Mapping[str, Any]) -> Run:
    """A run whose tasks write recordings, none over one that is read; temporary files of killed workers are deleted."""
    from cues.batch.mixing import sweep

    read = {Path(task.file).resolve() for task in tasks}
    for task in tasks:
        if Path(task.output).resolve() in read:
            raise CueError(f"{task.output} would be written over a recording; name another folder with --out")
    sweep(task.output for task in tasks)
    try:
        return _run(tasks, table, columns, how, still_good=lambda row: Path(row["output"]).is_file())
    finally:
        sweep(task.output for task in tasks)


def _run(tasks: Sequence[Task], table: Path, columns: Sequence[str], how: Mapping[str, Any], **more: Any) -> Run:
    """A run with its progress; `more` is for `run_batch`."""
    workers, dask = how["workers"], how["dask"]
    if workers is not None and dask is not None:
        raise click.UsageError("--workers is for this machine, --dask for a cluster: give one of them")
    if dask is None and not has_object_file():
        click.echo("the first long recording compiles the kernels, once on this machine", err=True)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    parts = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        files = bar.add_task("files", total=len(tasks))
        progress = lambda done: bar.update(files, completed=done)  # noqa: E731
        settings = {"workers": workers, "dask": dask, "fresh": how["fresh"], "progress": progress}
        return run_batch(tasks, table, columns, **settings, **more)


def _finish(run: Run, table: Path, summary: dict[str, Any], lines: Sequence[str], how: Mapping[str, Any]) -> None:
    failed = run.failed
    if how["as_json"]:
        counts = {"table": str(table), "files": len(run.rows), "resumed": run.resumed, "failed": failed}
        print_json({**counts, **summary})
    else:
        out = console()
        all_earlier = run.resumed == len(run.rows)
        earlier = f", {'all' if all_earlier else run.resumed} of them in an earlier run" if run.resumed else ""
        out.print(f"{len(run.rows) - len(failed)} of {len(run.rows)} done{earlier}: {harmless(str(table))}")
        if all_earlier and how["dask"] is not None:
            out.print("nothing left to do; the cluster was not used")
        for line in lines:
            out.print(line)
        err = console(stderr=True)
        for row in failed[:_FAILURES_TOLD]:
            err.print(f"failed: {harmless(row['file'])}: {harmless(row['error'])}", overflow="fold")
        if len(failed) > _FAILURES_TOLD:
            err.print(f"… and {len(failed) - _FAILURES_TOLD} more, see the table")
    sys.exit(1 if failed else 0)
