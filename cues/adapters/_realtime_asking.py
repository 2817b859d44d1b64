"""When to ask a Realtime server for the answer to the outputs of tools.

The server writes one response of a conversation at a time, and refuses `response.create` meanwhile
(`conversation_already_has_active_response`). A response knows the outputs that were sent before it.
"""

from collections.abc import Mapping
from typing import Any

from stream.readers.calls.values import fields_of, text_of
from stream.readers.options import MOST_KEPT

__all__ = ["Asking", "response_id_of"]

_SPEAKS, _HAS_SPOKEN = "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"


class Asking:
    """Follows responses, calls, outputs and the user's words; says when a response is to be asked for."""

    def __init__(self) -> None:
        self.active: str | None = None  # the response that the conversation gets now; `""` if it has no id
        self._names_conversation = False  # whether the server names it in responses: xAI does not
        self._response_of: dict[str, str] = {}  # by call
        self._awaited: set[str] = set()  # calls that run, until their output is sent
        self._unconfirmed: set[str] = set()  # calls whose output the server has not confirmed; an answer is wanted
        self._owed: set[str] = set()  # responses with outputs that are to be answered
        self._is_asked = False  # for a response that has not begun
        self._speech = ""  # the last event of the user's words; "" once a response has followed

    @property
    def has_response(self) -> bool:
        """Whether the conversation gets a response now."""
        return self.active is not None

    @property
    def expects_response(self) -> bool:
        """Whether the conversation gets a response, or will: for an output, a call that runs, or the user's words."""
        return self.has_response or self._is_asked or bool(self._owed or self._awaited or self._speech)

    def called(self, call_id: str, response_id: str, *, runs: bool) -> None:
        """Note a complete call; one that does not run (cut off, malformed) needs no output."""
        if len(self._response_of) >= MOST_KEPT:
            self._response_of.clear()
            self._awaited.clear()
            self._unconfirmed.clear()
        self._response_of[call_id] = response_id
        if runs:
            self._awaited.add(call_id)

    def sent(self, call_id: str, *, respond: bool) -> None:
        """Note that the output of a call has been sent."""
        self._awaited.discard(call_id)
        if respond:
            self._unconfirmed.add(call_id)
            self._owed.add(self._response_of.get(call_id, ""))

    def user_speaks(self) -> None:
        """Note that the user has begun to speak, of which the server may tell nothing."""
        self._speech = _SPEAKS

    def note(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Note a server event."""
        match kind:
            case "response.created" if self._is_for_conversation(fields_of(fields.get("response"))):
                self._begun(response_id_of(fields))
            case "response.done" if response_id_of(fields) in ("", self.active):
                self.active = None
            case "conversation.item.added" | "conversation.item.created":  # today's name, and the beta's
                self._confirmed(text_of(fields_of(fields.get("item")).get("call_id")))
            case "input_audio_buffer.speech_started":
                self.user_speaks()
            case "input_audio_buffer.speech_stopped":  # no response follows while another one goes on
                self._speech = "" if self.has_response else _HAS_SPOKEN
            case "input_audio_buffer.cleared":
                self._speech = ""
            case "error":  # perhaps in place of the response
                self._is_asked = False
                self._speech = _SPEAKS if self._speech == _SPEAKS else ""

    def _is_for_conversation(self, response: Mapping[str, Any]) -> bool:
        """Whether a response is the conversation's; one out of band names none, and may go on beside it."""
        has_name = response.get("conversation_id") is not None
        self._names_conversation |= has_name
        return has_name or not self._names_conversation

    def _begun(self, response_id: str) -> None:
        if not self._is_asked:
            self._owed.clear()
            self._speech = ""
        self.active, self._is_asked = response_id, False

    def _confirmed(self, call_id: str) -> None:
        if call_id in self._unconfirmed and self.has_response:  # which began before the server got the output
            self._owed.add(self._response_of.get(call_id, ""))
        self._unconfirmed.discard(call_id)

    def is_due(self) -> bool:
        """Whether to ask now; if so, the caller does."""
        if not self._owed or self.has_response or self._is_asked or self._speech:
            return False
        if self._owed <= {self._response_of[call_id] for call_id in self._awaited}:
            return False  # each has a call that still runs
        self._owed.clear()  # all outputs so far will be known
        self._is_asked = True
        return True


def response_id_of(fields: Mapping[str, Any]) -> str:
    """The id of the response that a server event belongs to, `""` if it has none."""
    return text_of(fields.get("response_id")) or text_of(fields_of(fields.get("response")).get("id"))
