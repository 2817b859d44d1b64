"""Every case of chunks and lines from servers."""

import json

import pytest

from stream import OllamaReader, OpenAIReader
from tests.stream.comparing import as_case_events, load, matches, reads
from tests.stream.providers import read_all

CHUNK_CASES = list(load("openai_chunks", "reviewed_chunks"))
LINE_CASES = list(load("ollama_ndjson", "reviewed_lines"))


def assert_as_expected(case, events):
    for at_start in (False, True):
        actual = as_case_events(events, at_start=at_start)
        assert matches(case, actual), (actual, case["expect"])
    assert matches(case, as_case_events(events), reasoning=True)


@pytest.mark.parametrize("case", CHUNK_CASES, ids=lambda case: case["id"])
def test_chunk_case_reads_as_expected(case):
    assert_as_expected(case, read_all(OpenAIReader(tools=case.get("tools")), case["input"]))


@pytest.mark.parametrize("case", CHUNK_CASES, ids=lambda case: case["id"])
def test_chunk_case_reads_the_same_as_objects_of_the_client(case):
    from openai._models import construct_type
    from openai.types.chat import ChatCompletionChunk

    chunks = [construct_type(value=chunk, type_=ChatCompletionChunk) for chunk in case["input"]]
    assert read_all(OpenAIReader(tools=case.get("tools")), chunks) == read_all(
        OpenAIReader(tools=case.get("tools")), case["input"]
    )


@pytest.mark.parametrize("case", LINE_CASES, ids=lambda case: case["id"])
def test_line_case_reads_as_expected_over_every_cut(case):
    raw = reads(case["input"])
    if raw is None:
        assert_as_expected(case, read_all(OllamaReader(tools=case.get("tools")), case["input"]))
        raw = [json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in case["input"]]
    body = b"".join(raw)
    for cut in ([body], raw, [body[at : at + 1] for at in range(len(body))], [body[:-1]]):
        assert_as_expected(case, read_all(OllamaReader(tools=case.get("tools")), cut))
    for at in range(1, len(body)):
        assert_as_expected(case, read_all(OllamaReader(tools=case.get("tools")), [body[:at], body[at:]]))
