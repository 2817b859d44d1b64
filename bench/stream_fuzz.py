"""A million streams from the grammar, broken off, spoilt and mixed up: the readers must keep their promises on each.

    python -m bench.stream_fuzz [--streams 1000000] [--seed 1]

For each stream: nothing raises, every start has its end, and the outcome is the same whole and in random chunks. A
stream that is intact must give its calls and its text; one that breaks off must speak none of the arguments.
Last full run: seeds 8001 … 8005 and 8011 … 8015, 100,000 streams each, 1,000,000 in all: no broken promise, 240 s on
two cores.

The first streams that break a promise are printed; the exit code says whether there were any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.fuzzing import run
from stream import TextReader
from stream.readers.text.dialect_table import ROWS
from tests.stream.comparing import as_case_events, matches, normalise, random_splits
from tests.stream.grammar import PROSE, SECRET, make_member, make_soup, make_stream

if TYPE_CHECKING:
    import random

FRAGMENTS = [
    *(text for row in ROWS for text in row.markers + row.closers), *PROSE, *"`\n \"':,;{}[]()<|é\\\x00",
    '{"name": "f", "arguments": {"a": 1}}', '{"name": "f"', '{"a": 1}', "[f(a=1)]", "f(", "name", "</think>",
    "<parameter=a>", "</parameter>", '<invoke name="f">', "<arg_key>k</arg_key>", "[ARGS]", "functions.f:0",
    "to=functions.f ", "analysis", "commentary ", "json", "assistantfinal", "call:f{", "<escape>",
    "```json\n", "```\n", '"""',
    "<x:tool_call>", "</x:tool_call>", '<x:invoke name="f">', "</x:invoke>", "<x_arg_key>", "<tool_calls:x>",
    "]<]x[>[<tool_call>", "]<]x[>[", "<|x_call:start|>", "f\n<|x:start|>k<|x:value|>", "<|x_call:end|>",
    "<|x:begin_tool_call:x|>", "<|begin_tool_name|>", "<|end_tool_name|>", '<|open|>call tool="f"<|sep|>',
    "<|close|>call<|sep|>", "<|content_invoke_tool_json|>", "<x:think>", "</x:think>", "<x_think>", "</thought>",
    "```tool_code\n", "print(f())", "{type:f}", "functions.f(", "f json {", " to=self", "<co: 0>",
    '{"tool": "f", "args": {', '{"thought": "x", "tool_calls": [',
]  # fmt: skip
FINISHES = ("stop", "length", None)


def read(chunks: list[str], finish: str | None, tools: list[str] | None, start: str) -> list[dict]:
    reader = TextReader(tools, start)
    events = []
    for chunk in chunks:
        events += reader.feed(chunk)
    return as_case_events(events + reader.close(finish))


def spoil(text: str, rng: random.Random) -> str:
    """The text with a few of its characters doubled, lost or replaced."""
    chars = list(text)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(chars))
        chars[at] = rng.choice(("", chars[at] * 2, rng.choice(FRAGMENTS)))
    return "".join(chars)


def broken_promise(rng: random.Random, kind: str = "") -> str | None:
    """Make one stream, of a kind, and read it; return what is wrong."""
    kind = kind or rng.choice(("intact", "member", "cut", "spoilt", "soup"))
    text, expected = make_member(rng) if kind == "member" or rng.random() < 0.3 else make_stream(rng)
    finish, tools, start = "stop", None, "text"
    if kind not in ("intact", "member"):
        finish, tools = rng.choice(FINISHES), rng.choice((None, None, ["f"], ["f", "name"]))
        start = rng.choice(("text", "text", "text", "reasoning")) if kind == "soup" else "text"
    if kind == "cut":
        text = text[: rng.randint(0, len(text))]
    elif kind == "spoilt":
        text = spoil(text, rng)
    elif kind == "soup":
        text = make_soup(rng, FRAGMENTS)
    try:
        whole = read([text], finish, tools, start)
        (chunks,) = random_splits(text, rng, 1)
        pieces = read(chunks, finish, tools, start)
    except Exception as error:  # noqa: BLE001  (whatever it is, it is a finding)
        return f"{kind} {finish} {tools} {start} {text!r}: {type(error).__name__} {error}"
    spoken = "".join(event["text"] for event in whole if event["type"] == "text")
    if normalise(whole, reasoning=kind == "cut") != normalise(pieces, reasoning=kind == "cut"):
        return f"{kind} {finish} {tools} {start} {text!r}: differs in chunks {chunks}"
    if kind in ("intact", "member") and not matches({"expect": expected}, whole):
        return f"{kind} {text!r}: {whole}"
    if kind == "cut" and tools is None and SECRET in spoken:
        return f"cut {finish} {text!r}: spoken {spoken!r}"
    return None


if __name__ == "__main__":
    raise SystemExit(run(__doc__, broken_promise))
