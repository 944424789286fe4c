"""The front door: known answers, the names that stay, and every kind of data from end to end."""

from __future__ import annotations

import importlib
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.small_tables import TABLE, make_noise, make_table

import sundog
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.evaluator import evaluate


def test_real_data_against_itself_is_perfect() -> None:
    real, holdout = make_table(600, 0), make_table(600, 1)
    report = evaluate(real, real=real, holdout=holdout, target="job", schema=TABLE)
    for name in ("tvd_1way", "tvd_2way", "tvd_3way", "association_error", "wasserstein_1d", "wasserstein_sliced"):
        assert report.measures[f"fidelity.{name}"].value == pytest.approx(0, abs=1e-12)
    for name in ("column_shapes", "column_pair_trends", "quality", "range_coverage", "category_coverage"):
        assert report.measures[f"fidelity.{name}"].value == pytest.approx(1)
    judged = report.measures["fidelity.propensity_auc"]
    assert judged.low <= 0.5 <= judged.high
    for name, other in report.ceiling.items():
        if name.startswith("utility"):
            assert report.measures[name] == other


def test_other_real_data_is_not_told_from_real_data() -> None:
    """A sample of the same people: what a perfect release would be."""
    report = evaluate(
        make_table(600, 2), real=make_table(600, 0), holdout=make_table(600, 1), target="job", schema=TABLE
    )
    for name in ("fidelity.tvd_1way", "fidelity.tvd_2way", "fidelity.association_error", "fidelity.propensity_auc"):
        assert report.measures[name].overlaps(report.ceiling[name]), name
    assert "lost" not in report.headline


def test_noise_is_at_the_floor_or_below() -> None:
    report = evaluate(
        make_noise(600, 5), real=make_table(600, 0), holdout=make_table(600, 1), target="job", schema=TABLE
    )
    for name in ("fidelity.tvd_2way", "fidelity.tvd_3way", "fidelity.association_error"):
        assert report.measures[name].high > report.floor[name].value > report.ceiling[name].value
    for model in ("logistic", "forest", "boosting"):
        name = f"utility.tstr.{model}.auc"
        assert report.measures[name].value < 0.7 < 0.9 < report.ceiling[name].value
    assert report.measures["fidelity.propensity_auc"].low > 0.8


def test_by_hand() -> None:
    """The figures are those that a few lines of pandas give."""
    real, fake = make_table(500, 0), make_noise(400, 1)
    cuts = {"age": np.arange(0, 101, 10), "income": np.arange(0, 201, 10)}
    binned = {name: {**TABLE.columns[name].to_dict(), "bins": len(cut) - 1} for name, cut in cuts.items()}
    schema = Schema.from_dict({"columns": {**TABLE.to_dict()["columns"], **binned}})
    found = evaluate(fake, real=real, schema=schema).measures

    both = pd.concat([real, fake], keys=["real", "fake"], names=["which", "row"])
    for name, cut in cuts.items():
        both[name] = pd.cut(both[name], [float(edge) for edge in cut], right=False, include_lowest=True).astype(str)
    for size in (1, 2, 3):
        distances = []
        for names in itertools.combinations(TABLE.columns, size):
            counts = both.groupby(["which", *names]).size().unstack("which", fill_value=0)
            distances.append(0.5 * (counts["real"] / 500 - counts["fake"] / 400).abs().sum())
        assert found[f"fidelity.tvd_{size}way"].value == pytest.approx(np.mean(distances), abs=1e-3)


def test_the_dictionary_has_the_names_that_stay() -> None:
    report = evaluate(make_noise(200, 1), real=make_table(200, 0), target="sex", schema=TABLE)
    found = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert set(found) >= {"about", "notes", "fidelity", "utility", "ceiling", "floor", "published", "details"}
    leaves = [
        found["fidelity"]["tvd_1way"],
        found["utility"]["tstr"]["forest"]["auc"],
        found["utility"]["balanced_forest"],
    ]
    for leaf in leaves:
        assert set(leaf) == {"value", "low", "high"}
        assert leaf["low"] <= leaf["value"] <= leaf["high"]
    assert "not for publication" in found["private"]
    assert found["about"]["real records"] == 200


def test_the_room_can_be_called() -> None:
    importlib.import_module("sundog.evaluation.measure")  # which makes the room an attribute of the package
    report = sundog.evaluate(make_noise(100, 1), real=make_table(100, 0), schema=TABLE)
    assert report.measures["fidelity.tvd_1way"].value > 0


def test_sets_and_series_from_end_to_end(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {
        "items": {"type": "set", "universe": 12, "max_size": 12},
        "load": {"type": "series", "length": 16, "min": 0, "max": 1},
    }
    schema = Schema.from_dict({"columns": columns})

    def records(seed: int, shift: float) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        wave = 0.5 + 0.3 * np.sin(np.arange(16) / 2 + shift + rng.random((120, 1)))
        items = [[int(item) for item in np.flatnonzero(rng.random(12) < 0.3)] for _ in range(120)]
        return {"items": items, "load": wave}

    report = evaluate(records(1, 2.0), real=records(2, 0.0), schema=schema, seed=int(rng.integers(100)))
    assert {"queries.relative_error", "sets.topk_overlap"} <= set(report.measures)
    assert {"series.autocorrelation_distance", "series.predictive_score"} <= set(report.measures)
    assert report.measures["series.mean_profile_error"].value > report.ceiling["series.mean_profile_error"].value
    page = report.to_html(tmp_path / "r.html")
    assert page.count("<svg") >= 5


def test_publish_needs_a_ledger_and_a_ledger_publish() -> None:
    real = make_table(100, 0)
    with pytest.raises(DataError, match="ledger"):
        evaluate(real, real=real, schema=TABLE, publish=1.0)
    with pytest.raises(DataError, match="both"):
        evaluate(real, real=real, schema=TABLE, ledger="adult.ledger")
