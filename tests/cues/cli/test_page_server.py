"""The server of the pages, over real HTTP: the sound board that is made anew, and who may read it."""

import http.client
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from cues.errors import CueError
from tests.support.live_server import board_server


@pytest.fixture
def serve(tmp_path):
    """A function that starts a server of the page that `make` makes."""
    with ExitStack() as stack:
        yield lambda make, **address: stack.enter_context(board_server(make, [tmp_path], **address))


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def asked(server, method="GET", path="/", **headers):
    """The status, the headers and the body of one answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def port_of(server):
    return int(server.url.rstrip("/").rpartition(":")[2])


def changes(server, state):
    return connect(f"{server.url.replace('http', 'ws')}changes?{state}")


def test_the_page_is_made_once_for_each_state_of_the_files(serve, tmp_path):
    made = []
    server = serve(lambda state: made.append(state) or f"page {len(made)}")
    with ThreadPoolExecutor(8) as clients:
        assert set(clients.map(get, [server.url] * 16)) == {"page 1"}
    (tmp_path / "new.wav").write_bytes(b"x")
    assert [get(server.url), get(server.url)] == ["page 2", "page 2"]
    assert made[0] != made[1]


def test_head_has_the_headers_of_get_and_no_body(serve):
    status, headers, body = asked(serve(lambda _: "page"), "HEAD")
    assert (status, body) == (200, b"")
    assert (headers["Content-Type"], headers["Content-Length"]) == ("text/html; charset=utf-8", "4")
    assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")


@pytest.mark.parametrize("host", ["localhost:{}", "127.0.0.1:{}", "[::1]:{}", "[::1]", "LOCALHOST", "127.0.0.1:9000"])
def test_a_request_to_this_machine_is_answered(serve, host):
    server = serve(lambda _: "page")
    assert asked(server, Host=host.format(port_of(server)))[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8485",
        "localhost.evil.example",
        "[::1].evil",
        "evil@localhost",
        "localhost:x",
        "192.168.1.5:8485",
        "",
    ],
)
def test_a_request_to_another_name_is_refused(serve, host):
    server = serve(lambda _: "page")
    for method, path in (("GET", "/"), ("HEAD", "/"), ("GET", "/changes?x")):
        assert asked(server, method, path, Host=host)[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_a_request_from_another_page_is_refused(serve, origin):
    assert asked(serve(lambda _: "page"), Origin=origin)[0] == 403


def test_a_change_in_a_pack_is_reported_also_one_before_the_page_asks(serve, tmp_path):
    server = serve(lambda state: state)
    known = get(server.url)
    with changes(server, known) as waiting:
        with pytest.raises(TimeoutError):
            waiting.recv(timeout=0.1)
        (tmp_path / "new.wav").write_bytes(b"x")
        assert waiting.recv(timeout=10) == "changed"
    with changes(server, known) as late:
        assert late.recv(timeout=10) == "changed"


def test_a_server_that_ends_hangs_up_on_the_pages_that_wait(tmp_path):
    with board_server(lambda state: state, [tmp_path]) as server:
        waiting = changes(server, get(server.url))
    with pytest.raises(ConnectionClosed):
        waiting.recv(timeout=1)


def test_a_pack_that_is_broken_for_a_moment_is_a_page_that_says_so(serve, tmp_path):
    def make(_):
        if (tmp_path / "broken").exists():
            raise CueError("<b>colour</b> is unknown")
        return "page"

    server = serve(make)
    (tmp_path / "broken").touch()
    assert "&lt;b&gt;colour&lt;/b&gt; is unknown" in get(server.url)
    (tmp_path / "broken").unlink()
    assert get(server.url) == "page"


def test_other_paths_are_not_there(serve):
    assert asked(serve(lambda _: "page"), path="/etc/passwd")[0] == 404


def test_a_port_that_is_taken_is_an_error(serve):
    server = serve(lambda _: "page")
    with pytest.raises(CueError, match="cannot listen on"):
        serve(lambda _: "page", port=port_of(server))
