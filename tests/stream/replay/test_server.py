"""The replay server over real HTTP on loopback."""

import asyncio

import httpx2
import pytest

from stream.errors import StreamError, StreamTypeError, StreamValueError
from stream.replay.endpoints import turn_index
from stream.replay.recorder import record
from stream.replay.recording import Recording, load_recording, samples_folder, save_recording
from stream.replay.server import ReplayServer

FIRST = Recording(name="first", kind="sse", body=b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n')
SECOND = Recording(name="second", kind="sse", body=b'data: {"choices":[{"delta":{"content":"b"}}]}\n\n')
NATIVE = Recording(name="native", kind="ndjson", body=b'{"done":true}\n', status=207)
USER, CALL, RESULT = {"role": "user"}, {"role": "assistant"}, {"role": "tool"}
FAST = 100_000.0


def ask(turns, messages, path="/chat/completions", **options):
    async def go():
        async with ReplayServer(turns, tokens_per_s=FAST, **options) as server, httpx2.AsyncClient() as client:
            return await client.post(server.base_url + path, json={"messages": messages, "stream": True})

    return asyncio.run(go())


def test_the_bytes_come_back_as_they_were_recorded():
    recording = load_recording(samples_folder() / "llama-server" / "hermes-text-and-call.sse")
    response = ask([recording], [USER])
    assert response.content == recording.body
    assert response.headers["content-type"] == "text/event-stream"


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it():
    body = b'{"messages": [], "stream": true}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\nconnection: close\r\n"

    async def go():
        async with ReplayServer([FIRST], tokens_per_s=FAST) as server:
            port = int(server.base_url.split(":")[2].partition("/")[0])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head + b"content-length: %d\r\n\r\n" % len(body))
            leave = await reader.readuntil(b"\r\n\r\n")
            writer.write(body)
            answer = await reader.read()
            writer.close()
            return leave, answer

    leave, answer = asyncio.run(asyncio.wait_for(go(), 10.0))
    assert leave.startswith(b"HTTP/1.1 100 ")
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"content":"a"' in answer


@pytest.mark.parametrize(
    ("messages", "turn"),
    [
        ([], 0),
        ([USER], 0),
        ([USER, CALL, RESULT], 1),
        ([USER, CALL, RESULT, RESULT], 1),
        ([USER, CALL, RESULT, CALL, RESULT], 2),
        ([USER, CALL, RESULT, CALL, USER], 0),
    ],
)
def test_the_turn_is_counted_by_rounds_of_results_since_the_last_user_message(messages, turn):
    assert turn_index({"messages": messages}) == turn


@pytest.mark.parametrize("body", [b"", [], {}, {"messages": 3}, {"messages": [3]}], ids=repr)
def test_a_request_that_makes_no_sense_gets_the_first_turn(body):
    assert turn_index(body) == 0


def test_a_tools_result_brings_the_next_turn_and_the_last_turn_is_repeated():
    assert ask([FIRST, SECOND], [USER]).content == FIRST.body
    assert ask([FIRST, SECOND], [USER, CALL, RESULT]).content == SECOND.body
    assert ask([FIRST, SECOND], [USER, CALL, RESULT, CALL, RESULT]).content == SECOND.body


def test_the_native_path_is_answered_with_its_status_and_any_other_says_what_is():
    assert ask([NATIVE], [USER], path="/../api/chat").status_code == 207
    missing = ask([SECOND], [USER], path="/embeddings")
    assert missing.status_code == 404
    assert "chat/completions" in missing.json()["error"]["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "pages.example"},
        {"Host": "127.0.0.1.pages.example:80"},
        {"Origin": "https://pages.example"},
        {"Origin": "null"},
    ],
    ids=repr,
)
def test_a_request_to_another_name_or_from_another_page_is_refused(headers):
    asked = []

    async def go():
        replay = ReplayServer([FIRST], on_request=lambda *request: asked.append(request))
        async with replay as server, httpx2.AsyncClient() as client:
            return await client.post(server.base_url + "/chat/completions", json={"messages": []}, headers=headers)

    answer = asyncio.run(go())
    assert answer.status_code == 403
    assert answer.json()["error"]["message"]
    assert b"choices" not in answer.content
    assert not asked


def test_one_connection_carries_many_requests_and_many_clients_are_served_at_once():
    async def go():
        async with ReplayServer([FIRST], tokens_per_s=FAST) as server, httpx2.AsyncClient() as client:
            url = server.base_url + "/chat/completions"
            answers = await asyncio.gather(
                *(client.post(url, json={"messages": [], "stream": True}) for _ in range(20))
            )
            again = await client.post(url, json={"messages": [], "stream": True})
            return [answer.content for answer in (*answers, again)]

    assert set(asyncio.run(go())) == {FIRST.body}


def test_a_client_that_talks_nonsense_or_leaves_early_does_not_hurt_the_next_one():
    async def go():
        async with ReplayServer([FIRST], tokens_per_s=FAST) as server:
            port = int(server.base_url.split(":")[2].split("/")[0])
            for nonsense in (b"\x00\xff\r\n\r\n", b"POST / HTTP/1.1\r\n", b""):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(nonsense)
                writer.close()
            async with httpx2.AsyncClient() as client:
                return (await client.post(server.base_url + "/chat/completions", json={"stream": True})).content

    assert asyncio.run(go()) == FIRST.body


class ListedClock:
    """A clock that stands still and notes how long it was asked to wait."""

    def __init__(self):
        self.time_s = 0.0

    def now(self):
        return self.time_s

    async def sleep(self, duration_s):
        self.time_s += max(duration_s, 0.0)


TIMED = Recording(name="x", kind="sse", body=FIRST.body, reads=((4, 100.0), (len(FIRST.body) - 4, 350.0)))


@pytest.mark.parametrize(("tokens_per_s", "lasts_s"), [(None, 0.35), (10.0, 0.1)], ids=["as recorded", "by tokens"])
def test_events_come_at_the_recorded_times_or_paced(tokens_per_s, lasts_s):
    clock = ListedClock()

    async def go():
        replay = ReplayServer([TIMED], tokens_per_s=tokens_per_s, clock=clock)
        async with replay as server, httpx2.AsyncClient() as client:
            return await client.post(server.base_url + "/chat/completions", json={"stream": True})

    assert asyncio.run(go()).content == FIRST.body
    assert clock.time_s == pytest.approx(lasts_s)


def test_a_port_that_is_taken_is_an_error_that_names_it():
    async def go():
        async with ReplayServer([FIRST]) as server:
            port = int(server.base_url.split(":")[2].split("/")[0])
            async with ReplayServer([FIRST], port=port):
                pass

    with pytest.raises(StreamError, match=r"cannot listen on 127\.0\.0\.1:\d+"):
        asyncio.run(go())


def test_wrong_parameters_are_named():
    with pytest.raises(StreamValueError, match="turns is empty"):
        ReplayServer([])
    with pytest.raises(StreamValueError, match="tokens_per_s is 0"):
        ReplayServer([FIRST], tokens_per_s=0)


def recorded(turn, request, query="", **headers):
    """The recording of a replay of `turn`."""

    async def go():
        async with ReplayServer([turn], tokens_per_s=FAST) as server:
            url = server.base_url + "/chat/completions" + query
            return await asyncio.to_thread(record, url, request, headers=headers)

    return asyncio.run(go())


def test_a_recording_of_the_replay_is_the_recording_without_the_secrets():
    recording = recorded(FIRST, {"model": "m", "messages": [], "stream": True}, authorization="Bearer hidden")
    assert recording.body == FIRST.body
    assert sum(size for size, _ in recording.reads) == len(FIRST.body)
    assert recording.request == {"model": "m", "messages": [], "stream": True}
    assert "hidden" not in repr(recording)
    assert "authorization" not in recording.headers


def test_a_server_that_cannot_be_reached_is_named_without_its_password():
    with pytest.raises(StreamError, match=r"cannot reach http://127\.0\.0\.1:9/v1") as error:
        record("http://user:hidden@127.0.0.1:9/v1?key=hidden", {})
    assert "hidden" not in str(error.value)


@pytest.mark.parametrize("url", ["http://h:99999/", "http://[::1", "ftp://h/", "h:1", "http://", "http://h:x/"])
def test_an_address_that_is_none_is_refused_before_anything_is_sent(url):
    with pytest.raises(StreamValueError, match="must be an http"):
        record(url, {})


@pytest.mark.parametrize("request_", [[], "text", 5, None])
def test_a_request_that_is_no_object_is_refused(request_):
    with pytest.raises(StreamTypeError, match="must be a JSON object"):
        record("http://127.0.0.1:9/v1", request_)


def test_halves_of_characters_are_sent_and_recorded_as_text(tmp_path):
    request = {"messages": [{"role": "user", "content": "a\udcff"}], "stream": True}
    save_recording(recorded(FIRST, request), tmp_path / "x.sse")
    assert load_recording(tmp_path / "x.sse").request["messages"][0]["content"] == "a\ufffd"


ECHO = Recording(
    name="echo",
    kind="sse",
    body=b'data: {"error": {"message": "Incorrect key sk-hidden-0123", "client_secret": {"value": "ek_hidden"}}}\n\n',
    status=401,
)


def test_keys_are_not_recorded_where_the_server_quotes_them():
    tools = [{"type": "mcp", "authorization": "mcp-hidden", "headers": {"x": "of-google-hidden"}}]
    request = {"stream": True, "tools": tools}
    recording = recorded(ECHO, request, "?key=of-google-hidden", **{"x-api-key": "sk-hidden-0123"})
    assert "hidden" not in repr(recording)
    assert len(recording.body) == len(ECHO.body) == sum(size for size, _ in recording.reads)
    assert recording.messages()[0]["error"]["client_secret"] == {"value": "*********"}
