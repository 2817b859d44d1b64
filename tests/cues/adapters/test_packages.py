"""One line for a pipeline's package that is missing, too old or too new."""

import json
import subprocess
import sys
from importlib import metadata

import pytest
from click.testing import CliRunner

from cues import extras
from cues.cli import group
from cues.errors import MissingFeatureError
from cues.extras import pip_install, require


def with_version(monkeypatch, version):
    def installed(_name):
        if version is None:
            raise metadata.PackageNotFoundError
        return version

    monkeypatch.setattr(extras.metadata, "version", installed)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (None, f"needs pipecat-ai>=1.14,<2, which is not installed: {pip_install('pipecat')}"),
        ("1.13.9", "needs pipecat-ai>=1.14,<2; 1.13.9 is too old"),
        ("2.0.0", "needs pipecat-ai>=1.14,<2; 2.0.0 is newer than this adapter knows"),
        ("0.0.108", "0.0.108 is too old"),
    ],
    ids=["missing", "old", "new", "ancient"],
)
def test_a_version_that_the_adapter_does_not_know_is_one_clear_line(monkeypatch, version, words):
    with_version(monkeypatch, version)
    with pytest.raises(MissingFeatureError) as failure:
        require("pipecat")
    assert words in str(failure.value)
    assert "\n" not in str(failure.value)


WITHOUT_PACKAGES = """
import importlib, sys
from importlib import metadata
for name in ("agents", "fastrtc", "livekit", "pipecat"):
    sys.modules[name] = None
metadata.version = lambda name: (_ for _ in ()).throw(metadata.PackageNotFoundError(name))
importlib.import_module("cues.adapters." + sys.argv[1])
"""


@pytest.mark.parametrize("adapter", ["agents_sdk", "agents_voice", "fastrtc", "livekit", "pipecat"])
def test_an_adapter_without_its_package_says_what_to_install(adapter):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGES, adapter], capture_output=True, text=True, timeout=60, check=False
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("cues.errors.MissingFeatureError: ")
    assert "which is not installed: " in last
    assert "pip install" in last


@pytest.mark.parametrize("version", ["1.14", "1.14.0", "1.99.3", "1.15.0rc1", "1.14.0.post1"])
def test_a_version_in_range_is_taken(monkeypatch, version):
    with_version(monkeypatch, version)
    assert require("pipecat") == version


@pytest.mark.parametrize(
    ("version", "state", "words"),
    [("1.14.0", "ok", "pipecat-ai 1.14.0"), ("2.0.0", "hint", "2.0.0 is newer than this adapter knows")],
    ids=["known", "too new"],
)
def test_the_doctor_says_which_pipelines_are_installed_and_whether_their_adapters_take_them(
    monkeypatch, version, state, words
):
    with_version(monkeypatch, version)
    findings = json.loads(CliRunner().invoke(group, ["doctor", "--json"]).output)["findings"]
    (pipecat,) = [finding for finding in findings if finding["topic"] == "pipecat"]
    assert pipecat["state"] == state
    assert words in pipecat["text"]


def test_the_doctor_minds_no_pipeline_that_is_missing(monkeypatch):
    monkeypatch.setattr(metadata, "distributions", lambda **_: iter(()))
    findings = json.loads(CliRunner().invoke(group, ["doctor", "--json"]).output)["findings"]
    (pipecat,) = [finding for finding in findings if finding["topic"] == "pipecat"]
    assert (pipecat["state"], pipecat["fix"]) == ("ok", "")
    assert pip_install("pipecat") in pipecat["text"]
