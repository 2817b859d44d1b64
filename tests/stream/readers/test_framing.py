"""Bytes become the same messages however they are cut, in each framing that servers use."""

import json
import random

import pytest

from stream import OpenAIReader
from stream.readers.formats.framing import MessageDecoder
from tests.stream.comparing import splits

ONE, TWO = '{"a": "é – {[]} \\" \u2028"}', '{"b": [1, {"c": null}]}'
OBJECTS = [json.loads(ONE), json.loads(TWO)]
FRAMINGS = {
    "events": f"data: {ONE}\n\ndata: {TWO}\n\ndata: [DONE]\n\n",
    "events without a space": f"data:{ONE}\n\ndata:{TWO}\n\n",
    "named events": f"event: x\nid: 1\nretry: 5\ndata: {ONE}\n\n: comment {{}}\n\nevent: y\ndata: {TWO}\n\n",
    "comments with objects": f': see {{"x": 1}}{{"y": 2}}\ndata: {ONE}\n\nevent: {{}}{{}}\n: {{}}{{}}\ndata: {TWO}\n\n',
    "carriage returns and line feeds": f"data: {ONE}\r\n\r\ndata: {TWO}\r\n\r\n",
    "carriage returns": f"data: {ONE}\r\rdata: {TWO}\r\r",
    "blanks after the object": f"data: {ONE}   \n\ndata: {TWO}\t \n\n",
    "several lines an event": 'data: {"a":\ndata: "é – {[]} \\" \u2028"}\n\nevent: y\ndata:{"b":\r\ndata: [1,\n'
    ': comment\ndata: {"c":\ndata:null}]}\n\n',
    "lines": f"{ONE}\n{TWO}\n",
    "lines, the last without an end": f"{ONE}\n\n{TWO}",
    "objects that follow each other": f"{ONE}{TWO}",
    "byte order mark": f"\ufeff{ONE}\n{TWO}\n",
    "array": f"[{ONE},\r\n{TWO}]",
    "array, printed": "[" + ONE.replace(": ", ":\n  ", 1) + "\n,\n" + json.dumps(OBJECTS[1], indent=2) + "\n]\n",
    "events of an array": f"data: [{ONE},{TWO}]\n\n",
}


def decoded(parts):
    decoder = MessageDecoder()
    found = [message for part in parts for message in decoder.feed(part)]
    decoder.close()
    return found, decoder.bad_line


@pytest.mark.parametrize("text", FRAMINGS.values(), ids=FRAMINGS)
def test_the_messages_are_the_same_over_every_cut(text):
    for parts in splits(text.encode()) if isinstance(text, bytes) else splits(text):
        assert decoded(parts) == (OBJECTS, None)
    data = text.encode()
    assert decoded(data[at : at + 1] for at in range(len(data))) == (OBJECTS, None)
    for cut in range(len(data)):
        assert decoded([data[:cut], data[cut:]]) == (OBJECTS, None)


BAD = [
    "hello", "hello {world}", "data: hello", '{"a": oops}', '{"a": 1}} more', '{"a": 1} more', "[1, 2]", "5", '"x"',
    "null",
    '{"a": 1', 'data: {"a": 1', 'data: {"a":\ndata: oops\n\n', 'data: {"a":\n\n{"b": 1}', '{"a": "line\nend"}',
    "<html>",
    "x" * 500, '{"a": "' + "y" * 500 + "\n", "\r\rnot\rthis", '{"a": ' + "9" * 5000 + "}", '{"a": NaNa}',
    "{" * 300, '{"a":' * 2000 + "1" + "}" * 2000, "data: [DONE] x",
]  # fmt: skip


@pytest.mark.parametrize("line", BAD, ids=[line[:20] for line in BAD])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"], ids=repr)
def test_bytes_that_are_no_json_are_quoted_the_same_over_every_cut(line, end):
    text = f"{ONE}\n{line}{end}{TWO}\n"
    whole = decoded([text])
    assert whole[1]
    assert len(whole[1]) <= 200
    assert decoded(text) == whole
    rng = random.Random(line)
    for _ in range(20):
        cut = rng.randrange(len(text))
        assert decoded([text[:cut], text[cut:]]) == whole


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_numbers_that_python_writes_are_read_in_one_piece_and_in_many(number):
    text = f'data: {{"logprob": {number}, "a": [{number}]}}\n\n'
    assert str(decoded([text])) == str(decoded(text))
    assert len(decoded(text)[0]) == 1


def test_the_message_of_a_failure_does_not_depend_on_the_cuts():
    data = b"upstream connect error or disconnect/reset before headers {x}\r\n"
    messages = set()
    for cut in range(len(data)):
        reader = OpenAIReader()
        events = reader.feed(data[:cut]) + reader.feed(data[cut:]) + reader.close()
        messages.add(tuple(events))
    assert len(messages) == 1
