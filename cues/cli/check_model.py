"""`cues check-model`: whether a live model calls tools, in which form, how soon, and whether it uses the results."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

import stream
from cues.cli import _options
from cues.cli._records import counted, print_json
from cues.cli._terminal import harmless

if TYPE_CHECKING:
    from stream.services.probe import ProbeReport

__all__ = ["command"]


@click.command()
@_options.server
@_options.json_output
def command(*, as_json: bool, **server: Any) -> None:
    """Ask a live model a question that needs a tool and one that does not, and report the result.

    Without --base-url and --model, OLLAMA_LOCAL_BASE (else OLLAMA_HOST) and ACTOR_MODEL name the server and the model.
    The exit code is 1 if the model made no valid call, gave no answer after the results, or did not answer the plain
    question without a call; the first line says which. The last lines are an entry for a file of model capabilities.
    """
    report = asyncio.run(_check(server))
    if as_json:
        # Without an answer there is no entry to suggest.
        print_json(report.as_dict() | ({"suggestion": None} if report.silent else {}))
    else:
        click.echo(_text(report))
    if not report.passed:
        sys.exit(1)


async def _check(server: Mapping[str, Any]) -> ProbeReport:
    from stream.services.probe import Observer, probe

    observer = Observer()
    async with stream.connect(**server, tap=observer.tap) as connection:
        await connection.learn()
        return await probe(connection, observer)


def _text(report: ProbeReport) -> str:
    verdict = "tool calls work" if report.passed else f"the check failed: {'; '.join(report.faults)}"
    head = harmless(f"{report.model} ({report.api}): {verdict}")
    if report.silent:
        return head
    form = {"structured": "structured, parsed by the server", "none": "none came"}
    rows = [
        ("calls", form.get(report.form, f"raw text ({report.dialect}), parsed here")),
        ("number", f"{report.calls}, duplicates {report.duplicates}, invalid {sum(report.invalid.values())}"),
        ("ids", report.ids),
        ("order", " → ".join(report.order) or "nothing"),
        ("name known", _ms(report.name_ms)),
        ("call complete", _ms(report.call_ms)),
        ("answer begins", _ms(report.text_ms)),
        ("answer", "followed the results" if report.answered else "none after the results"),
        ("without tools", _plain(report)),
    ]
    if report.server_too_old:
        rows.append(("server", report.server_too_old))
    if report.tool_refused:
        rows.append(("tools", "not offered: by the server or the table, this model does not support tools"))
    if report.failure:
        rows.append(("failure", report.failure))
    lines = [f"{name:>14}  {harmless(value)}" for name, value in rows]
    return "\n".join([head, "", *lines, "", report.suggestion.rstrip()])


def _plain(report: ProbeReport) -> str:
    answer = "answered" if report.plain_answered else "no answer"
    if not report.plain_calls:
        return answer
    return f"{answer}, and {counted(report.plain_calls, 'call')} where no tools were offered"


def _ms(value: float | None) -> str:
    return "never" if value is None else f"after {value:.0f} ms"
