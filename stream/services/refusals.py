"""Refusals of a request because of its tools or of `think`, known by their status and words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from stream.events import StreamFailed

__all__ = ["refused_part"]

STATUSES = frozenset({400, 404, 422, 500, 501})
# As servers word it: tests/stream/services/test_refusals.py has the whole sentences.
WORDS = {
    "tools": re.compile(
        r"does not support (tools|tool use|tool calling|functions?)\b"
        r"|tools?( use| calling|_choice)?[`'\"]? (is|are) not supported"
        r"|enable-auto-tool-choice|tool-call-parser|support tool use|requires --jinja"
        r"|(unsupported|unrecognized|unknown|extra|unexpected)\b.{0,60}\b(tools|tool_choice|functions)\b"
        r"|\b(tools|tool_choice)\b.{0,60}\b(extra|not permitted|not allowed|unexpected)",
        re.IGNORECASE | re.DOTALL,
    ),
    "thinking": re.compile(
        r"does not support (thinking|reasoning)|(thinking|reasoning(_effort)?)[`'\"]? (is|are) not supported"
        r"|(unsupported|unrecognized|unknown|extra|unexpected)\b.{0,60}\b(think|reasoning_effort)\b",
        re.IGNORECASE | re.DOTALL,
    ),
}


def refused_part(failed: StreamFailed, *, tools: bool, thinking: bool = False) -> Literal["tools", "thinking", ""]:
    """The part of a request because of which it was refused, if the request had it; `""` for neither.

    An unknown model, a full context or a wrong schema is no such refusal: the answer to those is another request.

    >>> from stream.events import StreamFailed
    >>> refused_part(StreamFailed("llama2 does not support tools", status=400), tools=True)
    'tools'
    """
    if failed.status not in STATUSES:
        return ""
    if tools and WORDS["tools"].search(failed.message):
        return "tools"
    return "thinking" if thinking and WORDS["thinking"].search(failed.message) else ""
