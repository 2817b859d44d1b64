"""Which server is asked, at which path, with which key."""

import asyncio
import os
import sys

import pytest

import stream
from stream.errors import MissingFeatureError, StreamValueError
from stream.events import TextDelta
from stream.replay.recorder import record
from stream.replay.server import ReplayServer
from stream.services import connection as connection_module
from stream.services.addresses import api_and_address, key_for
from stream.speech import choose_speaker
from stream.speech.openai_speech import OpenAISpeaker
from stream.urls import shown_url
from tests.support.model_server import QUESTION, chat, raw_server, says, tool


@pytest.mark.parametrize(
    ("base_url", "wanted", "endpoint", "url"),
    [
        ("http://127.0.0.1:11434/v1", "auto", "chat", "http://127.0.0.1:11434/v1"),
        ("http://localhost:11434", "auto", "chat", "http://localhost:11434/v1"),
        ("http://localhost:11434/", "ollama", "ollama", "http://localhost:11434"),
        ("http://localhost:11434/v1", "ollama", "ollama", "http://localhost:11434"),
        ("http://localhost:11434/api/chat", "ollama", "ollama", "http://localhost:11434"),
        ("https://ollama.com", "auto", "ollama", "https://ollama.com"),
        ("https://ollama.com/v1", "chat", "chat", "https://ollama.com/v1"),
        ("https://api.groq.com/openai/v1", "auto", "chat", "https://api.groq.com/openai/v1"),
        ("https://host/v1/chat/completions", "auto", "chat", "https://host/v1"),
    ],
)
def test_a_local_server_defaults_to_the_openai_form_and_the_cloud_to_the_native_one(base_url, wanted, endpoint, url):
    assert (api_and_address(base_url, wanted)[0], api_and_address(base_url, wanted)[2]) == (endpoint, url)


VARIABLES = ("OLLAMA_LOCAL_BASE", "OLLAMA_HOST", "OLLAMA_CLOUD_HOST", "ACTOR_MODEL", "OLLAMA_API_KEY")


@pytest.fixture
def environment(monkeypatch):
    """Sets the variables that are named, and no other of ours."""

    def set_alone(**values):
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    set_alone()
    return set_alone


def test_without_an_address_the_ollama_of_this_machine_is_asked_and_the_documents_model(environment):
    connection = stream.connect()
    assert connection.base_url == "http://127.0.0.1:11434"
    assert (connection.api, connection.model) == ("chat", "qwen3-coder:480b")
    cloud = stream.connect("cloud")
    assert (cloud.base_url, cloud.api, cloud.model) == ("https://ollama.com", "ollama", "qwen3-coder:480b")
    assert stream.connect(model="qwen3:8b").model == "qwen3:8b"


def test_actor_model_is_the_model_where_none_is_named(environment):
    environment(ACTOR_MODEL="gpt-oss:120b-cloud")
    assert stream.connect().model == "gpt-oss:120b-cloud"
    assert stream.connect("cloud").model == "gpt-oss:120b"
    assert stream.connect("http://localhost:11434", "qwen3:8b").model == "qwen3:8b"
    environment(ACTOR_MODEL=" ")
    assert stream.connect().model == "qwen3-coder:480b"


@pytest.mark.parametrize(
    ("host", "base_url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":56789", "http://127.0.0.1:56789"),
        ("192.168.1.7", "http://192.168.1.7:11434"),
        ("192.168.1.7:8080", "http://192.168.1.7:8080"),
        ("workstation", "http://workstation:11434"),
        ("workstation:8080/", "http://workstation:8080"),
        ("http://workstation", "http://workstation"),
        ("https://models.example/ollama", "https://models.example/ollama"),
        (' "http://workstation:8080" ', "http://workstation:8080"),
        ("::1", "http://[::1]:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("[::]", "http://[::1]:11434"),
        ("http://0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("ollama.com", "https://ollama.com"),
    ],
)
def test_ollamas_own_variable_says_where_the_server_is(environment, host, base_url):
    environment(OLLAMA_HOST=host)
    assert stream.connect(model="m").base_url == base_url


@pytest.mark.parametrize("api", ["chat", "ollama"])
@pytest.mark.parametrize("ending", ["", "/", "/v1", "/api"])
def test_an_ollama_behind_the_path_of_a_proxy_is_asked_there(environment, api, ending):
    environment(OLLAMA_HOST=f"https://models.example/ollama{ending}")
    connection = stream.connect(model="m", api=api)
    asked = {"chat": "v1/chat/completions", "ollama": "api/chat"}[api]
    assert connection._endpoint._url == f"https://models.example/ollama/{asked}"


def test_the_documents_variables_for_the_addresses_win(environment):
    environment(
        OLLAMA_HOST="workstation",
        OLLAMA_LOCAL_BASE="http://127.0.0.1:8080/v1",
        OLLAMA_CLOUD_HOST="https://proxy.example",
        OLLAMA_API_KEY="key-of-the-cloud",
    )
    local, cloud = stream.connect(model="m"), stream.connect("cloud", "gpt-oss:120b-cloud")
    assert (local.base_url, local.api) == ("http://127.0.0.1:8080", "chat")
    assert (cloud.base_url, cloud.api, cloud.model) == ("https://proxy.example", "ollama", "gpt-oss:120b")
    assert key_for("proxy.example", asks_cloud=True) == "key-of-the-cloud"


@pytest.mark.parametrize("value", ["ftp://host", "host:port", "http://", "host:99999"])
@pytest.mark.parametrize("name", ["OLLAMA_HOST", "OLLAMA_LOCAL_BASE"])
def test_a_variable_that_holds_no_address_is_named_in_the_error(environment, name, value):
    environment(**{name: value})
    with pytest.raises(StreamValueError, match=f"{name} is '{value}'"):
        stream.connect(model="m")


def test_a_password_in_a_variable_that_holds_no_address_is_not_shown(environment):
    environment(OLLAMA_HOST="http://me:hunter2@host:99999")
    with pytest.raises(StreamValueError, match=r"OLLAMA_HOST is 'http://host:99999'"):
        stream.connect(model="m")


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_the_server_that_the_variables_name_is_asked_for_their_model(environment, scheme):
    async def go():
        bodies = []
        script = says([["say", "Good evening."]])
        async with ReplayServer(script, tokens_per_s=None, on_request=lambda *it: bodies.append(it)) as server:
            address = server.base_url.removeprefix("http://").removesuffix("/v1")
            environment(OLLAMA_HOST=f"{scheme}{address}", ACTOR_MODEL="ministral-3:14b")
            async with stream.connect() as connection:
                text = [event.text async for event in connection.chat(QUESTION) if isinstance(event, TextDelta)]
        return "".join(text), bodies

    text, ((path, body),) = asyncio.run(asyncio.wait_for(go(), 20.0))
    assert (text, path, body["model"]) == ("Good evening.", "/v1/chat/completions", "ministral-3:14b")


@pytest.mark.parametrize(("endpoint", "path"), [("chat", "/v1/chat/completions"), ("ollama", "/api/chat")])
def test_each_endpoint_is_asked_at_its_own_path(endpoint, path):
    assert chat("ollama-plain-text", endpoint=endpoint).paths == [path]


def test_a_key_goes_to_the_server_it_was_given_for_and_an_environment_key_to_its_own_host_alone(monkeypatch):
    keys = {
        "OPENAI_API_KEY": "api.openai.com", "OLLAMA_API_KEY": "ollama.com", "ANTHROPIC_API_KEY": "api.anthropic.com",
        "GEMINI_API_KEY": "generativelanguage.googleapis.com", "GOOGLE_API_KEY": "generativelanguage.googleapis.com",
    }  # fmt: skip
    hosts = {*keys.values(), "localhost"}
    for name, own in keys.items():
        for other in keys:
            monkeypatch.delenv(other, raising=False)
        monkeypatch.setenv(name, "secret")
        assert {host for host in hosts if key_for(host)} == {own}


@pytest.mark.parametrize(("scheme", "sent"), [("https", True), ("http", False)])
def test_a_hosts_own_key_is_not_sent_in_clear(monkeypatch, scheme, sent):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    given = []
    monkeypatch.setattr(connection_module, "Endpoint", lambda *_, api_key, **__: given.append(api_key))
    stream.connect(f"{scheme}://api.openai.com/v1", "m")
    assert given == ["secret" if sent else None]


@pytest.mark.parametrize("api", ["chat", "ollama"])
@pytest.mark.parametrize("key", [None, "mine"])
def test_the_key_is_sent_as_a_bearer_token_and_none_without_one(monkeypatch, api, key):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")

    async def go():
        heads = []

        async def answer(head, _reader, writer):
            heads.append(head)
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

        async with raw_server(answer) as url, stream.connect(url, "m", api=api, api_key=key) as connection:
            await connection.learn()
            [_ async for _ in connection.chat(QUESTION)]
        return heads

    for head in asyncio.run(asyncio.wait_for(go(), 20.0)):
        assert (b"authorization: bearer mine\r\n" in head.lower()) is (key is not None)
        assert key or b"authorization" not in head.lower()


@pytest.mark.parametrize("key", ["sk-mine\r", "sk-mine\n", "\tsk-mine ", "sk-mine\u00a0"])
def test_white_space_around_a_key_is_not_sent(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert key_for("api.openai.com") == "sk-mine"

    async def go():
        heads = []

        async def answer(head, _reader, writer):
            heads.append(head)
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

        async with raw_server(answer) as url, stream.connect(url, "m", api_key=key) as connection:
            [_ async for _ in connection.chat(QUESTION)]
        return heads

    (head,) = asyncio.run(asyncio.wait_for(go(), 20.0))
    assert b"authorization: bearer sk-mine\r\n" in head.lower()


@pytest.mark.parametrize(("odd", "place"), [("sk-\r\nhunter2", 4), (" sk-hunter\x002", 11), ("sk-hunt\u2026r2\n", 8)])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(monkeypatch, odd, place):
    monkeypatch.setattr(
        "os.environ", {"OPENAI_API_KEY": odd, "CUES_SPEECH_URL": "http://h/v1", "CUES_SPEECH_API_KEY": odd}
    )
    places = {
        "api_key": [
            lambda: stream.connect("http://h/v1", "m", api_key=odd),
            lambda: OpenAISpeaker("http://h", api_key=odd),
        ],
        "OPENAI_API_KEY": [
            lambda: stream.connect("https://api.openai.com/v1", "m"),
            lambda: asyncio.run(OpenAISpeaker().start()),
        ],
        "CUES_SPEECH_API_KEY": [lambda: asyncio.run(choose_speaker(environment=os.environ))],
        "the header authorization": [lambda: record("http://h/v1", {}, headers={"authorization": odd})],
    }
    for name, ways in places.items():
        for use in ways:
            with pytest.raises(StreamValueError, match=rf"^{name} has U\+.* as character {place}; ") as raised:
                use()
            assert "hun" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:word@host:8000/v1?key=word", "https://host:8000/v1"),
        ("//me:word@host/v1", "//host/v1"),
        ("me:word@host/v1", "host/v1"),
        ("http:/me:word@host", "http:/host"),
        ("http://me:p@ss/word@host/v1", "http://host/v1"),
        ("https://host/models/a@b", "https://host/models/a@b"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://me:wo/22@host:8000/v1", "http://host:8000/v1"),
        ("http://me:wo?rd@host/v1", "http://host/v1"),
        ("http://me:wo#rd@host", "http://host"),
        ("http://host/v1?mail=a@b", "http://host/v1"),
    ],
)
def test_no_user_or_password_is_shown_also_of_an_invalid_address(url, shown):
    assert shown_url(url) == shown


def test_a_connection_shows_no_password():
    assert "word" not in repr(stream.connect("http://me:word@host", "m"))


CLIENT = "a client needs the `services` extra"


@pytest.mark.parametrize(
    ("package", "make", "purpose", "extra"),
    [
        ("httpx2", lambda: stream.connect(model="m"), CLIENT, "services"),
        ("pydantic", lambda: stream.Tool.of(print), "tools from functions need pydantic", "services"),
        ("jsonschema", lambda: stream.services.Validator([tool("f")]), "validation needs jsonschema", "services"),
    ],
    ids=["httpx2", "pydantic", "jsonschema"],
)
def test_a_missing_package_is_an_error_of_this_layer_with_the_command(monkeypatch, package, make, purpose, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingFeatureError, match=rf"{purpose}: .*\[{extra}\]"):
        make()
