"""A coverage-guided search for bytes that break a promise, by atheris (libFuzzer).

    pip install atheris   # Python 3.11 to 3.13
    python -m bench.coverage_fuzz readers|text|packs|audio [--seconds 600] [--corpus FOLDER]

The corpus begins with the recordings and the cases of the tests, and grows in `--corpus` from run to run. An input that
breaks a promise ends the run with a traceback and is kept beside it as `crash-…`; it becomes a case of the tests.

Last runs: 61,000 inputs to the readers and 63,000 of audio, nothing found; 23,000 texts, one found: the place where a
header that is too long was given up (`test_bounds.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import atheris  # type: ignore[import-not-found,unused-ignore]

with atheris.instrument_imports(include=["cues.library", "cues.synthesis", "stream.readers", "stream.words"]):
    import soundfile

    import cues
    from bench.stream_formats_fuzz import fault_in, read
    from cues.cli.new_pack import command as new_pack
    from cues.library.audiofile import decoded
    from cues.library.pack import PACK_FILE, read_pack
    from stream import TextReader
    from tests.stream.comparing import load
    from tests.stream.providers import EXPECTED, data_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST = 2048  # bytes
CUTS = 64


def readers(data: bytes) -> None:
    """Bytes of any format: the whole and its pieces give the same events, which keep their promises."""
    size = len(data) // CUTS + 1
    whole, in_pieces = read([data]), read([data[at : at + size] for at in range(0, len(data), size)])
    assert _joined(whole) == _joined(in_pieces)
    assert fault_in(whole) is None


def text(data: bytes) -> None:
    """A model's text with calls in it, in the same way."""
    characters = data.decode(errors="replace")

    def events(parts: list[str]) -> list[object]:
        reader = TextReader(["get_weather", "f"])
        return [event for part in parts for event in reader.feed(part)] + reader.close()

    whole, single = events([characters]), events(list(characters))
    assert _joined(whole) == _joined(single)
    assert fault_in(whole) is None


def _joined(events: list[object]) -> list[object]:
    """The kinds of the events, and their texts; adjacent pieces are put together."""
    joined: list[list[object]] = []
    for event in events:
        kind, what = type(event).__name__, getattr(event, "text", None)
        if kind.endswith("Delta") and joined and joined[-1][0] == kind:
            joined[-1][1] = f"{joined[-1][1]}{what}"
        else:
            joined.append([kind, what or getattr(event, "arguments_json", None)])
    return joined


def packs(data: bytes) -> None:
    """A `pack.toml`: what is wrong is a `CueError`, or is collected."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / PACK_FILE).write_bytes(data)
        try:
            read_pack(Path(folder), [])
            cues.load_bank(pack_dir=folder)
        except cues.CueError:
            pass


def audio(data: bytes) -> None:
    """A file of sound: what is wrong is a `CueError`."""
    try:
        samples, _ = decoded(data, "fuzzed.wav")
    except cues.CueError:
        return
    assert samples.ndim == 1


TARGETS = {"readers": readers, "text": text, "packs": packs, "audio": audio}


def seeds(target: str) -> Iterator[bytes]:
    """Inputs that the search begins with."""
    if target == "readers":
        yield from (data_of(name)[:LONGEST] for name in EXPECTED)
        for case in load("openai_chunks"):
            yield b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in case["input"])
    elif target == "text":
        yield from ("".join(case["input"]).encode() for name in ("content", "content_extra") for case in load(name))
    elif target == "packs":
        with tempfile.TemporaryDirectory() as folder:
            new_pack([f"{folder}/pack"], standalone_mode=False)
            yield (Path(folder) / "pack" / PACK_FILE).read_bytes()
    else:
        sound = cues.load_bank()["tool_call"].samples[:400]
        for name in ("WAV", "FLAC", "OGG", "AIFF", "MP3"):
            with tempfile.NamedTemporaryFile(suffix=f".{name.lower()}") as file:
                soundfile.write(file.name, sound, 24000, format=name)
                yield Path(file.name).read_bytes()


def fuzz(target: str, seconds: int, corpus: Path) -> None:
    """Search until the time is up; libFuzzer ends the process."""
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(target)):
        (corpus / f"seed-{number}").write_bytes(seed)
    check: Callable[[bytes], None] = TARGETS[target]
    atheris.Setup(
        [sys.argv[0], f"-max_total_time={seconds}", f"-max_len={LONGEST}", "-print_final_stats=1", str(corpus)], check
    )
    atheris.Fuzz()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=list(TARGETS))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--corpus", type=Path)
    options = parser.parse_args()
    fuzz(options.target, options.seconds, options.corpus or Path(tempfile.mkdtemp()) / options.target)
