"""The house rules of CONTRIBUTING, held against the code: who may import whom, no circles, nothing heavy at import."""

import ast
import graphlib
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("cues", "stream")
HEAVY = {"numba", "llvmlite", "scipy", "soundfile", "soxr", "openai", "httpx2"}
HEAVY |= {"matplotlib", "click", "rich", "h11", "jsonschema"}

SOUND = ("signal", "synthesis", "meters", "cue")
# Each room of `cues` and the rooms that it may import; "core" is the files at the package's root but `cue`.
ROOMS_OF_CUES = {
    "core": (),
    "_kernels": ("core",),
    "signal": ("core",),
    "synthesis": ("core", "signal"),
    "meters": ("core", "signal", "synthesis", "_kernels"),
    "cue": ("core", "signal", "synthesis", "meters"),
    "library": ("core", *SOUND),
    "mixing": ("core", *SOUND, "_kernels"),
    "pacing": ("core", *SOUND, "mixing"),
    "show": ("core", *SOUND, "library", "mixing", "pacing"),
    "batch": ("core", *SOUND, "library", "mixing", "pacing", "show"),
    "adapters": ("core", *SOUND, "library", "mixing", "pacing", "show", "stream"),
    "cli": ("core", *SOUND, "library", "mixing", "pacing", "show", "batch", "adapters", "stream"),
}
# The same for `stream`; "cues" stands for the engine, of which speakers use the voice-like signal and fades alone. The
# command that installs an extra is worded in one place for both packages, `cues.extras`; `cues.files` reads TOML files
# for both.
ROOMS_OF_STREAM = {
    "core": (),
    "readers": ("core",),
    "reading": ("core", "readers"),
    "repairing": ("core", "readers"),
    "word_chunks": ("core",),
    "speech": ("core", "word_chunks", "cues.extras", "cues.signal", "cues.synthesis"),
    "routing": ("core", "readers", "cues"),
    "session": ("core", "readers", "reading", "word_chunks", "routing", "speech", "cues", "cues.extras"),
    "services": ("core", "readers", "reading", "repairing", "cues.errors", "cues.extras", "cues.files"),
    "replay": ("core", "readers", "reading", "cues.extras"),
}
ROOMS = {"cues": ROOMS_OF_CUES, "stream": ROOMS_OF_STREAM}
# Imports inside functions that look up the house, and why.
LAZY_UP = {
    ("cues.cue", "cues.show.notebook"),  # a cue's picture in a notebook
    ("cues.library.export", "cues.show.plots"),  # `export(pictures=True)`, an extra
}
# The files of a room from the ground up: each may import those of earlier lines.
FLOORS = {
    "cues.mixing": (
        ("state",),
        ("sound",),
        ("voice",),
        ("level", "limiter", "waiting", "slots", "speech_gain"),
        ("scheduler",),
        ("backends",),
        ("frames",),
        ("mixer",),
        ("pool", "offline", "warmup"),
    ),
    "stream.readers": (("options",), ("text",), ("calls",), ("formats",)),
    "stream.readers.text": (
        ("scanner", "patterns", "line_state"),
        ("tags",),
        ("dialect",),
        ("parser",),
        ("literals", "marked"),
        ("dialects",),
        ("dialect_table",),
        ("recovery",),
        ("machine",),
    ),
    "stream.readers.text.dialects": (
        ("json_calls", "reasoning"),
        ("xml_calls",),
        ("headed", "tokens"),
        ("pythonic",),
        ("harmony", "blocks"),
    ),
    "stream.readers.calls": (("values",), ("arguments",), ("order",), ("fragments", "item_calls")),
    "stream.repairing": (("copies",), ("choice",), ("chat",), ("sse",), ("streams",)),
    "stream.readers.formats": (
        ("choices", "data_text", "failures", "finish_reasons", "framing", "reasoning_details"),
        ("message_reader", "raw_text"),
        ("chat_completions", "ollama", "block_reader"),
        ("responses", "anthropic", "gemini"),
        ("realtime",),
        ("any_format",),
    ),
}


def _modules(package: str) -> dict[str, Path]:
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = {package: _modules(package) for package in PACKAGES}
OURS = {**MODULES["cues"], **MODULES["stream"]}


def _imports(name: str, path: Path) -> tuple[set[str], set[str]]:
    """Modules that a file imports: at module level (for type checkers too), and inside functions."""
    at_module_level: set[str] = set()
    inside_functions: set[str] = set()

    def visit(node: ast.AST, found: set[str]) -> None:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name if path.name == "__init__.py" else name.rpartition(".")[0]
                package = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
                base = f"{package}.{base}".rstrip(".")
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                found.add(whole if whole in OURS else base)
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            visit(child, inside_functions if is_function else found)

    visit(ast.parse(path.read_text(encoding="utf-8")), at_module_level)
    return at_module_level - {name}, inside_functions - {name}


IMPORTS = {name: _imports(name, path) for name, path in OURS.items()}
# A package's front door imports its public names for type checkers, and at run time when they are asked for.
FRONT_DOORS = {name for name, path in OURS.items() if path.name == "__init__.py" and "__getattr__" in path.read_text()}


def _below(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def _room_of(module: str) -> str:
    """The room of a module, as in the tables; the front door's names may be used wherever their homes may."""
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0].replace("__main__", "cli")
    return room if room in ROOMS[package] else "core"


def _allowed(name: str, found: str) -> bool:
    """Whether a module may import another one of ours."""
    package, room = name.partition(".")[0], _room_of(name)
    if found.startswith(package):
        return _room_of(found) in (room, *ROOMS[package][room]) or (name, found) in LAZY_UP
    return any(_below(found, (other,)) for other in ROOMS[package][room] if other.startswith(PACKAGES))


@pytest.mark.parametrize("name", [name for name in OURS if name not in FRONT_DOORS])
def test_a_room_imports_only_the_rooms_below_it(name):
    ours = {found for found in set().union(*IMPORTS[name]) if _below(found, PACKAGES)}
    assert [found for found in ours if not _allowed(name, found)] == []


@pytest.mark.parametrize("room", FLOORS)
def test_within_a_room_files_import_only_the_floors_below_them(room):
    floor_of = {file: number for number, files in enumerate(FLOORS[room]) for file in files}
    for name in OURS:
        if not name.startswith(f"{room}."):
            continue
        own = name.removeprefix(f"{room}.").split(".")[0]
        assert own in floor_of, f"{name} stands on no floor"
        for found in set().union(*IMPORTS[name]):
            if found.startswith(f"{room}.") and (other := found.removeprefix(f"{room}.").split(".")[0]) != own:
                assert floor_of[other] < floor_of[own], f"{name} imports {found}"


def test_no_modules_import_each_other_in_a_circle_those_for_types_counted():
    graph = {name: set() if name in FRONT_DOORS else IMPORTS[name][0] & set(OURS) for name in OURS}
    graphlib.TopologicalSorter(graph).prepare()  # raises `CycleError`, which names the circle


@pytest.mark.parametrize("name", [name for name in MODULES["stream"] if _below(name, ("stream.readers",))])
def test_the_readers_know_neither_sockets_nor_files_nor_clocks(name):
    forbidden = ("asyncio", "socket", "time", "io", "pathlib", "os", "openai", "httpx2", "cues")
    seen, queue = set(), [name]
    while queue:
        module = queue.pop()
        if module in seen:
            continue
        seen.add(module)
        imports = IMPORTS[module][0] if module not in FRONT_DOORS else set()
        assert not {found for found in imports if _below(found, forbidden)}, module
        queue += [found for found in imports if _below(found, ("stream",))]


@pytest.mark.parametrize("name", [name for name in OURS if not name.startswith("cues._kernels")])
def test_kernels_are_the_only_place_that_names_numba(name):
    assert not {found for found in set().union(*IMPORTS[name]) if _below(found, ("numba",))}


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
    for name, path in MODULES[package].items():
        if any(part.startswith("_") for part in name.split(".")[:-1]):  # a private folder has nothing public
            continue
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
