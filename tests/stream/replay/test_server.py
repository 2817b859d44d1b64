"""The replay server over real HTTP on loopback."""

import asyncio

import httpx2
import openai
import pytest

from stream.errors import StreamError, StreamTypeError, StreamValueError
from stream.replay.endpoints import turn_index
from stream.replay.recorder import record
from stream.replay.recording import Recording, load_recording, samples_folder, save_recording
from stream.replay.server import ReplayServer

FIRST = Recording(name="first", kind="sse", body=b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n')
SECOND = Recording(name="second", kind="sse", body=b'data: {"choices":[{"delta":{"content":"b"}}]}\n\n')
NATIVE = Recording(name="native", kind="ndjson", body=b'{"done":true}\n')
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


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"messages": 3}', b'{"messages": [3]}', b"\xff"])
def test_a_request_that_makes_no_sense_gets_the_first_turn(body):
    assert turn_index(body) == 0


def test_a_tools_result_brings_the_next_turn_and_the_last_turn_is_repeated():
    assert ask([FIRST, SECOND], [USER]).content == FIRST.body
    assert ask([FIRST, SECOND], [USER, CALL, RESULT]).content == SECOND.body
    assert ask([FIRST, SECOND], [USER, CALL, RESULT, CALL, RESULT]).content == SECOND.body


def test_a_recorded_status_is_served():
    refused = Recording(name="refused", kind="ndjson", body=b'{"error":{"message":"no such model"}}', status=404)
    assert ask([refused], [USER]).status_code == 404


def test_the_native_path_is_answered_and_any_other_says_what_is():
    assert ask([NATIVE], [USER], path="/../api/chat").status_code == 200
    missing = ask([SECOND], [USER], path="/embeddings")
    assert missing.status_code == 404
    assert "chat/completions" in missing.json()["error"]["message"]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"Host": "pages.example"}, id="another-name"),
        pytest.param({"Host": "127.0.0.1.pages.example:80"}, id="a-name-that-begins-like-an-address"),
        pytest.param({"Origin": "https://pages.example"}, id="another-page"),
        pytest.param({"Origin": "null"}, id="a-page-without-an-address"),
    ],
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


def test_the_openai_client_reads_the_stream():
    async def go():
        async with (
            ReplayServer([FIRST], tokens_per_s=FAST) as server,
            openai.AsyncOpenAI(base_url=server.base_url, api_key="none") as client,
        ):
            models = [model.id async for model in client.models.list()]
            stream = await client.chat.completions.create(model="m", messages=[], stream=True)
            return models, [chunk.choices[0].delta.content async for chunk in stream]

    assert asyncio.run(go()) == (["replay"], ["a"])


class ListedClock:
    """A clock that stands still and notes how long it was asked to wait."""

    def __init__(self):
        self.time_s = 0.0

    def now(self):
        return self.time_s

    async def sleep(self, duration_s):
        self.time_s += max(duration_s, 0.0)


def test_recorded_times_are_kept_when_asked_for():
    body = b"data: 1\n\ndata: 2\n\n"
    recording = Recording(name="x", kind="sse", body=body, reads=((4, 100.0), (14, 350.0)))
    clock = ListedClock()

    async def go():
        async with ReplayServer([recording], tokens_per_s=None, clock=clock) as server, httpx2.AsyncClient() as client:
            return await client.post(server.base_url + "/chat/completions", json={"stream": True})

    assert asyncio.run(go()).content == body
    assert clock.time_s == pytest.approx(0.35)


def test_events_are_paced_by_tokens_per_second():
    clock = ListedClock()

    async def go():
        async with ReplayServer([FIRST], tokens_per_s=10.0, clock=clock) as server, httpx2.AsyncClient() as client:
            await client.post(server.base_url + "/chat/completions", json={"stream": True})

    asyncio.run(go())
    assert clock.time_s == pytest.approx(0.1)  # Two events: the second one comes 1/10 s after the first.


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


def test_a_recording_of_the_replay_is_the_recording_without_the_secrets():
    async def go():
        async with ReplayServer([FIRST], tokens_per_s=FAST) as server:
            headers = {"authorization": "Bearer hidden"}
            request = {"model": "m", "messages": [], "stream": True}
            return await asyncio.to_thread(record, server.base_url + "/chat/completions", request, headers=headers)

    recording = asyncio.run(go())
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
    async def go():
        async with ReplayServer([FIRST], tokens_per_s=FAST) as server:
            request = {"messages": [{"role": "user", "content": "a\udcff"}], "stream": True}
            return await asyncio.to_thread(record, server.base_url + "/chat/completions", request)

    save_recording(asyncio.run(go()), tmp_path / "x.sse")
    assert load_recording(tmp_path / "x.sse").request["messages"][0]["content"] == "a\ufffd"


ECHO = Recording(
    name="echo",
    kind="sse",
    body=b'data: {"error": {"message": "Incorrect key sk-hidden-0123", "client_secret": {"value": "ek_hidden"}}}\n\n',
    status=401,
)


def test_keys_are_not_recorded_where_the_server_quotes_them():
    async def go():
        async with ReplayServer([ECHO], tokens_per_s=FAST) as server:
            url = server.base_url + "/chat/completions?key=of-google-hidden"
            headers = {"x-api-key": "sk-hidden-0123"}
            tools = [{"type": "mcp", "authorization": "mcp-hidden", "headers": {"x": "of-google-hidden"}}]
            return await asyncio.to_thread(record, url, {"stream": True, "tools": tools}, headers=headers)

    recording = asyncio.run(go())
    assert "hidden" not in repr(recording)
    assert len(recording.body) == len(ECHO.body) == sum(size for size, _ in recording.reads)
    assert recording.messages()[0]["error"]["client_secret"] == {"value": "*********"}
