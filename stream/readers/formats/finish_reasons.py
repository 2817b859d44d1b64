"""The meaning of finish reasons, of every format: did the answer end early, and who runs its calls."""

__all__ = ["CHAT_CALLS", "calls_are_the_clients", "calls_follow", "ended_early", "ends_whole_turn"]

_CHAT_EARLY = {"length", "max_tokens", "content_filter", "error", "abort", "cancelled"}  # and Ollama's
_EARLY = _CHAT_EARLY | {
    *("max_output_tokens", "incomplete", "failed"),  # Responses, Realtime
    *("refusal", "model_context_window_exceeded"),  # Anthropic
}
_LIVES_DONE = {"turn_complete", "NEED_MORE_INPUT", "TURN_COMPLETE_REASON_UNSPECIFIED"}
# Google's reasons are written in capitals, and all but these end an answer early: it has dozens, and adds more.
_GOOGLES_DONE = _LIVES_DONE | {"STOP"}
# Reasons of the formats that tell the client's calls from those of a server's own tools. Chat Completions has the
# reasons of `_CHAT_EARLY` too, and its servers may run the calls that they report.
_CALLS_ARE_THE_CLIENTS = (_EARLY - _CHAT_EARLY) | {
    "completed",  # Responses, Realtime
    *("tool_use", "end_turn", "stop_sequence", "pause_turn"),  # Anthropic
    *_LIVES_DONE,
}
CHAT_CALLS = {"tool_calls", "function_call"}
"""The reasons of Chat Completions that announce calls."""


def ended_early(reason: str | None) -> bool:
    """Whether a finish reason says that the model was not done; `None` is a stream that broke off."""
    return reason is None or reason in _EARLY or (reason.isupper() and reason not in _GOOGLES_DONE)


def calls_are_the_clients(reason: str | None) -> bool:
    """Whether the reason is of a format in which each reported call is the client's: no text or task changes that."""
    return reason is not None and (reason in _CALLS_ARE_THE_CLIENTS or reason.isupper())


def calls_follow(reason: str | None) -> bool:
    """Whether the client is to run the calls before this reason, if there are any."""
    return reason in CHAT_CALLS or calls_are_the_clients(reason)


def ends_whole_turn(reason: str | None) -> bool:
    """Whether the reason is one of Gemini Live's, which come once, after the calls, their results and the answer."""
    return reason in _LIVES_DONE
