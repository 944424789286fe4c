"""The list of planted bugs names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
ROWS = [line for line in (TESTS / "PLANTED.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]


def functions_of(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def test_every_row_names_a_test_that_exists() -> None:
    assert ROWS
    for row in ROWS:
        found = re.search(r"`([\w/]+\.py)::(test_\w+)` \|$", row)
        assert found, f"names no test: {row}"
        path, name = TESTS / found[1], found[2]
        assert path.is_file(), row
        assert name in functions_of(path), row
