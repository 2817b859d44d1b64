"""The command that installs an extra, as the metadata of the installation has it."""

import json
import shutil
import sys

import pytest

import cues.extras


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Make Python find an installation of the package with this `direct_url.json`."""

    def install(direct_url):
        folder = tmp_path / "site" / "cue_engine-9.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: cue-engine\nVersion: 9\n")
        if direct_url is not None:
            (folder / "direct_url.json").write_text(direct_url)
        monkeypatch.syspath_prepend(folder.parent)

    monkeypatch.setattr(shutil, "which", lambda _: str(sys.prefix + "/bin/pip"))
    monkeypatch.setattr(sys, "executable", sys.prefix + "/bin/python")
    return install


@pytest.mark.parametrize(
    ("direct_url", "command"),
    [
        (None, "pip install 'cue-engine[page]'"),
        ("no JSON", "pip install 'cue-engine[page]'"),
        ({"url": "https://example.org/x.whl"}, "pip install 'cue-engine[page]'"),
        ({"url": "file:///home/me/clone", "dir_info": {}}, "pip install '/home/me/clone[page]'"),
        (
            {"url": "file:///home/me/a%20clone", "dir_info": {"editable": True}},
            "pip install -e '/home/me/a clone[page]'",
        ),
    ],
    ids=["an index", "broken metadata", "a wheel", "a clone", "an editable clone"],
)
def test_the_command_names_where_the_package_came_from(installed, direct_url, command):
    installed(direct_url if isinstance(direct_url, str | None) else json.dumps(direct_url))
    assert cues.extras.pip_install("page") == command


def test_in_the_clone_itself_the_command_is_short_and_a_pip_of_another_environment_is_not_named(
    installed, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/pip")
    installed(json.dumps({"url": tmp_path.as_uri(), "dir_info": {}}))
    assert cues.extras.pip_install("page") == f"{sys.executable} -m pip install '.[page]'"
