"""Recorded sessions over WebSocket, read by the real packages."""

import asyncio
import datetime as dt
import ipaddress
import json
import ssl
import threading
from pathlib import Path

import httpx
import openai
import pytest
import websockets
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from google import genai
from websockets.sync.server import serve

from stream.errors import StreamError
from stream.replay.recorder import record_session
from stream.replay.recording import load_recording
from stream.replay.server import ReplayServer
from stream.replay.sockets import Gates

PROVIDERS = Path(__file__).parent.parent / "data" / "providers"
REALTIME = sorted(path.name for path in (PROVIDERS / "realtime").iterdir())
LIVE = sorted(path.name for path in (PROVIDERS / "live").iterdir())
FAST = 1_000_000.0


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """The file of a certificate for 127.0.0.1, and a context that has its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    days = (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2120, 1, 1, tzinfo=dt.UTC))
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, *days, [x509.Extension(host.oid, False, host)])
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return folder / "cert.pem", context


def in_session(name, talk, **options):
    async def go():
        recording = load_recording(PROVIDERS / name)
        async with ReplayServer([recording], tokens_per_s=FAST, **options) as server:
            return recording, await talk(server.base_url.removesuffix("/v1"))

    return asyncio.run(asyncio.wait_for(go(), 20.0))


@pytest.mark.parametrize("name", REALTIME)
def test_the_openai_package_reads_a_realtime_session_as_it_was_recorded(name):
    expected = [message["type"] for message in load_recording(PROVIDERS / "realtime" / name).messages()]

    async def talk(root):
        seen = []
        socket = root.replace("http", "ws") + "/v1"
        async with (
            openai.AsyncOpenAI(base_url=root, websocket_base_url=socket, api_key="none") as client,
            client.realtime.connect(model="m") as session,
        ):
            await session.session.update(session={"type": "realtime"})
            while len(seen) < len(expected):
                event = await session.recv()
                seen.append(event.type)
                if event.type in ("session.updated", "response.done"):
                    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
                    await session.conversation.item.create(item=item)
                    await session.response.create()
        return seen

    assert in_session(f"realtime/{name}", talk)[1] == expected


@pytest.mark.parametrize("name", LIVE)
def test_the_google_package_reads_a_live_session_as_it_was_recorded(name, certificate, monkeypatch):
    trusted, tls = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))

    async def talk(root):
        heard, calls, turns = bytearray(), [], 0
        async with httpx.AsyncClient() as http:
            options = genai.types.HttpOptions(base_url=root, httpx_async_client=http)
            client = genai.Client(vertexai=False, api_key="none", http_options=options)
            async with client.aio.live.connect(model="m", config={"response_modalities": ["AUDIO"]}) as session:
                await session.send_client_content(turns={"role": "user", "parts": [{"text": "hello"}]})
                while not turns:
                    async for message in session.receive():
                        heard += message.data or b""
                        for call in message.tool_call.function_calls if message.tool_call else ():
                            calls.append([call.name, call.args])
                            answer = genai.types.FunctionResponse(id=call.id, name=call.name, response={"output": "12"})
                            await session.send_tool_response(function_responses=[answer])
                        turns += bool(message.server_content and message.server_content.turn_complete)
        return calls, len(heard)

    expected = json.loads((PROVIDERS / "expected.json").read_text(encoding="utf-8"))[f"live/{name}"]
    assert in_session(f"live/{name}", talk, tls=tls)[1] == (expected["calls"], expected["audio_bytes"])


def _sent(socket, *messages):
    return asyncio.gather(*(socket.send(json.dumps(message)) for message in messages))


async def _until(socket, kind):
    while (message := json.loads(await socket.recv()))["type"] != kind:
        pass
    return message


def test_a_session_waits_for_the_client_and_goes_on_when_it_is_asked():
    async def talk(root):
        async with websockets.connect(root.replace("http", "ws") + "/v1/realtime?model=m") as socket:
            assert json.loads(await socket.recv())["type"] == "session.created"
            await _sent(socket, {"type": "response.create"})  # without `session.update`, and with nothing said
            await _until(socket, "response.done")
            # Audio that goes on is not the result of the call.
            await _sent(socket, *[{"type": "input_audio_buffer.append", "audio": ""}] * 5)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(_until(socket, "response.created"), 0.2)
            await _sent(socket, {"type": "conversation.item.create", "item": {}}, {"type": "response.create"})
            return await _until(socket, "response.done")

    assert in_session("realtime/openai-tool-round.jsonl", talk)[1]["response"]["status"] == "completed"


@pytest.mark.parametrize("message", [b"\xff\xfe", "[" * 50_000, "null", "[1]", '{"type": 5}', "", '{"setup": null}'])
def test_no_message_of_a_client_ends_a_session(message):
    async def talk(root):
        async with websockets.connect(root.replace("http", "ws") + "/v1/realtime") as socket:
            await socket.send(message)
            await _sent(socket, {"type": "response.create"})
            return await _until(socket, "response.done")

    assert in_session("realtime/openai-tool-round.jsonl", talk)[1]["type"] == "response.done"


def test_a_request_that_is_no_handshake_and_a_path_of_another_api_are_refused():
    async def talk(root):
        async with httpx.AsyncClient() as client:
            bare = await client.get(root + "/v1/realtime")
            headers = {"upgrade": "websocket", "connection": "upgrade"}  # without a key
            broken = await client.get(root + "/v1/realtime", headers=headers)
            other = await client.get(root + "/ws/x.BidiGenerateContent", headers=headers)
        return bare.status_code, broken.status_code, other.status_code

    assert in_session("realtime/openai-tool-round.jsonl", talk)[1] == (404, 400, 404)


def test_the_gates_of_a_session_open_in_the_order_of_its_turns():
    gates, kinds = Gates(), []
    for message in load_recording(PROVIDERS / "realtime" / "openai-tool-round.jsonl").messages():
        if stage := gates.before(message):
            kinds.append((message["type"], stage))
        gates.after(message)
    assert kinds == [
        ("session.updated", 1),
        ("conversation.item.added", 2),
        ("response.created", 3),
        ("conversation.item.added", 2),
        ("response.created", 4),
    ]


@pytest.mark.parametrize("sent", ["[]", "3", '"response.done"', "null"])
def test_a_server_that_sends_no_object_is_an_error_in_one_line(sent):
    def answer(connection):
        connection.recv()
        connection.send(sent)

    with serve(answer, "127.0.0.1", 0) as server:
        running = threading.Thread(target=server.serve_forever)
        running.start()
        url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/v1/realtime?key=secret-secret"
        with pytest.raises(StreamError, match=r"cannot record ws://127\.0\.0\.1.*it must be a JSON object") as caught:
            record_session(url, [{"type": "session.update"}], timeout_s=5.0)
        server.shutdown()
        running.join()
    assert "secret" not in str(caught.value)
