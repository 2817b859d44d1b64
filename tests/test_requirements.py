"""The table of requirements: each row names tests that exist, or says that nothing was built."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from stream.replay.scenarios import names as scenario_names

TESTS = Path(__file__).resolve().parent
PAGE = (TESTS / "REQUIREMENTS.md").read_text(encoding="utf-8")
ROWS = [
    row for row in re.findall(r"^\| (.+) \|$", PAGE, re.MULTILINE) if not row.startswith(("§", "---", "requirement"))
]
CASES = "".join(file.read_text(encoding="utf-8") for file in TESTS.glob("stream/data/cases/*.jsonl"))


@cache
def functions(path):
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def named(row):
    return re.findall(r"`([\w./]+\.py)::(\w+)`", row)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rpartition(" | ")[0])
def test_each_row_names_tests_that_exist(row):
    required, said = row.split(" | ")[1:]
    assert named(said) or said.startswith("not built: "), "names no test"
    assert [(path, name) for path, name in named(said) if name not in functions(path)] == []
    assert said.count("`") // 2 == len(named(said)), "something in backticks is no test"
    for name in re.findall(r"`((?:fork|ollama)-[a-z-]+)`", required):
        assert name in scenario_names()
    for case in re.findall(r"`([dr]-[\w-]+)…?`", required):
        assert f'"id": "{case}' in CASES


def test_every_document_has_its_rows():
    parts = PAGE.split("\n## ")[1:]
    assert [part[:3] for part in parts] == ["000", "001", "002", "003", "004"]
    assert all(len(named(part)) >= 15 for part in parts)
    # Of the first document: all sections that require something of this project.
    first = "".join(re.findall(r"^\| (\S+) \|", parts[0], re.MULTILINE))
    assert all(
        part in first
        for part in ("1b", "2a", "2b", "2c", *(f"5{x}" for x in "abcdefg"), "6", *(f"7{x}" for x in "abcdefg"))
    )
