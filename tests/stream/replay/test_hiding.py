"""Secrets in a recording: each way in which they were sent, and in which a server quotes them."""

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest

from stream.replay.hiding import Secrets

KEY = 'sk-Hidden/Key+"0123='
IN_URL = quote(KEY, safe="")
LOGIN = b64encode(f"user:{KEY}".encode()).decode()
SENT = [
    (f"http://h/v1?alt=sse&key={IN_URL}", {}),
    (f"http://user:{IN_URL}@h/v1", {}),
    (f"http://{IN_URL}@h/v1", {}),
    ("http://h/v1", {"X-Api-Key": KEY}),
    ("http://h/v1", {"authorization": f"Bearer {KEY}"}),
]


@pytest.mark.parametrize(("url", "headers"), SENT)
@pytest.mark.parametrize(
    "quoted",
    [
        *(KEY, KEY.upper(), IN_URL, json.dumps(KEY)[1:-1].replace("/", r"\/")),
        "".join(f"\\u{ord(char):04X}" for char in KEY),
        "".join(f"%{ord(char):02x}" for char in KEY),
        KEY.replace("H", r"\u0048").replace('"', "%22"),
    ],
)
def test_a_key_is_hidden_however_it_was_sent_and_the_server_quotes_it(url, headers, quoted):
    body = f'{{"error": "Incorrect key {quoted}"}}'.encode()
    assert Secrets(url, headers).hide(body) == f'{{"error": "Incorrect key {"*" * len(quoted)}"}}'.encode()


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("code", [b64encode, urlsafe_b64encode])
def test_a_key_is_hidden_in_the_base64_of_a_text(before, code):
    quoted = code(f"{before}{KEY}?after".encode())
    hidden = Secrets("http://h/", {"x-api-key": KEY}).hide(quoted)
    assert len(hidden) == len(quoted)
    assert hidden.count(b"*") >= 8 * len(KEY) // 6 - 1


def test_the_password_of_basic_is_hidden():
    hidden = Secrets("http://h/", {"Authorization": f"Basic {LOGIN}"}).hide(f"{KEY}, user, {LOGIN}".encode())
    assert hidden == f"{'*' * len(KEY)}, user, {'*' * len(LOGIN)}".encode()


def test_the_value_of_a_cookie_is_hidden_without_its_name():
    hidden = Secrets("http://h/", {"Cookie": f"theme=dark; session={KEY};path=x"}).hide(f"{KEY}, session".encode())
    assert hidden == f"{'*' * len(KEY)}, session".encode()


def test_the_words_of_a_title_are_not_secrets():
    headers = {"X-Title": "Home Assistant", "X-My-Auth": f"Custom {KEY}"}
    said = f'{{"role": "assistant", "content": "{KEY}"}}'.encode()
    assert Secrets("http://h/", headers).hide(said) == said.replace(KEY.encode(), b"*" * len(KEY))


def test_words_that_every_client_sends_are_not_secrets():
    sent = {"Host": "localhost:8000", "Accept-Encoding": "identity", "Connection": "keep-alive", "X-Api-Key": KEY}
    said = b"Your Identity card, at localhost:8000; keep-alive."
    assert Secrets("http://localhost:8000/v1", sent).hide(said) == said


def test_a_login_is_hidden_as_the_client_sends_it():
    assert Secrets(f"http://user:{IN_URL}@h/v1", {}).hide_in(f"Basic {LOGIN}") == f"Basic {'*' * len(LOGIN)}"


FIELDS = ["Authorization", "API_KEY", "apiKey", "x-api-key", "X-Auth-Token", "access_token", "clientSecret", "password"]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", ["hidden", ["hidden"], ["x\\", 'a "hidden"'], {"value": "hidden\\"}])
def test_a_field_for_a_secret_is_hidden_in_any_spelling(field, value):
    tools = [{"type": "mcp", "headers": {field: value}, "name": "stays"}]
    assert "hidden" not in json.dumps(Secrets("http://h/", {}).hide_in_request({"tools": tools}))
    for sent in (tools, {"arguments": json.dumps(tools)}, {"arguments": json.dumps(tools, indent=1)}):
        body = json.dumps(sent).encode()
        hidden = Secrets("http://h/", {}).hide(body)
        assert b"hidden" not in hidden
        assert b"stays" in hidden
        assert len(hidden) == len(body)
        found = json.loads(hidden)
        json.loads(found["arguments"] if isinstance(found, dict) else "0")


@pytest.mark.parametrize("value", ["hidden", ["x", "hidden"]])
@pytest.mark.parametrize("is_escaped", [False, True])
def test_a_secret_is_hidden_also_where_the_answer_is_cut_off(value, is_escaped):
    text = json.dumps({"api_key": value})
    body = (json.dumps({"arguments": text}) if is_escaped else text).encode()
    for cut in range(body.index(b"hidden") + 3, len(body)):
        assert b"hid" not in Secrets("http://h/", {}).hide(body[:cut])


def test_a_key_in_the_body_of_a_request_is_hidden_where_the_server_quotes_it():
    body = {"model": "m", "litellm": [{"api_key": {"value": KEY}}], "tools": [{"api_key": {"type": "a string"}}]}
    hidden = Secrets("http://h/", {}, body).hide(f"Incorrect API key {KEY}: a string".encode())
    assert hidden == f"Incorrect API key {'*' * len(KEY)}: a string".encode()


PLACES = [
    {"tools": [{"type": "mcp", "server_url": f"https://user:{IN_URL}@host/mcp"}]},
    {"tools": [{"type": "mcp", "server_url": f"https://{IN_URL}@host/mcp"}]},
    *({"mcp_servers": [{"url": f"https://host/sse?a=b&{name}={IN_URL}"}]} for name in ("api_key", "exaApiKey", "sig")),
    {"input": f"Ask https://host/?token={IN_URL}, please."},
    {"tools": [{"type": "mcp", "headers": {"X-Tenant": KEY, "Accept": [KEY], "X-More": {"a": KEY}}}]},
    {"tools": [{"type": "mcp", "authorization": KEY}]},
    {"extra_headers": [{"name": "X-Tenant", "value": KEY}]},
    *({"options": [{name: "Authorization", "value": f"Bearer {KEY}"}]} for name in ("name", "key")),
    {"options": [{"value": KEY, "name": "x-api-key"}]},
    {"data_sources": [{"parameters": {"authentication": {"type": "api_key", "key": KEY}}}]},
    {"tools": [{"authConfig": {"apiKeyConfig": {"apiKeyString": KEY}}}]},
    {"account": {"private_key": KEY}},
    *({name: KEY} for name in ("langfuse_secret_key", "azure_ad_token", "hf_token", "idToken", "apiToken", "passwd")),
]


@pytest.mark.parametrize("request_", PLACES, ids=str)
def test_a_secret_anywhere_in_the_body_of_a_request_is_hidden(request_):
    secrets = Secrets("http://h/", {}, request_)
    hidden = json.dumps(secrets.hide_in_request(request_)) + secrets.hide(json.dumps(request_).encode()).decode()
    assert "Hidden" not in hidden
    assert "0123" not in hidden
    if f"/{IN_URL}@" not in json.dumps(request_):  # a lone name may be a word
        assert secrets.hide_in(f"Wrong key {KEY}!") == f"Wrong key {'*' * len(KEY)}!"


@pytest.mark.parametrize("separator", ["&", "&amp;", r"\u0026"])
def test_a_short_key_is_hidden_where_the_server_quotes_the_url_or_the_pair(separator):
    quoted = f'{{"url": "https://host/mcp?mode=fast{separator}token=tiny"}}, {{"name": "X-Api-Key", "value": "tiny"}}'
    assert Secrets("http://h/", {}).hide(quoted.encode()) == quoted.replace("tiny", "****").encode()


def test_words_of_messages_and_schemas_stay():
    schema = {"type": "object", "description": "assistant", "default": "none"}
    request = {
        "tools": [
            {"name": "get_secret", "parameters": {"properties": {"headers": schema, "auth": schema, "value": schema}}},
            {"name": "request", "input_schema": {"$defs": {"Headers": schema, "Credentials": schema}}},
        ],
        "messages": [
            {
                "role": "user",
                "content": "Is the password key=value, or x ?token== y;key=z? Mail me@example.org, not a:b@c.",
            },
            {"role": "user", "content": "https://example.org/watch?v=elephants&page=12345678#key=a, authorization: no"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "sum", "arguments": '{"headers": ["Name"]}'}}]},
            {"role": "assistant", "content": [{"type": "tool_use", "input": {"headers": ["Name", "Total amount"]}}]},
        ],
    }
    assert Secrets("http://h/", {}, request).hide_in_request(request) == request


def test_a_word_in_a_header_or_a_parameter_is_hidden_there_alone():
    request = {
        "tools": [{"headers": {"X-Role": "assistant"}, "server_url": "https://host/?code=assistant"}],
        "messages": [{"role": "assistant", "content": "assistant"}],
    }
    hidden = Secrets("http://h/", {}, request).hide_in_request(request)
    tool = {"headers": {"X-Role": "*********"}, "server_url": "https://host/?code=*********"}
    assert hidden == {**request, "tools": [tool]}


def test_what_is_no_secret_stays():
    request = {"tools": [{"parameters": {"properties": {"password": {"type": "string"}}}}], "token": "Hello", "n": 1}
    request |= {"pad_token": "<pad>", "eos_token": "</s>"}
    assert Secrets("http://h/?alt=sse", {"accept": "text/event-stream"}).hide_in_request(request) == request


def test_a_header_that_looks_like_json_does_not_break_the_request():
    request = {"messages": [{"role": "user", "content": "hi"}]}
    assert Secrets("http://h/", {"x-a": '"role": "user"'}).hide_in_request(request) == request


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        (["Authorization: Bearer hid-123456789", "X-Foo:hid-123456789"], ["Authorization: ", "X-Foo:"]),
        ("Authorization: Bearer hid-123456789\r\nX-Foo: hid-123456789", ["Authorization: ", "X-Foo: "]),
        (["  X-Foo: hid-123456789"], ["  X-Foo: "]),
        ([["X-Foo", "hid-123456789"], ["X-Number", 98765432101]], ["X-Foo", "X-Number"]),
        ({"X-Foo": 98765432101, "X-Bar": [98765432101.5]}, ["X-Foo", "X-Bar"]),
        ([{"name": "Authorization", "value": "Bearer hid-123456789"}], ["Authorization"]),
        ([{"name": "Authorization", "value": "Basic dXNlcjpoaWQtMTIzNDU2Nzg5"}], ["Authorization"]),  # user:hid-1…
    ],
    ids=["texts", "text", "indented", "pairs", "numbers", "objects", "login"],
)
def test_headers_of_a_request_are_hidden_in_any_form(headers, kept):
    request = {"tools": [{"type": "mcp", "headers": headers}]}
    secrets = Secrets("http://h/", {}, request)
    hidden = json.dumps(secrets.hide_in_request(request))
    assert not any(secret in hidden for secret in ("hid-", "98765432101"))
    assert all(name in hidden for name in kept)
    said = "98765432101" if "98765432101" in str(headers) else "hid-123456789"
    assert said not in secrets.hide_in(f"{said} was sent")


def test_words_that_are_called_headers_stay():
    request = {"table": {"headers": ["Name", "Price in EUR: net", "Age"], "rows": [["hammer", 12345678901]]}}
    assert Secrets("http://h/", {}, request).hide_in_request(request) == request
