"""Inference and estimation against mbi 2.0, whose answers `benchmarks/marginals_mbi.py --write` keeps in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
PROBLEMS = json.loads((Path(__file__).parent / "mbi_marginals.json").read_text())


@pytest.mark.parametrize("problem", PROBLEMS, ids=[problem["name"] for problem in PROBLEMS])
def test_marginals_equal_those_of_mbi(problem: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from marginals_mbi import ALLOWED, find_difference, solve

    assert find_difference(solve(problem), problem["marginals"]) < ALLOWED


def test_the_file_has_the_problems_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from marginals_mbi import list_problems

    assert [{key: each[key] for key in each if key != "marginals"} for each in PROBLEMS] == list_problems()
