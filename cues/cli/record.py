"""`cues record`: record the stream of a model server, to inspect it, replay it, or report a bug."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from cues.cli import _options
from cues.cli._terminal import harmless
from stream.errors import StreamError
from stream.replay.recorder import record, record_session
from stream.replay.recording import ENDINGS, SIDE_ENDINGS, save_recording

if TYPE_CHECKING:
    from pathlib import Path

    from stream.replay.recording import Recording

__all__ = ["command"]


@click.command()
@click.argument("url", type=_options.ServerUrl())
@click.option(
    "--api",
    type=click.Choice(["chat", "responses", "ollama", "anthropic", "gemini", "realtime", "live"]),
    help="Ask this API, with its own path, body and key; URL is the server's address then.",
)
@click.option("--model", help="The model's name on the server (needed unless --body is given).")
@click.option("--prompt", help="The user's message.")
@click.option("--tools", type=_options.EXISTING_FILE, help="JSON file with tool definitions.")
@click.option("--body", type=_options.EXISTING_FILE, help="JSON file with the whole request.")
@click.option("--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="A request header; not recorded.")
@click.option(
    "-o",
    "--output",
    "--out",
    type=_options.OutFile(*ENDINGS),
    required=True,
    help="FILE.sse, .ndjson, .json or .jsonl; an existing recording is never overwritten.",
)
def command(
    *,
    url: str,
    api: str | None,
    model: str | None,
    prompt: str | None,
    tools: Path | None,
    body: Path | None,
    headers: tuple[str, ...],
    output: Path,
) -> None:
    """Record the stream of the server at URL (…/v1/chat/completions, or Ollama's …/api/chat; any other with --api).

    Writes the bytes as received, the request (.request.json), and the status and the time of each read (.http.json).
    Request headers are never recorded, response headers only if they hold no secret. With --api, OPENAI_API_KEY,
    ANTHROPIC_API_KEY or GEMINI_API_KEY go to their own hosts. Keys that the server quotes become asterisks.

    The messages of a Realtime or Live session are recorded until its turn is over, one a line (.jsonl).
    """
    _check_new(output)
    given = dict(_header(text) for text in headers)
    if api is None:
        recording = record(url, _json_file(body) if body else _request(model, prompt, tools), headers=given)
    else:
        offered, whole = _json_file(tools) if tools else (), _json_file(body) if body else None
        recording = _recorded(api, url, whole, given, model=model, prompt=prompt, tools=offered)
    save_recording(recording, output)
    reads = "one read" if len(recording.reads) == 1 else f"{len(recording.reads)} reads"
    click.echo(f"{harmless(str(output))}: HTTP {recording.status}, {len(recording.body)} bytes in {reads}")
    if recording.status >= 400:
        raise StreamError(f"the server answered HTTP {recording.status}; its answer is in {output}")


def _recorded(api: str, url: str, body: Any, headers: dict[str, str], **question: Any) -> Recording:
    """The recording of one API's answer; `body` in place of our own, if it is given."""
    from stream.services.raw_requests import SESSIONS, raw_request

    if not question["model"] or not (question["prompt"] or body):
        raise click.UsageError("--api needs --model, and --prompt or --body")
    try:
        asked = raw_request(api, url, **question)
    except (ValueError, TypeError) as error:
        raise click.UsageError(harmless(str(error))) from error
    sent = {**asked.headers, **headers}
    if api in SESSIONS:
        return record_session(asked.url, body or asked.messages, headers=sent)
    return record(asked.url, body or asked.body, headers=sent)


def _check_new(output: Path) -> None:
    """Reject an existing file: a recording cannot be repeated."""
    for ending in (output.suffix, *SIDE_ENDINGS):
        file = output.with_suffix(ending)
        if file.exists():
            raise click.BadParameter(f"{str(file)!r} exists; name another file", param_hint="'--output'")


def _request(model: str | None, prompt: str | None, tools: Path | None) -> dict[str, Any]:
    if not model or not prompt:
        raise click.UsageError("--model and --prompt are needed unless --body gives the whole request")
    request: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt}], "stream": True}
    if tools:
        request["tools"] = _json_file(tools)
    return request


def _json_file(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{str(path)!r} is not JSON: {harmless(str(error))}") from error


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.UsageError("a --header looks like 'Name: value'")  # Do not print the value: it may be secret.
    return name.strip(), value.strip()
