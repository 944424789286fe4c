"""Suggested rules: only where they are asked for, true of all records, and marked as not private."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sundog.cli.main import _run
from sundog.data.schema import Schema


def people(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    school = rng.choice(["none", "high", "uni"], rows)
    rent, food = rng.integers(100, 900, rows), rng.integers(100, 900, rows)
    came = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, rows), "D")
    stay = rng.integers(0, 60, rows)
    pressure = rng.integers(100, 180, rows).astype(float)
    low = pressure - rng.integers(5, 40, rows)
    gone = rng.random(rows) < 0.2
    return pd.DataFrame(
        {
            "school": school,
            "years": pd.Series(school).map({"none": 0, "high": 12, "uni": 16}),
            "rent": rent,
            "food": food,
            "total": rent + food,
            "came": came,
            "left": came + pd.to_timedelta(stay, "D"),
            "stay": stay,
            "systolic": np.where(gone, np.nan, pressure),
            "diastolic": np.where(gone, np.nan, low),
        }
    )


def drafted(data: Any, *, suggest_rules: bool = True) -> Schema:
    with warnings.catch_warnings(action="ignore"):
        return Schema.draft(data, suggest_rules=suggest_rules)


def found(data: pd.DataFrame) -> list[str]:
    return [str(rule) for rule in drafted(data).rules]


def test_simple_rules_are_found() -> None:
    assert found(people()) == [
        "years from school",
        "total = rent + food",
        "left = came + stay",
        "systolic, diastolic missing together",
        "diastolic <= systolic",
    ]


def test_no_rule_is_proposed_unless_it_is_asked_for() -> None:
    assert drafted(people(), suggest_rules=False).rules == ()


def test_one_record_is_enough_to_drop_a_rule() -> None:
    data = people()
    data.loc[5, "years"] = 4
    data.loc[6, "total"] = 1
    data.loc[7, "left"] = pd.Timestamp("2019-12-31")
    data.loc[data["systolic"].notna().idxmax(), ["systolic", "diastolic"]] = [100, 101]
    assert found(data) == ["systolic, diastolic missing together"]


def test_what_may_be_chance_is_not_suggested() -> None:
    few = people(12)  # too few of each value, and too few to compare
    assert "years from school" not in found(few)
    assert not any("=" in rule for rule in found(few))
    apart = pd.DataFrame({"age": np.arange(18, 90), "pay": np.arange(18, 90) * 1000})
    assert found(apart) == []  # of ranges that hardly overlap


def test_what_follows_from_other_comparisons_is_left_out() -> None:
    rng = np.random.default_rng(0)
    a, b, c = np.sort(rng.integers(0, 1000, (500, 3)), axis=1).T
    assert found(pd.DataFrame({"b": b, "c": c, "a": a})) == ["b <= c", "a <= b"]


def test_a_draft_marks_its_rules_and_reads_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people().to_csv(tmp_path / "p.csv", index=False)
    out = tmp_path / "p.schema.yaml"
    with warnings.catch_warnings(action="ignore"):
        assert _run(["schema", str(tmp_path / "p.csv"), "--suggest-rules", "-o", str(out)]) == 0
    text = out.read_text()
    assert "rules:\n  # found in the data: NOT PRIVATE." in text
    assert "reviewed: false" in text
    assert len(Schema.load(out).rules) == 5
    with warnings.catch_warnings(action="ignore"):
        assert _run(["schema", str(tmp_path / "p.csv")]) == 0
    assert "\nrules:" not in capsys.readouterr().out
