"""Answers with a call that is written as text, a server on loopback that gives them, and what a client has of them."""

import json
from contextlib import asynccontextmanager

import httpx2
import openai

from tests.support.model_server import raw_server

DIM = '<tool_call>{"name": "dim", "arguments": {"percent": 40}}</tool_call>'
QUESTION = {
    "model": "m",
    "messages": [{"role": "user", "content": "?"}],
    "tools": [{"type": "function", "function": {"name": "dim"}}],
}


def event(content=None, reason=None):
    """One chunk of a stream."""
    choice = {"index": 0, "delta": {"content": content} if content else {}, "finish_reason": reason}
    return b"data: %b\n\n" % json.dumps({"choices": [choice]}).encode()


DONE = b"data: [DONE]\n\n"
STREAM = event("Dark. " + DIM[:20]) + event(DIM[20:]) + event(None, "stop")
REPAIRED = ("Dark.", "", [["dim", '{"percent": 40}']], "tool_calls", False)
"""What a client has of `STREAM`, as `summed` gives it."""

MESSAGE = {"role": "assistant", "content": "Dark. " + DIM}
WHOLE = json.dumps({
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
}).encode()  # fmt: skip


def http_answer(body, status=200, kind="text/event-stream", length=None, **headers):
    """An answer as bytes; `length` is what it promises, if that is not what it has."""
    headers = {"content-type": kind, "content-length": len(body) if length is None else length, **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} X\r\nconnection: close\r\n{lines}\r\n".encode() + body


@asynccontextmanager
async def answers(*bodies):
    """The address of a server that gives each request the next answer, and the requests that it got."""
    left, requests = list(bodies), []

    async def answer(head, reader, writer):
        sizes = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        requests.append((head.decode(), await reader.readexactly(int(sizes[0])) if sizes else b""))
        writer.write(left.pop(0))
        await writer.drain()

    async with raw_server(answer) as url:
        yield url, requests


def summed(chunks, *, failed=False):
    """What a plain client has of a stream: text, thoughts, calls, the last reason, and whether it failed."""
    choices = [choice for one in chunks for choice in one.choices]
    text, thoughts, calls, reason = "", "", {}, None
    for choice in choices:
        text += choice.delta.content or ""
        thoughts += getattr(choice.delta, "reasoning_content", "") or getattr(choice.delta, "reasoning", "") or ""
        for call in choice.delta.tool_calls or ():
            calls.setdefault(call.index, [call.function.name, ""])[1] += call.function.arguments or ""
        reason = choice.finish_reason or reason
    return text.strip(), thoughts.strip(), [*calls.values()], reason, failed


async def answered(source):
    """`summed`, of an asynchronous stream that may fail."""
    chunks = []
    try:
        async for one in source:
            chunks.append(one)  # noqa: PERF401  (what came before a failure counts)
    except (openai.APIError, httpx2.HTTPError):
        return summed(chunks, failed=True)
    return summed(chunks)
