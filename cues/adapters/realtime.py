"""Cues in OpenAI's Realtime API over a WebSocket, and in the Agents SDK on top of it; xAI speaks the same.

The model's audio comes faster than it plays. So it is queued here, before the mixer, and frames leave a short lead
ahead of playback. At a barge-in the server learns what was heard: `conversation.item.truncate`.
"""

import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from cues.adapters._paced import PacedOptions, PacedWriter
from cues.adapters._realtime_asides import Asides
from cues.adapters._realtime_asking import Asking, response_id_of
from cues.arrays import Samples
from cues.signal.pcm import float_of_pcm16
from stream.events import AudioDelta, Event, Finish, Interrupted, TextDelta, ToolCallEnd, ToolResult
from stream.readers.calls.values import fields_of, text_of
from stream.readers.formats.realtime import RealtimeReader
from stream.readers.options import kept

__all__ = ["PacedOptions", "RealtimeCues", "SpokenItem"]

_FADE_MS = 30.0
_LOWEST_HZ, _HIGHEST_HZ = 8000, 192_000  # At a rate of 1 Hz, a second of bytes lasts for hours.
_AUDIO_ENDS = ("response.output_audio.done", "response.audio.done", "response.done")


@dataclass(slots=True)
class SpokenItem:
    """An item of the conversation that is spoken: its range among all speech samples, and whether it was cut.

    `odd_byte` is the first half of a sample whose other half comes with the next delta.
    """

    item_id: str
    content_index: int
    start: int
    end: int
    cut: bool = False
    odd_byte: bytes = b""


class RealtimeCues(PacedWriter):
    """The audio of a Realtime session with cues: server events in, frames out.

    All methods belong to the thread of the event loop; `router` may be called from any thread.

    Parameters
    ----------
    write : callable
        Gets each mixed frame when it is due: float32, shape `(n_samples,)`, 20 ms.
    send : async callable or None
        Sends a client event, a dictionary, to the server: `connection.send` of the `openai` package, or one that
        encodes it as JSON. `None` sends no truncations, as the Agents SDK sends its own.
    sample_rate : int
        Rate of the frames, Hz.
    **options
        `bank`, `rules`, `tools`, `limits`, `lead_ms` and `clock`, as in `PacedOptions`.
    """

    def __init__(
        self,
        write: Callable[[Samples], None],
        send: Callable[[Any], Awaitable[None]] | None = None,  # the package's own types of messages are many
        *,
        sample_rate: int = 24000,
        **options: Unpack[PacedOptions],
    ) -> None:
        options["tools"] = kept(options.get("tools"))
        super().__init__(write, sample_rate=sample_rate, **options)
        self._send = send
        self._reader = RealtimeReader(options["tools"])
        self._items: deque[SpokenItem] = deque(maxlen=64)
        self._n_pushed = 0
        self._detection: Mapping[str, Any] | None = {}  # the server's detector of the user's words; None if it has none
        self._asking, self._asides = Asking(), Asides(options["tools"])
        self._response_id = ""  # of the latest audio; another response may end meanwhile, as one out of band
        self._cut_responses: deque[str] = deque(maxlen=64)  # their ids: what comes of them later is dropped

    async def feed(self, event: Any) -> list[Event]:
        """Take a server event: JSON text, a dictionary or an object of the `openai` package; returns what it says.

        PCM of 8 to 192 kHz is queued, other audio dropped; calls sound; at the user's words the speech fades out and
        is truncated at the server. A response out of band in text makes no sound.
        """
        fields = fields_of(_decoded(event))
        if self._is_over or not fields:
            return []
        kind = text_of(fields.get("type"))
        if (aside := self._asides.reader_of(kind, fields)) is not None:
            return self._take_aside(aside.feed(fields))
        if session := fields_of(fields.get("session")):
            self._detection = _detection_of(session, self._detection)
        self._asking.note(kind, fields)  # at once: a barge-in waits for the socket, and a tool may end meanwhile
        is_question = kind == "response.created" or (kind == "input_audio_buffer.speech_stopped" and self._is_answered)
        if is_question and self.router.phase == "done":
            self.router.begin_turn()
        events = self._reader.feed(fields)
        for told in events:
            await self._take(told, fields)
        if kind == "error" and not (self._asking.has_response or self.router.waits):
            self.router.end_stream()  # No answer comes; one that does all the same begins a turn.
        if kind in _AUDIO_ENDS and not self._is_of_another(fields):
            self._push(self._paced.rest_at_own_rate())
            self._paced.end()
            for item in self._items:
                item.odd_byte = b""
        if kind == "response.done" and any(isinstance(told, Finish) for told in events):
            self._end_if_unasked()
        await self._ask_if_due()
        return events

    async def result(self, call_id: str, output: str, *, is_error: bool = False, respond: bool = True) -> None:
        """Send a tool's output to the server, at once; the outcome sounds.

        The answer is asked for once: when the response that made the call is done, and each of its calls that is
        `"ok"` has a result. So give one for a tool that failed or was canceled, too. While another response goes on,
        `response.create` waits for its end. Once the user has begun to speak, none is sent: the next response answers.
        `respond=False` wants no answer to this output.
        """
        if not self._asides.called(call_id):
            self.router.handle(ToolResult(tool_name="", tool_call_id=call_id, is_error=is_error, content=output))
        if self._send is not None:
            item = {"type": "function_call_output", "call_id": call_id, "output": output}
            await self._send({"type": "conversation.item.create", "item": item})
            self._asking.sent(call_id, respond=respond)
            self._end_if_unasked()
            await self._ask_if_due()

    def _end_if_unasked(self) -> None:
        """End the wait if nobody asks: all calls were malformed, or their outputs want no answer."""
        if self._send is not None and not (self._asking.expects_response or self.router.waits):
            self.router.end_stream()

    @property
    def _is_answered(self) -> bool:
        """Whether the server answers at the end of the user's words, unasked; not while a response goes on."""
        creates = self._detection is not None and self._detection.get("create_response") is not False
        return creates and not self._asking.has_response

    async def _ask_if_due(self) -> None:
        if self._send is not None and self._asking.is_due():
            await self._send({"type": "response.create"})

    async def barge_in(self) -> None:
        """Fade out, drop the rest of the answer, and truncate it at the server: for a program that hears the user.

        If the server does not (`turn_detection` is null), no tool's output asks for an answer until a response begins.
        """
        if self._detection is None:
            self._asking.user_speaks()
        await self._cut()

    async def _cut(self, *, goes_on: bool = False) -> None:
        """Cut what is spoken, and all of the response that is under way, unless the server lets it go on."""
        if not goes_on:
            self._cut_responses += {self._asking.active or "", self._response_id} - {""}
        cuts = self.unheard_items()
        self._paced.interrupt(_FADE_MS)
        self._n_pushed = self._paced.n_spoken + self._paced.pacer.queued_samples  # the fade is heard, too
        for item, heard_ms in cuts:
            await self._truncate(item, heard_ms)

    async def _truncate(self, item: SpokenItem, heard_ms: int) -> None:
        item.cut = True
        if self._send is not None:
            place = {"item_id": item.item_id, "content_index": item.content_index, "audio_end_ms": heard_ms}
            await self._send({"type": "conversation.item.truncate", **place})

    def unheard_items(self) -> list[tuple[SpokenItem, int]]:
        """The items that would not be heard to their end, each with its milliseconds that are, if speech stopped now.

        All released frames are heard, and the louder half of the fade.
        """
        rate = self._paced.sample_rate
        heard = self._paced.n_spoken + min(round(0.0005 * _FADE_MS * rate), self._paced.pacer.queued_samples)
        open_items = [item for item in self._items if not item.cut and item.end > heard]
        return [(item, max(0, heard - item.start) * 1000 // rate) for item in open_items]

    async def _take(self, told: Event, fields: Mapping[str, Any]) -> None:
        match told:
            case AudioDelta():
                await self._speak(told, fields)
            case ToolCallEnd():
                runs = told.status == "ok" and not told.told
                self._asking.called(told.tool_call_id, response_id_of(fields), runs=runs)
            case TextDelta():  # Text beside the audio is a transcript; no voice speaks this one.
                self.router.alive()
                if told.text.strip():
                    self.router.written()
                return
            case Interrupted():
                await self._cut(goes_on=(self._detection or {}).get("interrupt_response") is False)
                return
        self.router.handle(told)

    def _take_aside(self, events: list[Event]) -> list[Event]:
        """Take events of a response that nobody hears: no user waits for it, nor for its calls."""
        self._asides.note(events)
        return events

    async def _speak(self, audio: AudioDelta, fields: Mapping[str, Any]) -> None:
        item_id, index = text_of(fields.get("item_id")), fields.get("content_index") or 0
        last = next((item for item in reversed(self._items) if item.item_id == item_id), None)
        if last is None or (last.content_index != index and not last.cut):
            last = SpokenItem(item_id, index, self._n_pushed, self._n_pushed)
            self._items.append(last)
        if not last.cut and response_id_of(fields) in self._cut_responses:  # nothing of it was unheard then
            await self._truncate(last, (last.end - last.start) * 1000 // self._paced.sample_rate)
        rate, self._response_id = _rate_of(audio.mime), response_id_of(fields)
        if not last.cut and _LOWEST_HZ <= rate <= _HIGHEST_HZ:
            pcm = last.odd_byte + audio.pcm
            even = len(pcm) // 2 * 2
            last.odd_byte = pcm[even:]
            self._push(self._paced.at_own_rate(float_of_pcm16(pcm[:even]), rate))
            last.end = self._n_pushed

    def _is_of_another(self, fields: Mapping[str, Any]) -> bool:
        """Whether an event belongs to another response than the latest audio."""
        return self._response_id not in ("", response_id_of(fields) or self._response_id)

    def _push(self, samples: Samples) -> None:
        self._paced.push(samples)
        self._n_pushed += len(samples)


def _rate_of(mime: str) -> int:
    """The rate of PCM, Hz; 0 for another format."""
    rate = mime.rpartition("rate=")[2]
    return int(rate) if rate.isdecimal() and len(rate) <= len(str(_HIGHEST_HZ)) else 0


def _detection_of(session: Mapping[str, Any], so_far: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The settings of a session's detector of words, in today's place and the beta's; None if it has none."""
    for part in (fields_of(fields_of(session.get("audio")).get("input")), session):
        if "turn_detection" in part:
            detection = fields_of(part["turn_detection"])
            return detection if detection and detection.get("type", "") is not None else None  # xAI has a null there
    return so_far


def _decoded(event: Any) -> Any:
    """An event of a package or a socket as a dictionary of the fields that were sent; `{}` if it is not one."""
    if isinstance(event, str | bytes | bytearray):
        try:
            return json.loads(event)
        except (ValueError, RecursionError):
            return {}
    return event.model_dump(exclude_unset=True) if hasattr(event, "model_dump") else event
