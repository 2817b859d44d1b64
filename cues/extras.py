"""Optional extras: import of their modules, check of their versions, and the command that installs them."""

import json
import re
import shlex
import shutil
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from cues.errors import MissingFeatureError

__all__ = ["PIPELINES", "needed", "pip_install", "require"]

PIPELINES = {
    "pipecat": ("pipecat-ai", "1.14", "2"),
    "livekit": ("livekit-agents", "1.8.9", "2"),
    "fastrtc": ("fastrtc", "0.0.34", "0.1"),
    "agents": ("openai-agents", "0.22", "1"),
}
"""extra → (distribution, the least version that its adapter takes, the first that it does not)."""


def pip_install(extra: str) -> str:
    """Command for a shell that installs an extra here; it names the folder that the package was installed from."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        said = json.loads(metadata.distribution("cue-engine").read_text("direct_url.json") or "{}")  # PEP 610
        editable, url = said.get("dir_info", {}).get("editable"), str(said.get("url", ""))
    except (metadata.PackageNotFoundError, ValueError):
        editable, url = False, ""
    beside = Path(shutil.which("pip") or "").parent == Path(sys.executable).parent
    pip = "pip" if beside else f"{shlex.quote(sys.executable)} -m pip"
    if not url.startswith("file:"):
        return f"{pip} install 'cue-engine[{extra}]'"
    folder = Path(url2pathname(urlsplit(url).path))
    here = "." if folder == Path.cwd() else str(folder)
    return f"{pip} install {'-e ' if editable else ''}{shlex.quote(f'{here}[{extra}]')}"


def needed(module: str, extra: str, purpose: str, missing: type[Exception] = MissingFeatureError) -> Any:
    """A module of an extra of `cue-engine`; if it is not installed, an error with the command that installs it.

    `purpose` begins the error's message, such as "pictures need matplotlib"; `missing` is its class.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(f"{purpose}: {pip_install(extra)}") from error


def require(extra: str) -> str:
    """The installed version of the package that an adapter is for; a missing, too old or too new one raises."""
    distribution, at_least, below = PIPELINES[extra]
    needs = f"cues.adapters.{extra} needs {distribution}>={at_least},<{below}"
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError as error:
        raise MissingFeatureError(f"{needs}, which is not installed: {pip_install(extra)}") from error
    if not _release(at_least) <= _release(version) < _release(below):
        age = "too old" if _release(version) < _release(at_least) else "newer than this adapter knows"
        raise MissingFeatureError(f"{needs}; {version} is {age}: {pip_install(extra)}")
    return version


def _release(version: str) -> tuple[int, ...]:
    """The release numbers of a version, for comparison; suffixes (`rc1`, `.dev0`) are ignored."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(number) for number in match.group().split(".")] if match else [0]
    return tuple([*numbers, 0, 0, 0][:4])
