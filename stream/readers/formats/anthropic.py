"""A reader for Anthropic's Messages: blocks that begin, grow and end."""

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from stream.events import Usage
from stream.readers.calls.item_calls import ItemCall
from stream.readers.calls.values import fields_of, name_of, text_of
from stream.readers.formats.block_reader import BlockReader
from stream.readers.formats.message_reader import usage_of
from stream.readers.options import MOST_KEPT, Tools

__all__ = ["AnthropicReader"]

_TEXTS = {"text": ("text", "text"), "thinking": ("reasoning", "thinking")}  # blocks: what it is, and its field
_TASKS = ("server_tool_use", "mcp_tool_use")
_RESULT = "_tool_result"


class AnthropicReader(BlockReader):
    """Reads the events of `/v1/messages`; see `MessageReader` for the parameters.

    Examples
    --------
    >>> reader = AnthropicReader()
    >>> block = {"type": "tool_use", "id": "t", "name": "lock", "input": {}}
    >>> reader.feed({"type": "content_block_start", "index": 0, "content_block": block})
    [ToolCallStart(tool_name='lock', tool_call_id='t', index=0)]
    >>> reader.feed({"type": "content_block_stop", "index": 0})
    [ToolCallEnd(tool_name='lock', tool_call_id='t', index=0, arguments_json='{}', status='ok')]
    """

    EVENTS: ClassVar[Mapping[str, str]] = {
        "message_start": "_message_start",
        "content_block_start": "_block_start",
        "content_block_delta": "_block_delta",
        "content_block_stop": "_block_stop",
        "message_delta": "_message_delta",
        "error": "_fail_with",
    }

    def __init__(self, tools: Tools = None, **options: Any) -> None:
        super().__init__(tools, **options)
        self._blocks: dict[Hashable, str] = {}  # types of the open blocks
        self._open: dict[Hashable, ItemCall] = {}
        self._prompt_tokens: int | None = None

    def _message_start(self, event: Mapping[str, Any]) -> None:
        """Begin a message; a proxy may send a second one in the middle of the first."""
        self._end_round(was_cut=True)
        self._blocks, self._open, self._last_finish = {}, {}, None
        usage = usage_of(fields_of(event.get("message")).get("usage"), "input_tokens", "", "")
        self._prompt_tokens = usage.prompt_tokens if usage else None

    def _block_start(self, event: Mapping[str, Any]) -> None:
        index, block = _index(event), fields_of(event.get("content_block"))
        kind = text_of(block.get("type"))
        if len(self._blocks) > MOST_KEPT:
            self._blocks.clear()
            self._open.clear()
        self._blocks[index] = name_of(kind)
        if kind in _TEXTS:
            what, field = _TEXTS[kind]
            self._pass_on(what, block.get(field))
        elif kind == "tool_use":
            self._open[index] = call = self._items.start(block.get("id"), block.get("name"))
            call.given = block.get("input")
        elif kind in _TASKS:
            self._task_begins(block.get("id"), block.get("name"))
        elif kind.endswith(_RESULT):
            fault = text_of(fields_of(block.get("content")).get("type")).endswith("_error")
            self._task_ends(block.get("tool_use_id"), failed=fault or block.get("is_error") is True)

    def _block_delta(self, event: Mapping[str, Any]) -> None:
        index, delta = _index(event), fields_of(event.get("delta"))
        kind, piece = self._blocks.get(index, "text"), text_of(delta.get("type")).removesuffix("_delta")
        if kind in _TEXTS and piece in _TEXTS:  # LiteLLM leaves out a block's beginning, or names the wrong kind there
            what, field = _TEXTS[piece]
            self._pass_on(what, delta.get(field))
        elif kind == "tool_use" and delta.get("type") == "input_json_delta":
            self._items.add(self._open[index], delta.get("partial_json"))

    def _block_stop(self, event: Mapping[str, Any]) -> None:
        index = _index(event)
        self._blocks.pop(index, None)
        call = self._open.pop(index, None)
        if call is not None:
            self._items.end(call)

    def _message_delta(self, event: Mapping[str, Any]) -> None:
        reason = fields_of(event.get("delta")).get("stop_reason")
        if isinstance(reason, str) and reason:
            sent = usage_of(event.get("usage"), "input_tokens", "output_tokens", "") or Usage()
            prompt = self._prompt_tokens if sent.prompt_tokens is None else sent.prompt_tokens
            used = Usage(prompt_tokens=prompt, completion_tokens=sent.completion_tokens)
            self._finish(reason, None if used == Usage() else used)


def _index(event: Mapping[str, Any]) -> int | None:
    index = event.get("index")
    return index if isinstance(index, int) else None
