"""Build the package and check what users would install: reproducible, complete, without our tests, typed, offline.

`pip install -e '.[package]' && python .ci/check_package.py [DIR]`, in a clean checkout. DIR gets the wheel, the source
archive and the list of what an installation holds (SBOM, CycloneDX).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TYPING = ROOT / "tests" / "typing"
sys.path.insert(0, str(TYPING))
from page_blocks import write_modules  # noqa: E402  (it stands beside the tests that use it, too)

CONSUMER = TYPING / "consumer.py"
# Has the packages of the pipelines; the README's test command makes it.
TESTS_PYTHON = ROOT / ".venv" / "bin" / "python"
NEEDED = ("cues/py.typed", "stream/py.typed", "cues/README.md", "stream/README.md", "cues/adapters/unmute.patch")
FOREIGN = ("tests/", "bench/", ".ci/", "__pycache__")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Output of a command; its failure ends the check."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        sys.exit(f"NOT {' '.join(str(part) for part in command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def built(folder: Path) -> dict[str, str]:
    """Names of the files that a build makes, with their digests; the wheel is built from the source archive."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def contents(folder: Path) -> dict[str, list[str]]:
    """Names of the files in the wheel and in the source archive, the latter without its top folder."""
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as zipped, tarfile.open(archive) as tarred:
        return {"wheel": zipped.namelist(), "source archive": [name.partition("/")[2] for name in tarred.getnames()]}


def audit(packages: Path) -> str:
    """One line on known vulnerabilities of the installed packages. An index without that service is no failure."""
    command = [Path(sys.executable).parent / "pip-audit", "-f", "json", "--path", packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    try:
        found = json.loads(done.stdout)["dependencies"]
    except ValueError:
        return "not run: pip-audit reached no service"
    unsafe = [f"{part['name']} {part['version']}" for part in found if part.get("vulns")]
    audited = sum("skip_reason" not in part for part in found)
    if unsafe:
        sys.exit(f"NOT free of known vulnerabilities: {', '.join(unsafe)}")
    return (
        f"ok  pip-audit knows nothing against {audited} packages" if audited else "not run: pip-audit knows no package"
    )


def check_pages(folder: Path) -> None:
    """Every Python block of the pages, as a file of a user, passes mypy and pyright at their strictest.

    But for those of `fastrtc.md`, whose package needs an environment of its own.
    """
    folder.mkdir()
    tools = Path(sys.executable).parent
    found = (path for path in ROOT.rglob("*.md") if not path.relative_to(ROOT).parts[0].startswith("."))
    pages = sorted(path for path in found if path.name != "fastrtc.md")
    files = write_modules(pages, folder)
    run(tools / "mypy", "--strict", "--config-file=", "--python-executable", TESTS_PYTHON, *files, cwd=folder)
    run(tools / "basedpyright", "--level", "error", "--pythonpath", TESTS_PYTHON, cwd=folder)
    print(f"ok  {len(files)} blocks of the pages with mypy and pyright", flush=True)


def main() -> None:
    """Print one line a check, and exit with 1 at the first that fails."""
    with tempfile.TemporaryDirectory() as work:
        dist, again, wheels, home = (Path(work) / name for name in ("dist", "again", "wheels", "home"))
        digests = built(dist)
        _say("two builds are equal, byte for byte", holds=digests == built(again))
        run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir())
        print("ok  twine check", flush=True)
        for name, files in contents(dist).items():
            _say(f"{name}: nothing is missing", [need for need in NEEDED if need not in files])
            _say(f"{name}: no tests, no benches", [f for f in files if f.startswith(FOREIGN)])
        (wheel,) = dist.glob("*.whl")
        _say("the wheel is pure Python", holds=wheel.name.endswith("-py3-none-any.whl"))
        run(sys.executable, "-m", "pip", "wheel", "-q", "--wheel-dir", wheels, wheel)
        run(sys.executable, "-m", "venv", home)
        python = home / "bin" / "python"
        run(python, "-m", "pip", "install", "-q", "--no-index", "--find-links", wheels, "cue-engine")
        print("ok  installs without a network, from a folder of wheels", flush=True)
        run(home / "bin" / "cues", "list", cwd=Path(work))
        print("ok  cues list", flush=True)
        consumer = Path(work) / "consumer.py"
        consumer.write_bytes(CONSUMER.read_bytes())
        tools = Path(sys.executable).parent
        run(tools / "mypy", "--strict", "--config-file=", "--python-executable", python, consumer, cwd=Path(work))
        print("ok  a typed consumer with mypy", flush=True)
        run(tools / "basedpyright", "--level", "error", "--pythonpath", python, consumer, cwd=Path(work))
        print("ok  a typed consumer with pyright", flush=True)
        check_pages(Path(work) / "pages")
        sbom = dist / "sbom.cdx.json"
        run(tools / "cyclonedx-py", "environment", "--output-reproducible", "-o", sbom, python)
        named = {part["name"] for part in json.loads(sbom.read_text(encoding="utf-8"))["components"]}
        _say("the SBOM names what is installed", sorted({"cue-engine", "numpy", "numba", "llvmlite"} - named))
        print(audit(next(home.glob("lib/python3.*/site-packages"))), flush=True)
        for folder in sys.argv[1:]:
            shutil.copytree(dist, folder, dirs_exist_ok=True)


def _say(claim: str, strays: list[str] | None = None, *, holds: bool = True) -> None:
    good = holds and not strays
    print(f"{'ok ' if good else 'NOT'} {claim}{': ' + ', '.join(strays) if strays else ''}")
    if not good:
        sys.exit(1)


if __name__ == "__main__":
    main()
