"""Tables of a million records: memory that does not hold the file, and counts within a minute."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(autouse=True)
def _among_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


@pytest.mark.slow
def test_a_million_records(tmp_path: Path) -> None:
    from tables_scale import declare_columns, fit_table

    costs = [fit_table(tmp_path, declare_columns(30), rows)[0] for rows in (100_000, 1_000_000)]
    small, large = costs
    assert large["gib"] < 0.6
    assert large["gib"] - small["gib"] < 0.25  # the values alone are as much
    assert large["cpu_s"] < 60 + small["cpu_s"]


@pytest.mark.slow
def test_a_wide_table(tmp_path: Path) -> None:
    from tables_scale import declare_columns, fit_table

    figures, _ = fit_table(tmp_path, declare_columns(100), 10_000)
    assert figures["gib"] < 1
    assert figures["cpu_s"] < 300


@pytest.mark.slow
def test_all_pairs_of_thirty_columns() -> None:
    from tables_scale import measure_counting

    assert measure_counting(30, 1_000_000) < 6
