"""What every part above a connection takes and is: something to chat with. So the parts nest in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from stream.services.chat_request import Message
    from stream.services.notices import ServiceEvent
    from stream.services.tool import ToolLike

__all__ = ["ChatSource", "last_question"]


class ChatSource(Protocol):
    """A `Connection`, or a part that stands in front of one."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    def chat(
        self, messages: Sequence[Message], *, tools: Iterable[ToolLike] | None = None, **fields: Any
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer; `fields` are those of `Connection.chat`."""
        ...


def last_question(messages: Sequence[Message]) -> str:
    """The text of the last user message; `""` if there is none.

    Examples
    --------
    >>> last_question([{"role": "user", "content": "What time is it?"}, {"role": "tool", "content": "10:00"}])
    'What time is it?'
    """
    for message in reversed(messages):
        if message.get("role") == "user":
            content = message.get("content") or ""
            if isinstance(content, str):
                return content
            return " ".join(part["text"] for part in content if part.get("type") == "text")
    return ""
