"""Ordinary text must come out unaltered: 10 MB of prose, code and markdown, and the calls that were seen in it.

    python -m bench.stream_prose [--megabytes 10] [--seed 1]

The corpus is what is installed beside Python: documentation, sources, markup and licences of the standard library and
of packages, in an order that the seed gives. Files about the formats of calls are left out: they are no ordinary text.
With declared tools no call may be found; without, each is listed with the text around it.
"""

from __future__ import annotations

import argparse
import random
import re
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from stream import TextDelta, TextReader, ToolCallEnd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream import Event

SUFFIXES = {".py", ".md", ".rst", ".txt", ".html", ".js", ".css", ".c", ".h", ".toml", ".pyi", ".tex", ".csv", ""}
TOOLS = ["get_weather", "set_timer", "list_directory", "web_search", "memory_tool", "end_conversation"]
# What only texts about language models hold.
LEFT_OUT = re.compile(r"<\|[a-zA-Z_]+\|>|</?tool_call|\[/?TOOL_|</s>|</?think>|<end_of_turn>|tool_calls|<function=")
SMALLEST, LARGEST = 2_000, 200_000


def corpus(size: int, seed: int) -> Iterator[tuple[Path, str]]:
    """Yield files and their text until there is enough of it."""
    paths = sysconfig.get_paths()
    files = sorted(
        path
        for folder in {paths["stdlib"], paths["purelib"]}
        for path in Path(folder).rglob("*")
        if path.suffix in SUFFIXES and path.is_file() and SMALLEST <= path.stat().st_size <= LARGEST
    )
    random.Random(seed).shuffle(files)
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except ValueError:
            continue
        if LEFT_OUT.search(text) or "\0" in text:
            continue
        yield path, text
        size -= len(text)
        if size <= 0:
            return


def read(text: str, tools: list[str] | None, rng: random.Random) -> list[Event]:
    reader, events, start = TextReader(tools), [], 0
    while start < len(text):
        end = start + rng.choice((1, 3, 5, 8, 40, 400, 4096))
        events += reader.feed(text[start:end])
        start = end
    return events + reader.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    chars = files = altered = invented = listed = 0
    for path, text in corpus(int(options.megabytes * 1e6), options.seed):
        files, chars = files + 1, chars + len(text)
        for tools in (TOOLS, None):
            events = read(text, tools, rng)
            calls = [event for event in events if isinstance(event, ToolCallEnd)]
            same = "".join(event.text for event in events if isinstance(event, TextDelta)) == text
            if tools and (calls or not same):
                invented, altered = invented + len(calls), altered + 1
                print(f"altered: {path} {calls[:1]}")
            elif not tools and calls:
                listed += len(calls)
                print(f"without tools: {path}: {[(call.tool_name, call.status) for call in calls][:6]}")
            elif not tools and not same:
                altered += 1
                print(f"altered without tools: {path}")
    print(f"{chars} characters of {files} files: {invented} invented calls and {altered} altered files with declared "
          f"tools, {listed} calls without")  # fmt: skip
    return 1 if altered else 0


if __name__ == "__main__":
    raise SystemExit(main())
