"""Finish reasons of each format: which of them cut an answer short, and after which the client runs the calls."""

import pytest
from google.genai import types

from stream.readers.formats.finish_reasons import calls_are_the_clients, calls_follow, ended_early

EARLY = [
    "length", "max_tokens", "content_filter", "error", "abort", "cancelled", "max_output_tokens", "failed", "refusal",
    "model_context_window_exceeded", "MAX_TOKENS", "SAFETY", "RECITATION", "MALFORMED_FUNCTION_CALL",
]  # fmt: skip
DONE = ["stop", "tool_calls", "function_call", "completed", "end_turn", "tool_use", "stop_sequence", "pause_turn"]


@pytest.mark.parametrize("reason", [*EARLY, None])
def test_an_answer_that_was_cut_short_is_known(reason):
    assert ended_early(reason)


@pytest.mark.parametrize("reason", [*DONE, "STOP", "turn_complete", "of tomorrow", ""])
def test_an_answer_that_is_done_is_not_cut_short(reason):
    assert not ended_early(reason)


@pytest.mark.parametrize("reason", [reason.value for reason in types.FinishReason])
def test_each_reason_of_the_google_package_is_early_but_stop(reason):
    assert ended_early(reason) is (reason != "STOP")


@pytest.mark.parametrize("reason", [reason.value for reason in types.TurnCompleteReason])
def test_a_turn_that_a_live_server_rejects_or_blocks_ended_early(reason):
    assert ended_early(reason) is (reason not in ("NEED_MORE_INPUT", "TURN_COMPLETE_REASON_UNSPECIFIED"))


@pytest.mark.parametrize("reason", ["tool_calls", "function_call", "tool_use", "completed", "STOP", "turn_complete"])
def test_calls_before_these_reasons_are_to_be_run(reason):
    assert calls_follow(reason)


@pytest.mark.parametrize("reason", ["stop", "length", "max_tokens", None, "of tomorrow"])
def test_other_reasons_do_not_ask_for_calls_to_be_run(reason):
    assert not calls_follow(reason)


def test_chat_completions_alone_leave_open_who_runs_the_calls():
    assert not any(calls_are_the_clients(reason) for reason in ("tool_calls", "function_call", "stop", "length"))
    assert all(calls_are_the_clients(reason) for reason in ("tool_use", "completed", "STOP", "turn_complete"))
