"""A recorded WebSocket session as a server plays it: each part waits until the client has asked for it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from cues.extras import needed
from stream.errors import MissingFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream.clock import Clock
    from stream.replay.recording import Recording

__all__ = ["Gates", "play_session"]

LONGEST_MESSAGE = 16 * 1024 * 1024
SET_UP, ADD, ASK, ANSWER = 1, 2, 3, 4
"""Stages of a client: it sets the session up, adds an item, asks for an answer, returns the result of a call."""
_STAGES = {
    "session.update": SET_UP,
    "conversation.item.create": ADD,
    "input_audio_buffer.append": ASK,
    "input_audio_buffer.commit": ASK,
    "response.create": ANSWER,
    "setup": SET_UP,
    **dict.fromkeys(("clientContent", "client_content", "realtimeInput", "realtime_input"), ASK),
    **dict.fromkeys(("toolResponse", "tool_response"), ANSWER),
}


class Gates:
    """Which stage the client must have reached before a message of the recording is sent."""

    def __init__(self) -> None:
        self._asked = self._called = False

    def before(self, message: Mapping[str, Any]) -> int:
        """The stage that this message answers; 0 if it is sent unasked."""
        kind = str(message.get("type", ""))
        if kind == "session.updated" or "setupComplete" in message:
            return SET_UP
        if kind in ("conversation.item.added", "conversation.item.created") and not self._asked:
            return ADD
        is_lives = not kind and ("serverContent" in message or "toolCall" in message)
        if self._asked or not (is_lives or kind.startswith(("response.", "input_audio_buffer."))):
            return 0
        self._asked = True
        return ANSWER if self._called else ASK

    def after(self, message: Mapping[str, Any]) -> None:
        """Note a sent message: an answer or a call ends the client's turn to listen."""
        if message.get("type") == "response.done":
            output = (message.get("response") or {}).get("output") or ()
            self._asked, self._called = False, any(item.get("type") == "function_call" for item in output)
        elif "toolCall" in message:
            self._asked, self._called = False, True
        elif (message.get("serverContent") or {}).get("turnComplete"):
            self._asked = self._called = False


async def play_session(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    handshake: bytes,
    recording: Recording,
    *,
    schedule: Iterable[tuple[bytes, float]],
    clock: Clock,
) -> None:
    """Play a session to one client until the client closes it.

    `handshake` is the client's HTTP request; `schedule` gives the messages with their times, seconds.
    """
    server = needed("websockets.server", "openai", "WebSockets need the `openai` extra", MissingFeatureError)
    from websockets.frames import Opcode

    protocol = server.ServerProtocol(max_size=LONGEST_MESSAGE)
    protocol.receive_data(handshake)
    response = protocol.accept(protocol.events_received()[0])
    protocol.send_response(response)
    heard: asyncio.Queue[int] = asyncio.Queue()

    async def flush() -> None:
        for data in protocol.data_to_send():
            writer.write(data)
        await writer.drain()

    async def listen() -> None:
        text = bytearray()
        while data := await reader.read(65536):
            protocol.receive_data(data)
            for frame in protocol.events_received():
                if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                    text += frame.data
                    if frame.fin:
                        heard.put_nowait(_stage(bytes(text)))
                        text.clear()
            await flush()
            if protocol.close_expected():
                return

    async def speak() -> None:
        gates, waiting, start_s = Gates(), 0, clock.now()
        for piece, at_s in schedule:
            message = _object(piece)
            needed = gates.before(message)
            while needed and waiting < needed:
                waiting = await heard.get()
                start_s = clock.now() - at_s
            if needed == waiting or needed >= ASK:  # what the client did later than needed still counts
                waiting = 0
            gates.after(message)
            await clock.sleep(start_s + at_s - clock.now())
            send = protocol.send_binary if recording.api == "live" else protocol.send_text
            send(piece.strip())
            await flush()
        if not recording.complete:
            writer.transport.abort()

    await flush()
    if response.status_code == 101:
        speaking = asyncio.create_task(speak())
        try:
            await listen()
        finally:
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)


def _stage(message: bytes) -> int:
    """The stage of a client's message; 0 for any other message."""
    value = _object(message)
    return max(_STAGES.get(key, 0) for key in (str(value.get("type")), *value))


def _object(message: bytes) -> dict[str, Any]:
    try:
        value = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
