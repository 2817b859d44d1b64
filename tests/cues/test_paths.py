from pathlib import Path

import platformdirs
import pytest

from cues.library.cache import cache_dir
from cues.library.pack import find_pack_dir
from cues.paths import user_cache_dir, user_config_dir


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
