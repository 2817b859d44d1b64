"""Errors of each format give message, code, status and wait, the same in JSON and as the exception of a real client."""

import json

import anthropic
import httpx2
import openai
import pytest
from google.genai import errors as google_errors

from stream.events import StreamFailed, TextDelta
from stream.readers.formats.chat_completions import OpenAIReader
from stream.readers.formats.failures import failed_by, unwrap

ANTHROPIC = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}
GEMINI = {
    "error": {
        "code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
        ],
    }
}  # fmt: skip
FLAT = {"type": "error", "code": "server_error", "message": "Try later", "param": None, "sequence_number": 3}
NESTED = {"type": "error", "error": {"type": "insufficient_quota", "code": None, "message": "Pay", "param": None}}
OF_FIELD = {"error": {"message": "Invalid value: 'max'.", "param": "reasoning_effort", "code": "invalid_value"}}
FAILED = {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "Slow"}}}
REALTIME = {"type": "error", "event_id": "e", "error": {"type": "invalid_request_error", "code": "x", "message": "No"}}
EXPECTED = {
    "anthropic": (ANTHROPIC, StreamFailed("Overloaded", "overloaded_error", None, None, "req_1")),
    "gemini": (GEMINI, StreamFailed("Quota exceeded", "429", 429, 34500.0)),
    "gemini array": ([GEMINI], StreamFailed("Quota exceeded", "429", 429, 34500.0)),
    "responses, flat": (FLAT, StreamFailed("Try later", "server_error")),
    "responses, nested": (NESTED, StreamFailed("Pay", "insufficient_quota")),
    "a field": (OF_FIELD, StreamFailed("Invalid value: 'max'. (param: reasoning_effort)", "invalid_value")),
    "responses, failed": (FAILED, StreamFailed("Slow", "rate_limit_exceeded")),
    "realtime": (REALTIME, StreamFailed("No", "x")),
    "text": ("upstream gone", StreamFailed("upstream gone")),
    "nothing": ({}, StreamFailed("Request failed", "UpstreamFailure")),
}


@pytest.mark.parametrize(("error", "failed"), EXPECTED.values(), ids=EXPECTED)
def test_an_error_is_unwrapped_to_its_words_code_status_and_wait(error, failed):
    assert unwrap(error) == failed
    assert unwrap(json.dumps(error)) == failed
    assert unwrap(json.dumps(error).encode()) == failed


def answer(status, **headers):
    return httpx2.Response(status, headers=headers, request=httpx2.Request("POST", "http://localhost/v1"))


def test_anthropics_exception_in_mid_stream_says_what_its_bytes_say():
    error = anthropic.Anthropic(api_key="k")._make_status_error(f"{ANTHROPIC}", body=ANTHROPIC, response=answer(200))
    assert failed_by(error) == unwrap(ANTHROPIC), "the status 200 of the answer that broke is no error's"


def test_the_headers_of_an_answer_add_its_wait_and_its_id():
    answered = answer(529, **{"retry-after": "7", "request-id": "req_9"})
    error = anthropic.Anthropic(api_key="k")._make_status_error("x", body=ANTHROPIC["error"], response=answered)
    assert failed_by(error) == StreamFailed("Overloaded", "overloaded_error", 529, 7000.0, "req_9")


def test_openais_exception_in_mid_stream_says_what_its_bytes_say():
    error = openai.APIError("Pay", httpx2.Request("POST", "http://localhost/v1"), body=NESTED["error"])
    assert failed_by(error) == unwrap(NESTED)


@pytest.mark.parametrize("sent", ['{"error": "This model is full"}', "This model is full"], ids=["JSON", "plain"])
def test_openais_exception_for_an_error_that_is_a_text_says_the_text(sent):
    answered = httpx2.Response(400, text=sent, request=httpx2.Request("POST", "http://localhost/v1"))
    error = openai.OpenAI(api_key="k")._make_status_error_from_response(answered)
    assert failed_by(error) == StreamFailed("This model is full", "BadRequestError", 400)


@pytest.mark.parametrize("body", [GEMINI, [GEMINI]], ids=["object", "array"])
def test_googles_exception_says_what_its_bytes_say(body):
    assert failed_by(google_errors.ClientError(429, body)) == unwrap(GEMINI)


def test_an_error_that_a_chunk_says_twice_is_one_failure():
    error = {"message": "Overloaded", "code": 502}
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hm"}, "error": error}], "error": error}
    reader = OpenAIReader()
    events = reader.feed(chunk) + reader.close()
    assert events == [TextDelta("Hm"), StreamFailed("Overloaded", "502", 502)]
