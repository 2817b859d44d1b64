"""The house rules, held against the code: imports point one way, and importing loads nothing heavy."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("cues", "stream")
HEAVY = {"numba", "scipy", "soundfile", "soxr", "openai", "httpx2", "matplotlib", "click", "rich", "h11", "jsonschema"}
ROOMS_ABOVE_BOTH = ("cues.cli", "cues.adapters", "cues.__main__")
# Inside `stream`, the router and what sits above it may know the audio engine; speakers may use its voice-like signal.
STREAM_ROOMS_THAT_HEAR = ("stream.routing", "stream.session", "stream.speech.voice_like")


def _modules(package: str) -> list[tuple[str, Path]]:
    found = []
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found.append((".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


def _imports(path: Path) -> set[str]:
    """Every module that a file imports anywhere, those for type checkers only left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return names


def _below(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


@pytest.mark.parametrize(("name", "path"), _modules("cues"), ids=lambda value: value if isinstance(value, str) else "")
def test_the_engine_never_imports_the_stream_layer(name, path):
    if not _below(name, ROOMS_ABOVE_BOTH):
        assert not {found for found in _imports(path) if _below(found, ("stream",))}


@pytest.mark.parametrize(
    ("name", "path"), _modules("stream"), ids=lambda value: value if isinstance(value, str) else ""
)
def test_only_the_router_and_what_sits_above_it_imports_the_engine(name, path):
    if not _below(name, STREAM_ROOMS_THAT_HEAR):
        assert not {found for found in _imports(path) if _below(found, ("cues",))}


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_imports_the_rooms_that_compose_both_packages(package):
    for name, path in _modules(package):
        if not _below(name, ROOMS_ABOVE_BOTH):
            assert not {found for found in _imports(path) if _below(found, ROOMS_ABOVE_BOTH)}, name


@pytest.mark.parametrize("name", [name for name, _ in _modules("stream") if _below(name, ("stream.readers",))])
def test_the_readers_know_neither_sockets_nor_files_nor_clocks(name):
    forbidden = ("asyncio", "socket", "time", "io", "pathlib", "os", "openai", "httpx2", "cues")
    seen, queue = set(), [name]
    while queue:
        module = queue.pop()
        if module in seen:
            continue
        seen.add(module)
        path = Path(importlib.import_module(module).__file__)
        imports = _imports(path)
        assert not {found for found in imports if _below(found, forbidden)}, module
        queue += [found for found in imports if _below(found, ("stream",))]


@pytest.mark.parametrize("package", PACKAGES)
def test_kernels_are_the_only_place_that_names_numba(package):
    for name, path in _modules(package):
        if not name.startswith("cues._kernels"):
            assert (
                not {found for found in _imports(path) if _below(found, ("numba",))} or name == "cues.mixing.warmup"
            ), name


def test_importing_both_packages_loads_nothing_heavy():
    script = "import sys, cues, stream; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not HEAVY & {name.partition(".")[0] for name in loaded}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_can_be_had_and_is_listed(package):
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_says_what_is_public(package):
    for name, path in _modules(package):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defines = any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in tree.body)
        targets = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        is_script = any("__main__" in ast.dump(node) for node in tree.body if isinstance(node, ast.If))
        assert not defines or is_script or "__all__" in targets, name
