"""The Python blocks of the pages as files of a user, for mypy and pyright.

A block that awaits stands in a coroutine, and the names that it takes for granted come from `page_names.pyi`.
`tests/test_docs.py` checks the pages of the packages with mypy; `.ci/check_package.py` checks all pages with both.
"""

import ast
import builtins
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = Path(__file__).with_name("page_names.pyi")
FUTURE = "from __future__ import annotations\n"
PYRIGHT = {
    "typeCheckingMode": "strict",
    # A page shows what there is: a value of its own on a line, a name that the next line would use.
    **dict.fromkeys(("reportUnusedExpression", "reportUnusedImport", "reportUnusedVariable"), False),
}
# Names of the pipelines' packages that have no types.
UNTYPED = "# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false\n"


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """(number of its first line, code) of each Python block."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, match.start()) + 2, match[1]) for match in found]


def free_names(tree: ast.Module) -> set[str]:
    """Names that a block reads and nowhere binds."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return {node.id for node in names} - bound - set(dir(builtins))


def as_module(code: str) -> str:
    """A block as a module; one that awaits outside of a function is the body of a coroutine."""
    granted = sorted(free_names(ast.parse(code)))
    header = f"{FUTURE}from page_names import {', '.join(granted)}\n" if granted else FUTURE
    try:
        compile(code, "a block", "exec")
    except SyntaxError:
        code = "async def block() -> None:\n" + re.sub(r"^(?=.)", "    ", code, flags=re.MULTILINE)
    return header + code


def write_modules(pages: list[Path], folder: Path) -> list[Path]:
    """One file for each block, named after its page and line; beside them `page_names.pyi` and settings for pyright."""
    (folder / NAMES.name).write_bytes(NAMES.read_bytes())
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    written = []
    for page in pages:
        stem = re.sub(r"\W", "_", str(page.relative_to(ROOT).with_suffix("")))
        for line, code in python_blocks(page):
            written.append(folder / f"{stem}_{line}.py")
            untyped = UNTYPED if page.parent.name == "adapters" else ""
            written[-1].write_text(untyped + as_module(code), encoding="utf-8")
    return written
