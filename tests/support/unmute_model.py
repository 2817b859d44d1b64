"""The model of an unmute on this machine: its streams, step by step, and a script for the replay server.

The streams are those of an Ollama that runs the tools itself: text, a call in fragments, the pause of the tool, and
more text.
"""

import json
from dataclasses import dataclass, field
from typing import ClassVar

from stream.replay.recording import Recording

BEFORE = "Let me look that up in the big book of birds."
AFTER = "Here it is."
ARGUMENTS = '{"path": "birds.txt"}'
CALL_AT_S, TOOL_S, WORD_EVERY_S = 0.9, 1.2, 0.05


def said(text, at_s=0.0):
    """Steps of a stream, each its time and its delta: text as a model writes it."""
    return [(at_s + n * WORD_EVERY_S, {"content": f"{word} "}) for n, word in enumerate(text.split())]


def called(at_s=CALL_AT_S, name="read_file", arguments=ARGUMENTS, index=0):
    """Steps of a stream: a call in fragments."""
    head = {"id": f"call_1a2b3c4{index}", "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [head, *({"function": {"arguments": arguments[n : n + 4]}} for n in range(0, len(arguments), 4))]
    return [(at_s + 0.02 * n, {"tool_calls": [{"index": index, **piece}]}) for n, piece in enumerate(pieces)]


def recording(steps, *, finish="stop", end_s=None):
    """A model's stream with its times; where `finish` is None, the connection breaks after the last step."""
    chunks = [(at_s, {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for at_s, delta in steps]
    chunks.insert(1, (chunks[0][0], {"choices": []}))  # Some servers send these to keep the line alive.
    last_s = steps[-1][0] if end_s is None else end_s
    if finish is not None:
        chunks.append((last_s, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
    pieces = [(at_s, f"data: {json.dumps({'id': 'x', 'model': 'loopback', **chunk})}\n\n") for at_s, chunk in chunks]
    if finish is not None:
        pieces.append((last_s, "data: [DONE]\n\n"))
    body = "".join(piece for _, piece in pieces).encode()
    reads = tuple((len(piece), at_s * 1000.0) for at_s, piece in pieces)
    return Recording(name="answer", kind="sse", body=body, reads=reads, complete=finish is not None)


def answer(before=BEFORE, after=AFTER, *, arguments=ARGUMENTS, call_at_s=CALL_AT_S, tool_s=TOOL_S):
    """A stream with a call in mid-sentence."""
    end_s = call_at_s + tool_s
    steps = [*said(before), *called(call_at_s, arguments=arguments), *said(after, end_s)]
    return recording(sorted(steps, key=lambda step: step[0]), end_s=end_s + 1.0)


def refusal(status, message):
    """An error in the place of a stream."""
    body = json.dumps({"error": {"message": message}}).encode()
    headers = {"content-type": "application/json"}
    return Recording(name="refusal", kind="sse", body=body, status=status, headers=headers)


@dataclass
class Model:
    """A script for the replay server: the same answer to every question.

    Attributes
    ----------
    says : the answer.
    without_tools : the answer to a request without tools, if it is another one.
    requests : the bodies that came.
    """

    says: Recording
    without_tools: Recording | None = None
    requests: list = field(default_factory=list)
    as_recorded: ClassVar = True
    pages: ClassVar = {}

    def answer(self, _path, request):
        self.requests.append(request)
        return self.without_tools if self.without_tools and "tools" not in request else self.says
