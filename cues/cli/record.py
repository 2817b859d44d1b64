"""`cues record`: record the stream of a model server, to inspect it, replay it, or report a bug."""

import json
from pathlib import Path
from typing import Any

import click

from cues.cli import _options
from cues.cli._terminal import harmless
from stream.errors import StreamError
from stream.replay.recorder import record
from stream.replay.recording import ENDINGS, SIDE_ENDINGS, save_recording

__all__ = ["command"]


@click.command()
@click.argument("url", callback=_options.checked_url)
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
    help="FILE.sse, .ndjson or .json; an existing recording is never overwritten.",
)
def command(
    *,
    url: str,
    model: str | None,
    prompt: str | None,
    tools: Path | None,
    body: Path | None,
    headers: tuple[str, ...],
    output: Path,
) -> None:
    """Record the answer of the server at URL: …/v1/chat/completions, Ollama's …/api/chat, or any other with --body.

    Writes the bytes as received, the request (.request.json), and the status and the time of each read (.http.json).
    Request headers are never recorded, response headers only if they hold no secret. Keys that the server quotes
    become asterisks.
    """
    _check_new(output)
    request = _json_file(body) if body else _request(model, prompt, tools)
    recording = record(url, request, headers=dict(_header(text) for text in headers))
    save_recording(recording, output)
    reads = "one read" if len(recording.reads) == 1 else f"{len(recording.reads)} reads"
    click.echo(f"{harmless(str(output))}: HTTP {recording.status}, {len(recording.body)} bytes in {reads}")
    if recording.status >= 400:
        raise StreamError(f"the server answered HTTP {recording.status}; its answer is in {output}")


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
    except (OSError, ValueError, RecursionError) as error:
        raise click.UsageError(f"{str(path)!r} is not JSON: {harmless(str(error))}") from error


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.UsageError("a --header looks like 'Name: value'")  # Do not print the value: it may be secret.
    return name.strip(), value.strip()
