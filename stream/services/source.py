"""The interface of all sources: a connection, and everything that wraps one, so that they nest."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Protocol, Unpack

from stream.events import ServiceEvent
from stream.services.chat_request import ChatFields, Message
from stream.services.models import ModelCapabilities
from stream.services.tool import Tool, ToolLike

__all__ = ["ChatSource", "Wrapper", "with_known"]


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


def with_known(fields: ChatFields, tools: Iterable[Tool]) -> ChatFields:
    """The fields with the names of `tools` as known: the request does not offer all, but the model may call one."""
    names = (*fields.get("known_tools", ()), *(tool.name for tool in tools))
    return {**fields, "known_tools": tuple(dict.fromkeys(names))} if names else fields
