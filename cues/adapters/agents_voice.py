"""Cues in the voice pipeline of OpenAI's Agents SDK: mixes into its text-to-speech, and reads calls from its runs.

Tested with openai-agents 0.24.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from cues.adapters._paced import PacedOptions, PacedWriter
from cues.adapters.agents_sdk import is_failure, result_of
from cues.signal.pcm import float_of_pcm16
from stream.events import Event, StreamFailed, TextDelta
from stream.readers.formats.responses import ResponsesReader
from stream.readers.options import Tools, kept

from agents import Agent, RunResultStreaming, Runner  # isort: skip  # `agents_sdk` has reported a missing package
from agents.voice import StreamedAudioResult, VoiceWorkflowBase  # isort: skip
from openai.types.responses import ResponseCompletedEvent  # isort: skip

__all__ = ["PacedOptions", "VoiceCues"]

_KEEPERS = ("session", "conversation_id", "auto_previous_response_id")  # options that keep the conversation elsewhere
_OUTCOMES = ("tool_output", "handoff_occured")  # as the SDK spells it


class VoiceCues(PacedWriter):
    """The audio of a `VoicePipeline` with cues.

    Make the pipeline with `workflow(agent)`, or with a workflow of your own that takes its text from `text_of`. Then
    `await play(result)`, beside `run`. All methods belong to the thread of the event loop; `router` may be called from
    any thread.

    Parameters
    ----------
    write : callable
        Gets each mixed frame when it is due: float32, shape `(n_samples,)`, 20 ms.
    sample_rate : int
        Rate of the voice, and of the frames, Hz.
    is_error : callable
        Whether a tool's output is a failure: the SDK reports an exception as text.
    **options
        `bank`, `rules`, `tools`, `limits`, `lead_ms` and `clock`, as in `PacedOptions`.
    """

    def __init__(
        self,
        write: Callable[[NDArray[np.float32]], None],
        *,
        sample_rate: int = 24000,
        is_error: Callable[[Any], bool] = is_failure,
        **options: Unpack[PacedOptions],
    ) -> None:
        options["tools"] = kept(options.get("tools"))
        super().__init__(write, sample_rate=sample_rate, **options)
        self.router.words_go_on(self._paced.words_go_on, follow_text=False)  # the SDK holds back those before a call
        self._tools, self._is_error = options["tools"], is_error
        self._runs: dict[int, RunResultStreaming] = {}  # by identity: they are not hashable
        self._plays: dict[StreamedAudioResult, asyncio.Timeout] = {}  # and what ends them
        self._cut: set[StreamedAudioResult] = set()  # whose turn was interrupted

    def workflow(self, agent: Agent[Any], **options: Any) -> VoiceWorkflowBase:
        """A workflow that runs `agent`, as `SingleAgentVoiceWorkflow` does; `options` go to `Runner.run_streamed`.

        A `session` or a `conversation_id` among them keeps the conversation; else the workflow does.
        """
        # Building these in the first turn would delay the frames of its cue.
        ResponsesReader(self._tools_of(agent))
        ResponseCompletedEvent.model_construct(response={"output": [{"type": "function_call"}]})
        return _Workflow(self, agent, options)

    async def text_of(self, run: RunResultStreaming) -> AsyncIterator[str]:
        """The text of a streamed run, as `VoiceWorkflowHelper.stream_text_from` gives it; its calls sound."""
        if self.router.phase == "done":
            self.router.begin_turn()
        self._runs[id(run)], reader = run, ResponsesReader(self._tools_of(run.last_agent))
        try:
            async for event in run.stream_events():
                if event.type == "raw_response_event" and event.data.type == "response.created":
                    reader = ResponsesReader(self._tools_of(run.last_agent))
                for told in self._read(event, reader):
                    self.router.handle(told)
                    if isinstance(told, TextDelta) and told.channel != "json":
                        yield told.text
            if self._runs.pop(id(run), None) is not None:  # else it was cut off, and the next turn may have begun
                self.router.end_stream()  # also if a tool's output is the final one
        finally:
            if self._runs.pop(id(run), None) is not None:
                run.cancel()

    def _tools_of(self, agent: Agent[Any]) -> Tools:
        """The declared tools, else the agent's own; unknown if it has MCP servers, which list theirs later."""
        return self._tools if self._tools is not None or agent.mcp_servers else [tool.name for tool in agent.tools]

    def _read(self, event: Any, reader: ResponsesReader) -> list[Event]:
        if event.type == "raw_response_event":
            return reader.feed(event.data)
        if event.type != "run_item_stream_event" or event.name not in _OUTCOMES:
            return []
        raw, output = event.item.raw_item, getattr(event.item, "output", "")
        call_id = raw.get("call_id") if isinstance(raw, dict) else getattr(raw, "call_id", None)
        return [result_of(output, self._is_error, call_id=str(call_id or ""))]

    async def play(self, result: StreamedAudioResult) -> None:
        """Speak what `VoicePipeline.run` gives, until it has given all; a failure sounds as an error, and is raised.

        A cancellation barges in, and ends the pipeline's tasks, also a recognizer or a voice that hangs.
        """
        try:
            async with asyncio.timeout(0.0 if self._is_over else None) as ending:
                self._plays[result] = ending
                await self._followed(result)
        except Exception as error:
            if ending.expired():  # by `close`, and a run may have begun since
                self.router.cancel()
                return
            self._paced.end()
            self.router.handle(StreamFailed(str(error)))
            raise

    async def _followed(self, result: StreamedAudioResult) -> None:
        """Follow in a task of its own: the pipeline may end slowly, and a barge-in must not wait for it."""
        following = asyncio.ensure_future(self._follow(result))
        try:
            await asyncio.shield(following)
        except asyncio.CancelledError:
            if not self._is_over:
                self.barge_in()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            raise
        finally:
            del self._plays[result]
            self._cut.discard(result)

    async def _follow(self, result: StreamedAudioResult) -> None:
        async for event in result.stream():
            if event.type == "voice_stream_event_lifecycle" and result in self._cut:
                self._cut.remove(result)  # the next turn begins
            elif event.type == "voice_stream_event_lifecycle":
                self._paced.end()
            elif event.type == "voice_stream_event_audio" and result not in self._cut:
                self._speak(event.data)

    def _speak(self, data: NDArray[Any] | None) -> None:
        if data is not None:
            self._paced.push(float_of_pcm16(data.tobytes()) if data.dtype == np.int16 else data.reshape(-1))

    def barge_in(self) -> None:
        """Fade out, drop the rest of the answer and cancel its run; the next turn of the session is spoken.

        `play` goes on, as a session does. To end it, also while the recognizer or the voice hangs, cancel it instead.
        """
        self._paced.interrupt()
        self._drop()

    def close(self) -> None:
        """Fade out, cancel what runs, and end `run` and `play`."""
        self._drop()
        for ending in () if self._is_over else self._plays.values():
            ending.reschedule(0.0)  # a time that has passed
        super().close()

    def _drop(self) -> None:
        self._cut |= self._plays.keys()
        runs, self._runs = self._runs, {}
        for run in runs.values():
            run.cancel()


class _Workflow(VoiceWorkflowBase):  # type: ignore[misc]  # the package may be absent where types are checked
    """One agent, and the conversation with it, without answers that were cut off while the model wrote them."""

    def __init__(self, voice: VoiceCues, agent: Agent[Any], options: dict[str, Any]) -> None:
        self._voice, self._agent, self._options = voice, agent, options
        self._history: list[Any] = []

    async def run(self, transcription: str) -> AsyncIterator[str]:
        self._history.append({"role": "user", "content": transcription})
        is_kept = any(self._options.get(name) for name in _KEEPERS)
        run = Runner.run_streamed(self._agent, self._history[-1:] if is_kept else self._history, **self._options)
        async for text in self._voice.text_of(run):
            yield text
        if run.final_output is not None:
            self._history, self._agent = run.to_input_list(), run.last_agent
