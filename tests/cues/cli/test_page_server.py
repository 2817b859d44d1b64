import http.client
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from cues.cli._page_server import PageServer
from cues.errors import CueError


@pytest.fixture
def serve(tmp_path):
    servers = []

    def start(make):
        server = PageServer(make, [tmp_path], 0, poll_s=0.01)
        thread = threading.Thread(target=server.run)
        thread.start()
        servers.append((server, thread))
        return server

    yield start
    for server, thread in servers:
        server.close()
        thread.join()


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def test_the_page_is_made_once_for_each_state_of_the_files(serve, tmp_path):
    made = []
    server = serve(lambda reload: made.append(reload) or f"page {len(made)}")
    with ThreadPoolExecutor(8) as clients:
        assert set(clients.map(get, [server.url] * 16)) == {"page 1"}
    (tmp_path / "new.wav").write_bytes(b"x")
    assert [get(server.url), get(server.url)] == ["page 2", "page 2"]
    assert made[0] != made[1]
    assert made[0].startswith("changes?")


def asked(server, method, path="/", **headers):
    """The status, the headers and the body of one answer."""
    port = int(server.url.rstrip("/").rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


@pytest.mark.parametrize("path", ["/", "/changes?x"])
def test_head_has_the_headers_of_get_and_no_body(serve, path):
    status, headers, body = asked(serve(lambda _: "page"), "HEAD", path)
    assert (status, body) == (200, b"")
    assert headers["Content-Type"].startswith("text/")
    assert headers.get("Content-Length", "4") == "4"


@pytest.mark.parametrize("host", ["localhost:{}", "127.0.0.1:{}", "[::1]:{}", "LOCALHOST", "127.0.0.1:9000"])
def test_a_request_to_this_machine_is_answered(serve, host):
    server = serve(lambda _: "page")
    port = server.url.rstrip("/").rpartition(":")[2]
    assert asked(server, "GET", Host=host.format(port))[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8485",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil@localhost",
        "localhost:x",
        "localhost/",
        "192.168.1.5:8485",
        "[::1",
        "",
    ],
)
def test_a_request_to_another_name_is_refused(serve, host):
    made = []
    server = serve(lambda _: made.append(1) or "page")
    for method, path in (("GET", "/"), ("HEAD", "/"), ("GET", "/changes?x")):
        assert asked(server, method, path, Host=host)[0] == 403
    assert made == []


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_a_request_from_another_page_is_refused(serve, origin):
    assert asked(serve(lambda _: "page"), "GET", Origin=origin)[0] == 403


def test_a_change_in_a_pack_is_told(serve, tmp_path):
    server = serve(lambda reload: reload)
    with urllib.request.urlopen(server.url + get(server.url), timeout=10) as events:
        assert events.readline() == b": waiting\n"
        (tmp_path / "new.wav").write_bytes(b"x")
        assert any(events.readline() == b"event: changed\n" for _ in range(1000))


def test_a_change_before_the_page_asks_for_changes_is_told_too(serve, tmp_path):
    server = serve(lambda reload: reload)
    address = get(server.url)
    (tmp_path / "new.wav").write_bytes(b"x")
    with urllib.request.urlopen(server.url + address, timeout=10) as events:
        assert events.readline() == b"event: changed\n"


def test_a_pack_that_is_broken_for_a_moment_is_a_page_that_says_so(serve):
    def broken(_):
        raise CueError("<b>colour</b> is unknown")

    page = get(serve(broken).url)
    assert "&lt;b&gt;colour&lt;/b&gt; is unknown" in page


def test_other_paths_are_not_there(serve):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(serve(lambda _: "page").url + "etc/passwd")


def test_a_port_that_is_taken_is_an_error(serve):
    server = serve(lambda _: "page")
    with pytest.raises(CueError, match="cannot listen on"):
        PageServer(lambda _: "page", [], int(server.url.rstrip("/").rpartition(":")[2]))
