"""Recordings on disk: what is one, what is not, and that nothing of it is lost."""

import pytest

from stream.errors import RecordingError
from stream.replay.recording import Recording, load_recording, samples_folder, save_recording


@pytest.mark.parametrize(
    "path", sorted(samples_folder().rglob("*.sse")) + sorted(samples_folder().rglob("*.ndjson")), ids=lambda p: p.name
)
def test_the_recordings_that_come_with_the_package_load_and_their_pieces_add_up(path):
    recording = load_recording(path)
    assert b"".join(recording.pieces()) == recording.body == path.read_bytes()
    assert recording.kind == path.suffix[1:]


def test_a_saved_recording_comes_back_as_it_was(tmp_path):
    recording = Recording(
        name="x",
        kind="sse",
        body=b"data: 1\n\ndata: 2",
        status=207,
        reads=((9, 1.5), (7, 2.5)),
        headers={"content-type": "text/event-stream"},
        request={"model": "m", "messages": []},
    )
    save_recording(recording, tmp_path / "x.sse")
    assert load_recording(tmp_path / "x.sse") == recording


def test_a_body_that_was_cut_keeps_its_last_piece():
    assert Recording(name="x", kind="sse", body=b"data: 1\n\ndata: 2").pieces() == [b"data: 1\n\n", b"data: 2"]
    assert Recording(name="x", kind="ndjson", body=b"{}\n{").pieces() == [b"{}\n", b"{"]


def test_an_empty_body_is_a_recording_of_its_suffix(tmp_path):
    (tmp_path / "empty.ndjson").write_bytes(b"")
    recording = load_recording(tmp_path / "empty.ndjson")
    assert (recording.kind, recording.pieces()) == ("ndjson", [])


@pytest.mark.parametrize(
    ("name", "content"), [("picture.sse", b"\x89PNG\r\n"), ("page.txt", b"<html>"), ("empty.txt", b"")]
)
def test_a_file_that_is_no_recording_is_refused_with_its_name(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RecordingError, match=f"{name} .*begins with"):
        load_recording(tmp_path / name)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(RecordingError, match="No such file"):
        load_recording(tmp_path / "none.sse")
    with pytest.raises(RecordingError, match="directory"):
        load_recording(tmp_path)


@pytest.mark.parametrize(
    ("side", "says"),
    [
        ('{"bytes_and_ms_of_each_read": [[3, 1.0]]}', "add up to 3 bytes"),
        ("[]", "must be an object"),
        ("{", "cannot read"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "cannot read"),
        ('{"status": 1e400}', "does not describe"),
        ('{"status": "many"}', "does not describe"),
        ('{"bytes_and_ms_of_each_read": [7]}', "does not describe"),
    ],
)
def test_a_side_file_that_does_not_fit_is_refused(tmp_path, side, says):
    (tmp_path / "x.sse").write_bytes(b"data: 1\n\n")
    (tmp_path / "x.http.json").write_text(side)
    with pytest.raises(RecordingError, match=says):
        load_recording(tmp_path / "x.sse")
