"""The sample tools: what they read, and what they keep to themselves."""

import os

import pytest

import stream


@pytest.fixture
def tools(tmp_path):
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    listing, reading = stream.services.filesystem_tools(tmp_path)
    return listing.function, reading.function


def test_a_named_pipe_and_a_folder_are_refused_and_block_nothing(tools, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(PermissionError, match=f"not a regular file: '{name}'"):
            tools[1](name)


@pytest.mark.parametrize("name", ["gone.txt", "sub/gone.txt", "circle", "notes.txt/x", "x" * 300, "../gone"])
@pytest.mark.parametrize("which", [0, 1], ids=["list", "read"])
def test_no_error_names_a_path_of_the_host(tools, tmp_path, which, name):
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match=name[:6].replace(".", r"\.")) as error:
        tools[which](name)
    assert str(tmp_path) not in str(error.value)
    assert str(tmp_path) not in repr(error.value)


def test_they_list_and_read_one_folder(tools, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_text("grüß dich", encoding="utf-8")
    assert tools[0]() == ["b.txt", "notes.txt", "sub/"]
    assert tools[1]("b.txt") == "grüß dich"


@pytest.mark.parametrize("path", ["..", "../other.txt", "/etc/passwd", "sub/../../other.txt", "link"])
def test_they_see_nothing_outside_of_their_folder(tools, tmp_path, tmp_path_factory, path):
    (tmp_path / "link").symlink_to(tmp_path_factory.mktemp("outside") / "secret")
    for one in tools:
        with pytest.raises(PermissionError, match="out of the folder"):
            one(path)


def test_a_long_listing_says_how_much_it_leaves_out(tools, tmp_path):
    for number in range(300):
        (tmp_path / f"{number:03}").touch()
    assert tools[0]()[-2:] == ["199", "... and 101 more"]
