"""The interface of all sources: a connection, and everything that wraps one, so that they nest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

from stream.services.models import ModelCapabilities

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

    from stream.events import ServiceEvent
    from stream.services.chat_request import Message, Think
    from stream.services.tool import ToolLike

__all__ = ["ChatFields", "ChatSource", "Wrapper"]


class ChatFields(TypedDict, total=False):
    """Options of a request beside messages and tools, as documented in `Connection.chat`."""

    tool_choice: str | Mapping[str, Any] | None
    parallel_tool_calls: bool | None
    format: str | Mapping[str, Any] | None
    response_format: Mapping[str, Any] | None
    temperature: float | None
    think: Think | None
    extra: Mapping[str, Any] | None


class ChatSource(Protocol):
    """A `Connection`, or an object that wraps one."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    def chat(
        self, messages: Sequence[Message], *, tools: Iterable[ToolLike] | None = None, **fields: Unpack[ChatFields]
    ) -> AsyncGenerator[ServiceEvent, None]:
        """The events of one answer."""
        ...


class Wrapper:
    """Base class of the sources that ask another source."""

    def __init__(self, source: ChatSource) -> None:
        self._source = source

    @property
    def model(self) -> str:
        """The model's name."""
        return self._source.model

    @property
    def capabilities(self) -> ModelCapabilities:
        """The model's capabilities with tools; the safe default if the source has none."""
        known: ModelCapabilities | None = getattr(self._source, "capabilities", None)
        return known or ModelCapabilities()
