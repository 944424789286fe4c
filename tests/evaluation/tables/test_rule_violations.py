"""The share of records that break rules: of a release, and of data from other tools."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sundog.data.schema import Schema
from sundog.evaluation.evaluator import evaluate
from sundog.fit.synthesizer import Synthesizer

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "city": {"type": "categorical", "values": ["Lyon", "Rome"]},
            "country": {"type": "categorical", "values": ["FR", "IT"]},
            "a": {"type": "integer", "min": 0, "max": 9},
            "b": {"type": "integer", "min": 0, "max": 9},
        },
        "rules": [{"column": "country", "from": "city", "table": {"Lyon": "FR", "Rome": "IT"}}, "a <= b"],
    }
)


def frame(rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = np.sort(rng.integers(0, 10, (rows, 2)), axis=1).T
    city = rng.choice(["Lyon", "Rome"], rows)
    return pd.DataFrame({"city": city, "country": np.where(city == "Lyon", "FR", "IT"), "a": a, "b": b})


def test_a_release_breaks_no_rule() -> None:
    release = Synthesizer("independent", epsilon=5.0, delta=1e-6).fit(frame(), SCHEMA).release_
    report = evaluate(release, real=frame())
    assert report.measures["rules.broken"].value == 0
    assert report.to_dict()["details"]["rules"] == {"country from city": 0.0, "a <= b": 0.0}
    assert report.ceiling["rules.broken"].value == 0
    assert report.floor["rules.broken"].value > 0.3  # shuffled columns break them
    assert "Records that break a rule: 0" in report.headline


def test_records_of_another_tool_are_counted() -> None:
    made = frame()
    made.loc[:19, "country"] = "DE"  # which is not declared, either
    made.loc[10:39, ["a", "b"]] = [9, 0]
    report = evaluate(made, real=frame(), schema=SCHEMA)
    assert report.measures["rules.broken"].value == 40 / 200
    assert report.to_dict()["details"]["rules"] == {"country from city": 20 / 200, "a <= b": 30 / 200}


def test_a_schema_without_rules_has_no_such_section() -> None:
    plain = Schema.from_dict({"columns": SCHEMA.to_dict()["columns"]})
    assert "rules.broken" not in evaluate(frame(), real=frame(), schema=plain).measures
