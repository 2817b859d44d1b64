"""Split a model's text, for Pipecat, into words to speak and calls to run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    FunctionCallsStartedFrame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    LLMThoughtEndFrame,
    LLMThoughtStartFrame,
    LLMThoughtTextFrame,
    MixerControlFrame,
)
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.services.llm_service import FunctionCallFromLLM, LLMService
from pipecat.utils.errors import ErrorCategory

from stream.events import Event, ReasoningDelta, ServiceEvent, StreamFailed, TextDelta, ToolCallEnd, ToolCallStart
from stream.readers.calls.arguments import canonical, fits_types, properties_of, spelled_out
from stream.readers.calls.values import dumps, fields_of
from stream.readers.formats.raw_text import TextReader
from stream.readers.options import Start, Tools, checked_start
from stream.redaction import logged_name
from stream.request_bodies import new_call_id

__all__ = ["CueFrame", "TextGuard"]

logger = logging.getLogger(__name__)


@dataclass
class CueFrame(MixerControlFrame):  # type: ignore[misc]  # the package may be absent where types are checked
    """An event for the mixer: a call, its result, or text that is about to be spoken; `None` is an interruption."""

    event: ServiceEvent | None = None
    ended_call: str | None = None  # id of a call that ended without an outcome
    is_taken: bool = False  # by the mixer

    @property
    def is_interruption(self) -> bool:
        """Whether the turn is over."""
        return self.event is None and self.ended_call is None


class TextGuard:
    """Reads the model's text, one response after the other; `llm` runs the calls in it."""

    def __init__(self, llm: LLMService[Any] | None, tools: Tools, *, is_on: bool, start: Start) -> None:
        self._llm, self._tools, self._is_on, self._start = llm, tools, is_on, checked_start(start)
        self._context: LLMContext | None = None
        # Its calls overtake its text on the way here, so what belongs to a response is noted as it leaves the service.
        self._native: dict[str, tuple[str, str]] = {}
        self._failure = ""
        self._ended: dict[int, tuple[dict[str, tuple[str, str]], str, bool]] = {}  # the same, by the end frame's id
        self.tell: Callable[[CueFrame], Awaitable[None]] | None = None  # of a failure that no frame reports
        self.failure = ""  # of the response that has ended
        self._same: dict[str, str] = {}  # of calls that came as text, too: the service's id, and ours
        self._handlers = {
            "on_before_process_frame": self._before_frame,
            "on_before_push_frame": self._before_push,
            "on_error": self._on_error,
        }
        if llm is not None:
            for event, handler in self._handlers.items():
                llm.add_event_handler(event, handler)
        self._restart()

    def unfollow(self) -> None:
        """Follow the events of the service no more."""
        if self._llm is not None:
            for event, handler in self._handlers.items():
                self._llm.remove_event_handler(event, handler)

    def _restart(self) -> None:
        self._reader: TextReader | None = None
        self._thinks = False
        self._ids: dict[int, str] = {}
        self._recovered: list[FunctionCallFromLLM] = []
        self._nameless: list[Frame] = []
        self._run: set[str] = set()

    # The service's events.

    def _before_frame(self, _: Any, frame: Frame) -> None:
        if isinstance(frame, LLMContextFrame):
            self._context = frame.context

    def _before_push(self, _: Any, frame: Frame) -> None:
        match frame:
            case LLMFullResponseStartFrame():
                self._native, self._failure = {}, ""
            case FunctionCallsStartedFrame():
                self._native |= {call.tool_call_id: _said(call) for call in frame.function_calls}
            case LLMFullResponseEndFrame():
                task = asyncio.current_task()
                is_cut = task is not None and task.cancelling() > 0  # by an interruption, whose frame comes later
                self._ended[frame.id] = self._native, "" if self._is_live else self._failure, is_cut
                self._failure = ""

    @property
    def _is_live(self) -> bool:
        """Whether the model speaks by itself. Its service may report a failure after the response, or never end it."""
        return self._llm is not None and bool(self._llm.service_metadata_frame().is_realtime_service)

    async def _on_error(self, _: Any, error: ErrorFrame) -> None:
        if error.category is ErrorCategory.APPLICATION:  # a tool's, which may belong to an earlier response
            return
        is_first, self._failure = not self._failure, error.error or "the model failed"
        if self._is_live and is_first and self.tell is not None:
            await self.tell(CueFrame(StreamFailed(self._failure)))

    # The frames of a response.

    async def in_place_of(self, frame: Frame) -> list[Frame]:
        """Return what goes on in place of a frame, after what must be done at it."""
        match frame:
            case LLMTextFrame() if self._is_on:
                events = self._reading().feed(frame.text)
                is_same = not self._thinks and events == [TextDelta(frame.text)]
                return [frame] if is_same else self._frames_of(events, frame)
            case LLMThoughtTextFrame() | CueFrame(event=ReasoningDelta()):  # the service tells thoughts from the text
                self._reading().note_reasoning()
                return [] if isinstance(frame, CueFrame) else [frame]
            case LLMFullResponseStartFrame() | InterruptionFrame():
                self._restart()
                if isinstance(frame, InterruptionFrame):
                    self._ended.clear()
            case LLMFullResponseEndFrame():
                native, self.failure, is_cut = self._ended.pop(frame.id, ({}, "", False))
                if is_cut:
                    self._restart()
                reader, self._reader = self._reader, None
                # Beside a call of the service's, the beginning of a marker at the end of the text belongs to it.
                reason = None if self.failure else "length" if native else "stop"
                events = [] if reader is None else reader.close(reason)
                frames = [*self._frames_of(events, frame), *self._end_of_thoughts()]
                return [*frames, *await self._run_calls(native), frame]
        return [frame]

    def _reading(self) -> TextReader:
        """The reader of the response, made at its first text or thought."""
        self._reader = self._reader or TextReader(self._offered() or self._tools, self._start)
        return self._reader

    def _frames_of(self, events: list[Event], like: Frame) -> list[Frame]:
        frames: list[Frame] = []
        for event in events:
            match event:
                case ReasoningDelta(text=text):
                    frames += [] if self._thinks else [LLMThoughtStartFrame()]
                    frames.append(LLMThoughtTextFrame(text))
                    self._thinks = True
                case TextDelta(text=text):
                    spoken = LLMTextFrame(text)
                    spoken.skip_tts = like.skip_tts
                    spoken.append_to_context = getattr(like, "append_to_context", True)
                    frames += [*self._end_of_thoughts(), spoken]
                case ToolCallStart(told=False):
                    call_id = self._ids[event.index] = new_call_id()
                    frames.append(CueFrame(replace(event, tool_call_id=call_id)))
                case ToolCallEnd():
                    frames += self._call_ended(event, self._ids.get(event.index))
        return frames

    def _end_of_thoughts(self) -> list[Frame]:
        thinks, self._thinks = self._thinks, False
        return [LLMThoughtEndFrame()] if thinks else []

    def _call_ended(self, event: ToolCallEnd, call_id: str | None) -> list[Frame]:
        if call_id is None or event.arguments is None:
            _log(event.tool_name, "only told of" if event.told else event.status)
        else:
            arguments = spelled_out(event.arguments, fits_types(self._properties_of(event.tool_name)))
            self._recovered.append(FunctionCallFromLLM(event.tool_name, call_id, arguments, self._context))
        if call_id is None and not event.told:
            self._nameless = [CueFrame(event)]
        return [] if call_id is None else [CueFrame(replace(event, tool_call_id=call_id))]

    async def _run_calls(self, native: dict[str, tuple[str, str]]) -> list[Frame]:
        """Have the service run what it has not run itself; the frames for what does not run."""
        calls: list[FunctionCallFromLLM] = []
        # Beside a call of the service's, a call without a name is what the server has left of it.
        dropped = [] if native or self.failure else self._nameless
        own = [said for call_id, said in native.items() if call_id not in self._same]
        recovered, self._recovered = self._recovered, []
        for call in recovered:
            is_own = _said(call) in own
            why = "" if is_own else self._obstacle(call.function_name)
            if why:
                _log(call.function_name, why)
            if is_own or why:
                dropped.append(CueFrame(ended_call=call.tool_call_id))
            else:
                calls.append(call)
        self._run = {call.tool_call_id for call in calls}
        if self._llm is not None and calls:
            await self._llm.run_function_calls(calls)
        return dropped

    def _obstacle(self, name: str) -> str:
        """Why a call cannot run; the service itself answers calls of tools that it does not know."""
        if self._llm is None or self._context is None:
            return "create(llm=…) would run it"
        if self.failure:
            return "the response broke off"
        offered = self._offered()
        return "" if offered and (name in offered or not self._llm.has_function(name)) else "not offered"

    def _properties_of(self, name: str) -> Mapping[str, Any]:
        """The arguments that the schema of an offered tool names."""
        offered = (self._context and self._context.tools) or ToolsSchema([])
        custom = {tool.get("name"): properties_of(tool) for tool in _custom(offered)}
        standard = {tool.name: tool.properties for tool in offered.standard_tools}
        found: Mapping[str, Any] = (custom | standard).get(name, {})
        return found

    def _offered(self) -> list[str]:
        """The names of the tools that the response may call, as far as they are known."""
        context = self._context
        if self._llm is None or context is None or context.tool_choice == "none":
            return []
        offered = context.tools or ToolsSchema([])
        names = [tool.get("name") for tool in _custom(offered)]
        own = self._llm.get_llm_adapter().builtin_tools  # such as `cancel_…`; they are no part of the context
        return [*own, *(tool.name for tool in offered.standard_tools), *filter(None, names)]

    # The service's own calls.

    def note(self, calls: Any) -> bool:
        """Recognize calls that came as text, too; whether any is the service's own."""
        own = [call for call in calls if call.tool_call_id not in self._run]
        for call in own:
            twin = next((one for one in self._recovered if _said(one) == _said(call)), None)
            if twin is not None:
                self._recovered.remove(twin)
                self._same[call.tool_call_id] = twin.tool_call_id
        return bool(own)

    @property
    def has_run(self) -> bool:
        """Whether calls in the text of this response run."""
        return bool(self._run)

    def id_of(self, call: Any) -> str:
        """The id by which the router knows a call."""
        return self._same.get(call.tool_call_id, call.tool_call_id) or ""

    def forget(self, call: Any) -> None:
        """Note that a call has ended."""
        self._same.pop(call.tool_call_id, None)


def _custom(offered: ToolsSchema) -> list[Mapping[str, Any]]:
    """The tools that are written as a service's API wants them."""
    tools = [tool for tools in (offered.custom_tools or {}).values() for tool in tools]
    return [fields_of(fields_of(tool).get("function") or tool) for tool in tools]


def _said(call: FunctionCallFromLLM) -> tuple[str, str]:
    return call.function_name, canonical(dumps(call.arguments), typed=False)  # tags hold every value as text


def _log(name: str, why: str) -> None:
    logger.warning("a call that was written as text does not run: %s (%s)", logged_name(name), why)
