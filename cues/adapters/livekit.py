"""Cues in a LiveKit agent: an audio output that paces, mixes and plays cues for the session's tool events.

Tested with livekit-agents 1.8.9, which sends speech as fast as it is made. So speech is queued here, before the mixer,
and the room's output runs 40 ms ahead of playback; up to 80 ms if the process is late.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal, Unpack
from weakref import WeakKeyDictionary

import numpy as np

from cues import Cue, Pacer
from cues.adapters._paced import FRAME_MS, PacedOptions
from cues.adapters._pipeline_cues import check_options
from cues.errors import CueTypeError, CueValueError
from cues.extras import require
from cues.mixing.sound import prepare
from stream.events import InvalidToolCall, StreamFailed, ToolCallEnd, ToolCallStart, ToolResult
from stream.routing.router import CueRouter

LIVEKIT = require("livekit")

from livekit import rtc  # noqa: E402  (report a missing package)
from livekit.agents import AgentTask  # noqa: E402
from livekit.agents.voice import io  # noqa: E402

from cues.adapters._livekit_guard import awaits_voice, guarded, guarded_node, unread_calls, voice_begins  # noqa: E402
from cues.adapters._livekit_input import DeafToCues  # noqa: E402
from cues.adapters._livekit_output import CueOutput, audio_frame  # noqa: E402

__all__ = ["CueOutput", "DeafToCues", "PacedOptions", "SessionCues", "attach", "cue_frames", "guarded", "guarded_node"]

_GOES_ON_WITHIN_S = 0.7  # after tools that asked for no answer: to the reply of the agent that one has changed to


class SessionCues:
    """Cues in an `AgentSession`, until `aclose`; closing the session closes them, too.

    Use it in the event loop of the session. Call `start` after `await session.start(…)`.

    Parameters
    ----------
    **options
        Passed to `CueOutput`; see `PacedOptions`.
    """

    def __init__(self, **options: Unpack[PacedOptions]) -> None:
        check_options(options, PacedOptions)
        self._options = options
        self._session: Any = None
        self._output: CueOutput | None = None
        self._speech_of: dict[str, Any] = {}  # of each call that has started, by its id
        self._watching: dict[Any, asyncio.Future[None]] = {}  # the speeches with tools, until they end
        self._may_go_on = False  # whether the session listens next because tools have asked for no answer
        self._listeners = {
            "tool_execution_updated": lambda event: self._on_tool(event.update),
            "function_tools_executed": self._on_tools_executed,
            "agent_state_changed": self._on_agent_state,
            "user_state_changed": self._on_user_state,
            "conversation_item_added": self._on_item,
            "speech_created": self._on_speech,
            "error": self._on_error,
            "close": lambda _: self._detach(),
        }

    @property
    def output(self) -> CueOutput:
        """The audio output with cues."""
        if self._output is None:
            raise CueTypeError("the cues have not been started; await start(agent_session=session) first")
        return self._output

    @property
    def router(self) -> CueRouter:
        """The router, which chooses the cues; `router.muted = True` switches them off."""
        return self.output.router

    @property
    def pacer(self) -> Pacer:
        """The pacer; `lead_samples`, `late_calls` and `underruns` show whether the process is fast enough."""
        return self.output.pacer

    async def start(self, *, agent_session: Any, room: Any = None) -> None:  # noqa: ARG002  (as BackgroundAudioPlayer)
        """Put cues between the session's audio chain and the room; `room` is not needed.

        Raises
        ------
        CueTypeError
            If the session has no audio output; call it after `await session.start(…)`.
        CueValueError
            If the session, or this object, already has cues.
        """
        self._attach(agent_session)

    async def aclose(self) -> None:
        """Fade out, give the session its old output back and stop following its events."""
        self._detach()
        if self._output is not None:
            await self._output.aclose()

    def _attach(self, session: Any) -> None:
        tail = _tail(session)
        if tail is None:
            raise CueTypeError("the session has no audio output; attach cues after `await session.start(…)`")
        if self._session is not None or session in _ATTACHED:
            raise CueValueError("the session has cues already; `await aclose()` of the earlier ones first")
        self._session, self._output = session, CueOutput(tail, **self._options)
        _ATTACHED[session] = self
        for event, listener in self._listeners.items():
            session.on(event, listener)
        self._output.awaits_words = self._awaits_words
        session.output.replace_audio_tail(self._output)
        if session.output.audio_enabled:
            self._output.start()
        self._output.on_gone = self._follow

    def _detach(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        del _ATTACHED[session]
        for event, listener in self._listeners.items():
            session.off(event, listener)
        for watched in self._watching.values():
            watched.cancel()
        self.router.barge_in()
        if _tail(session) is self._output:
            session.output.replace_audio_tail(self.output.sink)
        self.output.stop()

    def _follow(self) -> None:
        """Move to the output that has replaced ours, such as an avatar's."""
        tail = None if self._session is None else _tail(self._session)
        if tail is not None and tail is not self._output:
            self.output.feed(tail)
            self._session.output.replace_audio_tail(self._output)

    def _awaits_words(self) -> bool:
        """Whether the model has written words whose voice has not begun, as far as the guard knows."""
        is_thinking = self._session is not None and self._session.agent_state == "thinking"
        return is_thinking and awaits_voice(self._model)

    @property
    def _model(self) -> Any:
        return self._session.current_agent.llm or self._session.llm

    # The session's events.

    def _on_tool(self, update: Any) -> None:
        self._report_unread()
        match update.type:
            case "tool_call_started":
                call = update.function_call
                speech = self._session.current_speech
                if speech is not None and speech not in self._watching:
                    self._watch(speech)
                self._speech_of[call.call_id] = speech
                self.router.handle(ToolCallStart(call.name, call.call_id))
                self.router.handle(ToolCallEnd(call.name, call.call_id))
            case "tool_call_updated":  # It has given an interim answer, and runs on in the background.
                self.router.end_call(update.call_id)
            case "tool_call_ended" if self._was_interrupted(update.call_id):
                self._end_interrupted(self._speech_of[update.call_id])
            case "tool_call_ended" if update.status == "cancelled":
                self.router.end_call(update.call_id)
            case "tool_call_ended":
                failed = update.status == "error"
                content = update.message or ""
                self.router.handle(
                    ToolResult(tool_name="", tool_call_id=update.call_id, is_error=failed, content=content)
                )

    def _report_unread(self) -> None:
        """Tell the router of calls that LiveKit does not know of, as the guard could not read them."""
        for call in unread_calls(self._model):
            self.router.handle(call)

    def _watch(self, speech: Any) -> None:
        """End a turn with tools as soon as it is interrupted, also by `session.interrupt()`, which tells no event."""
        is_over = asyncio.get_running_loop().create_future()

        def end(_: Any) -> None:
            if not is_over.done():
                is_over.set_result(None)

        def ended(watched: asyncio.Future[None]) -> None:
            speech.remove_done_callback(end)
            if not watched.cancelled():
                self._end_interrupted(speech)
                self._watching.pop(speech, None)

        speech.add_done_callback(end)
        self._watching[speech] = asyncio.ensure_future(speech.wait_if_not_interrupted([is_over]))
        self._watching[speech].add_done_callback(ended)

    def _end_interrupted(self, *speeches: Any) -> None:
        """End the turns of these speeches, as far as they were interrupted: no answer follows, though tools may run."""
        for speech in speeches:
            if speech in self._watching and speech.interrupted:
                del self._watching[speech]
                for call_id in [call_id for call_id, of in self._speech_of.items() if of is speech]:
                    self.router.end_call(call_id)
                self.router.hush()

    def _was_interrupted(self, call_id: str) -> bool:
        """Whether the turn of a call was interrupted: no answer will follow its result."""
        speech = self._speech_of.get(call_id)
        return speech is not None and bool(speech.interrupted)

    def _on_tools_executed(self, event: Any) -> None:
        """Play the error cue for calls that were refused: of an unknown tool, or with arguments that are not JSON."""
        for index, (call, output) in enumerate(event.zipped()):
            if call.call_id not in self._speech_of and output.is_error:
                name, call_id, text = call.name, call.call_id, str(output.output)
                reason: Literal["unknown_tool", "not_json"] = (
                    "unknown_tool" if "Unknown function" in text else "not_json"
                )
                self.router.handle(InvalidToolCall(name, call_id, index, reason, text))
                self.router.handle(ToolResult(tool_name=name, tool_call_id=call_id, is_error=True, content=text))
            self._speech_of.pop(call.call_id, None)
        self._may_go_on = not event.has_tool_reply
        if self._may_go_on:
            self._end_soon()  # if it listens already, no change of its state follows

    def _on_agent_state(self, event: Any) -> None:
        router = self.router
        self._report_unread()
        if event.new_state == "speaking":
            voice_begins(self._model)
        elif event.new_state == "thinking":
            speech = self._session.current_speech
            if router.phase == "done" and not (speech is not None and (speech.done() or speech.interrupted)):
                router.begin_turn()  # Else a tool of an interrupted turn is what runs.
        elif not router.waits and self._may_go_on:
            self._end_soon()
        elif not router.waits:
            router.end_stream()
        elif self._asks_user():
            router.hush(fade_ms=None)
        self._may_go_on = False

    def _end_soon(self) -> None:
        asyncio.get_running_loop().call_later(_GOES_ON_WITHIN_S, self._end_wait)

    def _end_wait(self) -> None:
        """End the wait after tools that asked for no answer, if the session listens."""
        is_idle = self._session is not None and self._session.agent_state in {"listening", "idle"}
        if is_idle and not self.router.waits:
            self.router.end_stream()

    def _asks_user(self) -> bool:
        """Whether an `AgentTask` listens to the user; a tool that awaits it waits for them, not the user for the tool.

        The state alone does not show it: the session listens, too, while a tool runs on after its task.
        """
        agent = self._session.current_agent
        return isinstance(agent, AgentTask) and not agent.done() and self._session.agent_state == "listening"

    def _on_item(self, event: Any) -> None:
        """Wait again after a task that no reply has ended, such as one that a key or a timer completes."""
        is_silent = self.router.waits and self.router.phase == "done" and self._session.user_state != "speaking"
        if event.item.type == "agent_handoff" and is_silent and not self._asks_user():
            self.router.begin_turn()

    def _on_speech(self, event: Any) -> None:
        """Begin the turn after an interrupted one whose tools run on: then the agent's state does not change."""
        self._end_interrupted(*list(self._watching))
        is_reply = event.source == "generate_reply" and self._session.agent_state == "thinking"
        if is_reply and self.router.phase == "done":
            self.router.begin_turn()

    def _on_user_state(self, event: Any) -> None:
        if event.new_state == "speaking":
            self.router.hush()
        elif self.router.waits and not self._asks_user():
            self.router.begin_turn()  # A false interruption: the tools have run on.

    def _on_error(self, event: Any) -> None:
        if not getattr(event.error, "recoverable", True) and event.error.type != "stt_error":
            self.router.handle(StreamFailed(str(event.error.error), code=event.error.type))


_ATTACHED: WeakKeyDictionary[Any, SessionCues] = WeakKeyDictionary()


def attach(session: Any, **options: Unpack[PacedOptions]) -> SessionCues:
    """Cues for a started session, at once: `SessionCues(**options)` and its `start`.

    A session that has cues already keeps them; with `options` for new ones, it raises, as `start` does.
    """
    if session in _ATTACHED and not options:
        return _ATTACHED[session]
    handle = SessionCues(**options)
    handle._attach(session)  # noqa: SLF001  (its own module)
    return handle


def _tail(session: Any) -> io.AudioOutput | None:
    """The end of the session's audio chain."""
    tail = session.output.audio
    while tail is not None and tail.next_in_chain is not None:
        tail = tail.next_in_chain
    return tail


async def cue_frames(
    cue: Cue, *, sample_rate: int = 48000, frame_ms: float = FRAME_MS, loop: bool = False
) -> AsyncIterator[rtc.AudioFrame]:
    """A cue as frames for `BackgroundAudioPlayer.play` (48 kHz), on its own track.

    Such a track cannot duck the speech or wait for a word; `attach` can.
    """
    samples = prepare(cue, sample_rate, loop=loop).samples
    n_samples = round(frame_ms * sample_rate / 1000.0)
    if not loop:
        samples = np.pad(samples, (0, -len(samples) % n_samples))
    at = 0
    while loop or at < len(samples):
        yield audio_frame(samples.take(range(at, at + n_samples), mode="wrap"), sample_rate)
        at += n_samples
