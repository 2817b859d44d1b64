"""A script for `ReplayServer` that answers on OpenAI's `/responses`, as the Agents SDK asks by default."""

import json
from itertools import count

from stream.replay.recording import Recording


class ResponsesScript:
    """Steps of `stream.replay.behavior` for each round of a turn: `["say", text]` and `["call", name, arguments]`."""

    as_recorded, pages, paths = False, {}, ["/responses"]

    def __init__(self, turns):
        self._turns = turns

    def answer(self, _path, request):
        results = [item for item in request["input"] if item.get("type") == "function_call_output"]
        steps = self._turns[min(len(results), len(self._turns) - 1)]
        body = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events(steps))
        return Recording(name="own", kind="sse", body=body)


def events(steps):
    """The events of an answer."""
    numbers = count()
    head = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": "m", "tools": []}
    head |= {"parallel_tool_calls": True, "tool_choice": "auto"}
    items = []
    for place, step in enumerate(steps):
        item, deltas = text_of(*step[1:]) if step[0] == "say" else call_of(place, *step[1:])
        where = {"output_index": place, "item_id": item["id"]}
        begun = {**item, "status": "in_progress", **({"content": []} if "content" in item else {"arguments": ""})}
        items += [{"type": "response.output_item.added", "output_index": place, "item": begun}]
        items += [{**where, **delta} for delta in deltas]
        items += [{"type": "response.output_item.done", "output_index": place, "item": item}]
    output = [event["item"] for event in items if event["type"] == "response.output_item.done"]
    first = {"type": "response.created", "response": {**head, "status": "in_progress", "output": []}}
    last = {"type": "response.completed", "response": {**head, "status": "completed", "output": output}}
    return [{**event, "sequence_number": next(numbers)} for event in (first, *items, last)]


def text_of(text):
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    return item, [{"type": "response.output_text.delta", "content_index": 0, "delta": text, "logprobs": []}]


def call_of(place, name, arguments):
    text = json.dumps(arguments)
    item = {"id": f"fc_{place}", "type": "function_call", "call_id": f"call_{place}", "name": name}
    delta = {"type": "response.function_call_arguments.delta", "delta": text}
    return {**item, "arguments": text, "status": "completed"}, [delta]
