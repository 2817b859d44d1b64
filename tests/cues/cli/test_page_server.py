import threading
import urllib.error
import urllib.request

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


def test_the_page_is_made_for_each_request(serve):
    made = []
    server = serve(lambda reload: made.append(reload) or f"page {len(made)}")
    assert [get(server.url), get(server.url)] == ["page 1", "page 2"]
    assert made[0] == made[1]
    assert made[0].startswith("changes?")


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
    with pytest.raises(CueError, match="cannot be served on"):
        PageServer(lambda _: "page", [], int(server.url.rstrip("/").rpartition(":")[2]))
