import re
from pathlib import Path

import platformdirs
import pytest

from cues.errors import AudioFileError
from cues.files import explained, replacing, unfinished_name, user_cache_dir, user_config_dir
from cues.library.cache import cache_dir
from cues.library.pack import find_pack_dir


def test_a_file_takes_its_place_when_it_is_whole(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    with replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
        assert unfinished_name(part) == "x.txt"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt])
def test_a_file_whose_writing_breaks_off_leaves_the_old_one_and_nothing_else(tmp_path, error):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def break_off():
        with replacing(path) as part:
            part.write_text("ne")
            raise error

    with pytest.raises(error):
        break_off()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["x.txt", ".x.txt.cues-part", ".x.txt.ABCD1234.cues-part", "x.txt.abcd1234.cues-part"])
def test_any_other_file_is_no_unfinished_one(name):
    assert unfinished_name(Path(name)) is None


def test_an_error_of_the_disk_names_the_file_and_the_reason(tmp_path):
    path = tmp_path / "x.txt"
    says = rf"^{re.escape(str(path))}: cannot be read: No such file or directory$"
    with pytest.raises(AudioFileError, match=says), explained(path, "cannot be read", AudioFileError):
        path.read_bytes()


def no_home(*_, **__):
    raise RuntimeError("could not determine the home directory")


@pytest.mark.parametrize("answer", [no_home, lambda *_, **__: Path("~/.cache/cue-engine")])
def test_a_user_without_a_home_has_no_folders_and_gets_none_here(answer, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUES_CACHE_DIR", raising=False)
    monkeypatch.delenv("CUES_PACK", raising=False)
    for kind in ("user_cache_path", "user_config_path"):
        monkeypatch.setattr(platformdirs, kind, answer)
    assert (user_cache_dir(), user_config_dir(), cache_dir(), find_pack_dir(None)) == (None, None, None, None)
    assert not list(tmp_path.iterdir())
