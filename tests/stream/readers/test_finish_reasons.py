"""Finish reasons of each format: which of them cut an answer short, and after which the client runs the calls."""

import pytest
from google.genai import types

from stream.readers.formats.finish_reasons import calls_are_the_clients, calls_follow, ended_early

EARLY = [
    "length", "max_tokens", "content_filter", "error", "abort", "cancelled", "max_output_tokens", "failed", "refusal",
    "model_context_window_exceeded", "MAX_TOKENS", "SAFETY", "RECITATION", "MALFORMED_FUNCTION_CALL",
]  # fmt: skip
GOOGLES = (types.FinishReason, types.TurnCompleteReason)
DONE = ["stop", "tool_calls", "function_call", "completed", "end_turn", "tool_use", "stop_sequence", "pause_turn"]


@pytest.mark.parametrize("reason", [*EARLY, None, *DONE, "STOP", "turn_complete", "of tomorrow", ""])
def test_an_answer_that_was_cut_short_is_told_from_one_that_is_done(reason):
    assert ended_early(reason) is (reason in (*EARLY, None))


@pytest.mark.parametrize("reason", [reason.value for kind in GOOGLES for reason in kind])
def test_each_reason_of_the_google_package_is_early_but_these(reason):
    assert ended_early(reason) is (reason not in ("STOP", "NEED_MORE_INPUT", "TURN_COMPLETE_REASON_UNSPECIFIED"))


def test_the_reason_says_whether_the_client_is_to_run_the_calls_before_it():
    theirs = ["stop", "length", "max_tokens", None, "of tomorrow"]
    named, open_ = ["tool_use", "completed", "STOP", "turn_complete"], ["tool_calls", "function_call"]
    assert [reason for reason in theirs + named + open_ if calls_follow(reason)] == named + open_
    assert [reason for reason in theirs + named + open_ if calls_are_the_clients(reason)] == named
