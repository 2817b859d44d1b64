"""`cues proxy` between the `openai` package and servers on loopback, those that misbehave too."""

import asyncio
import gzip
import json
import logging
import signal
import socket
import subprocess
import sys
import time
from contextlib import aclosing, asynccontextmanager

import httpx2
import openai
import pytest
from click.testing import CliRunner
from starlette.middleware.cors import CORSMiddleware

import stream
from cues.cli import group
from cues.cli._page_server import PageServer
from cues.cli.proxy import Proxy
from stream.replay.recording import load_recording, samples_folder
from tests.support.loopback import http_server
from tests.support.model_server import raw_server
from tests.support.repairing import DIM, DONE, QUESTION, REPAIRED, STREAM, WHOLE, answered, answers, event, http_answer

FOLDER = samples_folder()
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
KEY = "sk-a-key-that-nobody-may-see"


@asynccontextmanager
async def proxy(upstream, *, origins=(), names=(), **options):
    """The address of a proxy in this loop."""
    async with aclosing(Proxy(upstream, **options)) as app:
        allowed = CORSMiddleware(app, allow_origins=origins, allow_methods=["*"], allow_headers=["*"])
        server = PageServer(allowed, origins=origins, names=names)
        serving = asyncio.create_task(server.serve())
        try:
            yield server.url
        finally:
            server.close()
            await serving


def test_a_word_is_sent_without_a_wait_for_the_one_before_it():
    # The kernel holds small pieces back until the last one is acknowledged, up to 40 ms later (RFC 896).
    server = PageServer(Proxy("http://localhost:9"))
    with socket.create_connection(server._socket.getsockname()), server._socket:
        accepted, _ = server._socket.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 60.0))


def package(url):
    return openai.AsyncOpenAI(base_url=f"{url}v1", api_key=KEY, max_retries=0)


def through(body, *, question=QUESTION, pieces=700, options=None, **served):
    async def go():
        async with (
            http_server(body, pieces=pieces, **served) as upstream,
            proxy(upstream, **options or {}) as url,
            package(url) as client,
        ):
            return await answered(await client.chat.completions.create(**{**question, "stream": True}))

    return run(go())


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.endswith(".sse")])
def test_the_openai_package_gets_of_a_recording_what_is_read_from_it(name):
    recording, expected = load_recording(FOLDER / name), EXPECTED[name]
    text, thoughts, calls, reason, failed = through(recording.body, question=recording.request)
    whole = [[name, json.loads(arguments)] for name, arguments in calls[: len(expected["calls"])]]
    assert (text, thoughts, whole) == (expected["text"], expected["thinking"], expected["calls"])
    assert len(calls) == len(whole) or expected["cut"]
    assert (reason == "length") == bool(expected.get("cut"))
    assert failed == bool(expected.get("error"))


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.endswith(".ndjson")])
def test_other_paths_pass_to_the_byte(name):
    body = (FOLDER / name).read_bytes()

    async def go():
        kind = "application/x-ndjson"
        async with (
            http_server(body, content_type=kind) as upstream,
            proxy(upstream) as url,
            httpx2.AsyncClient() as client,
        ):
            return await client.post(f"{url}api/chat", json=QUESTION)

    answer = run(go())
    assert answer.content == body
    assert answer.headers["content-type"] == "application/x-ndjson"


def test_thoughts_whose_opening_tag_is_in_the_prompt_leave_the_text():
    body = event("Dim it, then.</th") + event("ink>") + STREAM + DONE
    found = through(body, options={"start": "reasoning"})
    assert found == (REPAIRED[0], "Dim it, then.", *REPAIRED[2:])


@pytest.mark.parametrize(("start", "opener"), [("text", "<think>"), ("reasoning", "")])
def test_thoughts_before_json_that_the_request_asks_for_leave_it(start, opener):
    data = '{"name": "dim", "arguments": {"percent": 5}}'
    body = event(f"{opener}Dim it, then.</th") + event("ink>" + data[:9]) + event(data[9:]) + event(None, "stop") + DONE
    question = {**QUESTION, "response_format": {"type": "json_object"}}
    found = through(body, question=question, options={"start": start})
    assert found[:4] == (data, "Dim it, then.", [], "stop")


@pytest.mark.parametrize("pieces", [1, 10**6], ids=["trickling", "at once"])
@pytest.mark.parametrize("ending", [b"", DONE], ids=["without [DONE]", "with it"])
def test_a_stream_is_repaired_however_it_comes(pieces, ending):
    assert through(STREAM + ending, pieces=pieces) == REPAIRED


def test_a_whole_answer_is_repaired_also_if_it_comes_encoded():
    async def go():
        served = http_answer(gzip.compress(WHOLE), kind="application/json", content_encoding="gzip")
        async with answers(served) as (upstream, requests), proxy(upstream) as url, package(url) as client:
            return (await client.chat.completions.create(**QUESTION)).choices[0], requests[0][0].lower()

    choice, head = run(go())
    assert (choice.message.content, choice.finish_reason) == ("Dark.", "tool_calls")
    assert [call.function.name for call in choice.message.tool_calls] == ["dim"]
    assert "accept-encoding: identity" in head


@pytest.mark.parametrize(
    ("status", "kind", "body", "headers"),
    [
        (400, "application/json", b'{"error": {"message": "no <tool_call> here"}}', {"x_request_id": "r1"}),
        (429, "application/json", b"{}", {"retry_after": "7"}),
        (503, "text/html", b"<h1>No</h1>", {}),
        (200, "text/html", b"<h1>Not an API: <tool_call></h1>", {"server": "nginx"}),
        (200, "text/event-stream", gzip.compress(STREAM), {"content_encoding": "own"}),
        (307, "text/plain", b"", {"location": "https://elsewhere.invalid/"}),
        (204, "text/plain", b"", {}),
    ],
)
def test_what_is_no_answer_to_repair_passes_as_it_is(status, kind, body, headers):
    async def go():
        served = http_answer(body, status, kind, **headers)
        async with (
            answers(served) as (upstream, _),
            proxy(upstream) as url,
            httpx2.AsyncClient() as client,
            client.stream("POST", f"{url}v1/chat/completions", json=QUESTION) as answer,
        ):
            return answer, b"".join([part async for part in answer.aiter_raw()])

    answer, found = run(go())
    assert (answer.status_code, found, answer.headers["content-type"]) == (status, body, kind)
    for name, value in headers.items():
        assert answer.headers[name.replace("_", "-")] == value


def test_a_redirect_within_the_upstream_stays_within_the_proxy():
    async def go():
        heads = []

        async def answer(head, reader, writer):
            heads.append(head)
            where = f"{address}/v1/chat/completions/"
            writer.write(http_answer(b"", 308, location=where) if len(heads) == 1 else http_answer(STREAM + DONE))
            await writer.drain()

        async with raw_server(answer) as address, proxy(address) as url, package(url) as client:
            return await answered(await client.chat.completions.create(**QUESTION, stream=True)), heads

    found, heads = run(go())
    assert heads[1].startswith(b"POST /v1/chat/completions/ ")
    assert found[0].startswith("Dark.")


def test_a_connection_that_breaks_at_any_byte_breaks_after_the_text_before_it():
    body = event("Dark. ") + event(DIM) + event(" Night", "stop")
    cut = [http_answer(body[:at], length=len(body)) for at in range(len(body))]

    async def broken(client, url):
        found = []

        async def read():
            async with client.stream("POST", f"{url}v1/chat/completions", json=QUESTION) as answer:
                async for part in answer.aiter_bytes():
                    found.append(part)  # noqa: PERF401  (what came before the failure counts)

        with pytest.raises(httpx2.RemoteProtocolError):
            await read()
        return b"".join(found)

    async def go():
        async with answers(*cut) as (upstream, _), proxy(upstream) as url, httpx2.AsyncClient() as client:
            return [await broken(client, url) for _ in cut]

    for at, found in enumerate(run(go())):
        wanted = list(stream.read_sync([body[:at]], tools=["dim"]))
        came = list(stream.read_sync([found], tools=["dim"]))
        assert (text_of(came), calls_of(came)) == (text_of(wanted), calls_of(wanted)), body[:at]


def text_of(events):
    return "".join(one.text for one in events if isinstance(one, stream.TextDelta)).strip()


def calls_of(events):
    return [one.arguments for one in events if isinstance(one, stream.ToolCallEnd) and one.status == "ok"]


@pytest.mark.parametrize("begin", [b"", http_answer(event("Dark."), length=10**6)], ids=["before", "within"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("path", ["v1/chat/completions", "api/chat"])
def test_a_client_that_goes_away_ends_the_upstream_s_request(begin, path, method):
    async def go():
        asked, gone = asyncio.Event(), asyncio.Event()

        async def answer(head, reader, writer):
            if method == "POST":
                await reader.readexactly(len(json.dumps(QUESTION, separators=(",", ":"))))
            writer.write(begin)
            asked.set()
            await reader.read()  # until the other side closes
            gone.set()

        async def ask(url):
            async with (
                httpx2.AsyncClient(timeout=None) as client,
                client.stream(method, f"{url}{path}", json=QUESTION if method == "POST" else None) as answer,
            ):
                await anext(answer.aiter_raw())
                return answer.status_code

        async with raw_server(answer) as upstream, proxy(upstream) as url:
            asking = asyncio.create_task(ask(url))
            await asked.wait()
            if begin:
                assert await asking == 200
            else:
                asking.cancel()
            await gone.wait()

    run(go())


def test_two_at_once_have_each_their_own_tools():
    async def go():
        both = asyncio.Barrier(2)

        async def answer(head, reader, writer):
            await both.wait()
            writer.write(http_answer(STREAM + DONE))
            await writer.drain()

        async with raw_server(answer) as upstream, proxy(upstream) as url, package(url) as client:

            async def ask(question):
                return await answered(await client.chat.completions.create(**question, stream=True))

            return await asyncio.gather(ask(QUESTION), ask({**QUESTION, "tools": openai.omit}))

    assert run(go()) == [REPAIRED, ("Dark.", "", [], "stop", False)]


def test_a_megabyte_without_a_marker_is_not_held():
    text = "Good night. " * 90_000

    async def go():
        arrived = asyncio.Event()

        async def answer(head, reader, writer):
            rest = event(None, "stop") + DONE
            writer.write(http_answer(event(text), length=len(event(text) + rest)))
            await arrived.wait()
            writer.write(rest)
            await writer.drain()

        async with raw_server(answer) as upstream, proxy(upstream) as url, package(url) as client:
            found = ""
            async for one in await client.chat.completions.create(**QUESTION, stream=True):
                found += one.choices[0].delta.content or ""
                if len(found) == len(text):
                    arrived.set()
            return found

    assert run(go()) == text


def test_requests_pass_with_their_keys_which_nothing_keeps(tmp_path, caplog):
    quoting = event(f"Your key is {KEY}. ", "stop") + DONE

    async def go():
        given = [http_answer(quoting, set_cookie="id=1"), http_answer(b"[]", kind="application/json")]
        async with answers(*given) as (upstream, requests), proxy(f"{upstream}/own/v1", record=tmp_path) as url:
            async with package(url) as client:
                await answered(await client.chat.completions.create(**QUESTION, stream=True))
            async with httpx2.AsyncClient() as client:
                await client.put(f"{url}a%2Fb/c?d=%20e", content=b"x" * 10**6)
        return requests

    with caplog.at_level(logging.DEBUG, logger="stream"):
        (first, question), (second, body) = run(go())
    assert first.startswith("POST /own/v1/chat/completions ")
    assert f"authorization: bearer {KEY}" in first.lower()
    assert json.loads(question) == {**QUESTION, "stream": True}
    assert second.startswith("PUT /own/a%2Fb/c?d=%20e ")
    assert len(body) == 10**6
    assert "cookie" not in second.lower()
    recording = load_recording(tmp_path / "00001.sse")
    assert (recording.status, recording.complete, recording.request["model"]) == (200, True, "m")
    assert recording.body == quoting.replace(KEY.encode(), b"*" * len(KEY))
    assert KEY not in caplog.text
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_recording_is_kept_of_an_answer_that_breaks_off_and_never_written_over(tmp_path):
    (tmp_path / "00001.request.json").write_text("{}")

    async def go():
        served = http_answer(STREAM, length=10**6)
        async with answers(served) as (upstream, _), proxy(upstream, record=tmp_path) as url, package(url) as client:
            return await answered(await client.chat.completions.create(**QUESTION, stream=True))

    assert run(go()) == (*REPAIRED[:-1], True)
    assert not load_recording(tmp_path / "00002.sse").complete
    assert (tmp_path / "00001.request.json").read_text() == "{}"


def test_an_answer_goes_on_although_the_folder_for_recordings_is_gone(tmp_path, caplog):
    folder = tmp_path / "kept"
    folder.mkdir()

    async def go():
        served = http_answer(STREAM)
        async with answers(served) as (upstream, _), proxy(upstream, record=folder) as url, package(url) as client:
            folder.rmdir()
            return await answered(await client.chat.completions.create(**QUESTION, stream=True))

    assert run(go()) == REPAIRED
    assert "no recording" in caplog.text


def test_an_upstream_that_miscounts_its_chunks_is_not_quoted(caplog):
    served = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\ndata\r\nsecret\r\n"

    async def go():
        async with answers(served) as (upstream, _), proxy(upstream) as url, package(url) as client:
            await answered(await client.chat.completions.create(**QUESTION, stream=True))

    with caplog.at_level(logging.WARNING, logger="stream"):
        run(go())
    assert "broke off" in caplog.text
    assert "secret" not in caplog.text


def test_the_number_of_a_recording_takes_one_look_at_a_full_folder(tmp_path):
    for number in range(1, 2501):
        (tmp_path / f"{number:05}.sse").touch()

    async def go():
        served = http_answer(STREAM)
        async with answers(served) as (upstream, _), proxy(upstream, record=tmp_path) as url, package(url) as client:
            start_s = time.process_time()
            await answered(await client.chat.completions.create(**QUESTION, stream=True))
            return time.process_time() - start_s

    assert run(go()) < 1.0  # it took 3 s, in which no other answer went on
    assert (tmp_path / "02501.sse").exists()


def test_an_upstream_that_cannot_be_reached_is_502_and_a_question_too_long_413(monkeypatch):
    monkeypatch.setattr("cues.cli.proxy.MAX_QUESTION_BYTES", 300)

    async def go():
        async with proxy("http://127.0.0.1:1/v1") as url, package(url) as client:
            with pytest.raises(openai.APIStatusError) as unreachable:
                await client.chat.completions.create(**QUESTION)
            with pytest.raises(openai.APIStatusError) as too_long:
                await client.chat.completions.create(**{**QUESTION, "model": "m" * 300})
            return unreachable.value, too_long.value

    unreachable, too_long = run(go())
    assert (unreachable.status_code, too_long.status_code) == (502, 413)
    assert "cannot reach http://127.0.0.1:1/v1" in unreachable.message


@pytest.mark.parametrize("target", ["@127.0.0.1:{}/v1/models", "0/v1/models", "http://127.0.0.1:{}/v1/models", "*"])
def test_a_target_that_is_no_path_reaches_no_other_server(target):
    async def go():
        async with answers(http_answer(b"[]")) as (other, requests), proxy("http://127.0.0.1:1/v1") as url:
            here, there = url.split("/")[2], other.split("/")[2].partition(":")[2]
            reader, writer = await asyncio.open_connection(*here.split(":"))
            asked = f"GET {target.format(there)} HTTP/1.1\r\nhost: {here}\r\nconnection: close\r\n\r\n"
            writer.write(asked.encode())
            answer = await reader.read()
            writer.close()
            return answer.split(b"\r\n")[0], requests

    assert run(go()) == (b"HTTP/1.1 400 Bad Request", [])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "rebound.invalid"}, 403),
        ({"host": "assistant:8000"}, 200),
        ({"origin": "https://other.page"}, 403),
        ({"origin": "https://my.page"}, 200),
    ],
)
def test_host_and_origin_are_checked(headers, status):
    async def go():
        served = http_answer(b"[]", kind="application/json", access_control_allow_origin="*")
        own = {"origins": ["https://my.page"], "names": ["assistant"]}
        asked = {"access-control-request-method": "POST", **headers}
        async with (
            answers(served) as (upstream, requests),
            proxy(upstream, **own) as url,
            httpx2.AsyncClient(headers=headers) as client,
        ):
            before = await client.options(f"{url}v1/models", headers=asked) if "origin" in headers else None
            return before, await client.get(f"{url}v1/models"), requests

    before, answer, requests = run(go())
    assert answer.status_code == status
    assert len(requests) == (status == 200)
    readers = answer.headers.get_list("access-control-allow-origin")
    assert readers == ([headers["origin"]] if "origin" in headers and status == 200 else [])
    assert before is None or before.status_code == status


def test_the_command_prints_its_address_and_serves():
    async def go():
        async with http_server(STREAM + DONE) as upstream:
            command = [sys.executable, "-m", "cues", "proxy", "--upstream", upstream, "--json"]
            process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            url = json.loads(await process.stdout.readline())["url"]
            async with package(url.removesuffix("v1")) as client:
                question = {**QUESTION, "tools": [{"type": "function", "function": {"name": "lock"}}]}
                found = await answered(await client.chat.completions.create(**question, stream=True))
            process.send_signal(signal.SIGINT)
            _, said = await process.communicate()
            return found, process.returncode, said.decode()

    found, code, said = run(go())
    assert found == ("Dark.", "", [], "stop", False)
    assert code == 0
    assert said == "cues: dropped a call that was written as text: 'dim' (not offered)\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--upstream", "ftp://x"],
        ["--upstream", f"http://me:{KEY}@localhost"],
        ["--upstream", "http://localhost", "--allow-origin", "*"],
    ],
)
def test_wrong_arguments_are_refused(arguments):
    result = CliRunner().invoke(group, ["proxy", *arguments])
    assert result.exit_code == 2
    assert KEY not in result.output
