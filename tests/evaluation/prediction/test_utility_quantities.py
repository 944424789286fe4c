"""Models that predict a quantity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import (
    mean_absolute_error,
    r2_score,
)
from tests.evaluation.prediction.people import COLUMNS, Columns, compare, draw_people, get_values, make_records

from sundog.data.records import Records
from sundog.evaluation.prediction.utility import (
    INTERVALS,
    evaluate_utility,
    score_quantity,
)

SIZES: Columns = {
    "height": {"type": "continuous", "min": 100, "max": 200, "resolution": 1, "nullable": True},
    "weight": {"type": "continuous", "min": 0, "max": 200, "resolution": 0.5, "nullable": True},
    "town": COLUMNS["town"],
}


def test_number_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(300)
    predicted = truth + rng.normal(0, 0.2, 300)
    found = score_quantity(predicted, truth, rng)
    assert found["r2"].value == pytest.approx(r2_score(truth, predicted))
    assert found["mae"].value == pytest.approx(mean_absolute_error(truth, predicted))
    draws = np.random.default_rng(1).integers(0, 300, (400, 300))
    again = {"r2": r2_score, "mae": mean_absolute_error}
    for name, score in again.items():
        spread = np.std([score(truth[rows], predicted[rows]) for rows in draws])
        assert (found[name].high - found[name].low) / 2 == pytest.approx(1.96 * spread, rel=0.25), name


def test_quantities_say_what_intervals_are_about() -> None:
    assert evaluate_utility(compare(draw_people(60, 0), draw_people(60, 1), "age")).notes == [INTERVALS]


def sizes(count: int, seed: int, noise: float = 0.0) -> Records:
    """Weight is height - 100, and 20 more in town a."""
    rng = np.random.default_rng(seed)
    height, town = rng.integers(100, 200, count), rng.choice(list("abcde"), count)
    weight = height - 100 + 20 * (town == "a") + rng.normal(0, noise or 1e-9, count)
    return make_records(SIZES, height=height, weight=np.clip(weight.round(), 0, 200), town=town)


def test_a_quantity_is_explained() -> None:
    section = evaluate_utility(compare(sizes(600, 0), sizes(400, 1), "weight"))
    found = get_values(section)
    assert set(found) == {
        f"tstr.{model}.{score}" for model in ("ridge", "forest", "boosting") for score in ("r2", "mae")
    }
    assert found["tstr.ridge.r2"] > 0.999
    assert min(found[f"tstr.{model}.r2"] for model in ("forest", "boosting")) > 0.97
    assert set(section.metrics) == set(section.measures)


def test_errors_are_shares_of_the_declared_range() -> None:
    """With noise of deviation 10 on a range of 200, the mean error is 10·√(2/π)/200."""
    found = evaluate_utility(compare(sizes(2000, 0, 10.0), sizes(2000, 1, 10.0), "weight")).measures[
        "utility.tstr.ridge.mae"
    ]
    assert found.value == pytest.approx(10 * math.sqrt(2 / math.pi) / 200, rel=0.1)


def test_a_shuffled_quantity_is_not_explained() -> None:
    comparison = compare(sizes(600, 0), sizes(400, 1), "weight").build_floor()
    assert get_values(evaluate_utility(comparison))["tstr.ridge.r2"] == pytest.approx(0.0, abs=0.1)


def test_a_constant_quantity_teaches_nothing() -> None:
    same = make_records(SIZES, height=[150] * 50, weight=[70.0] * 50, town=["a"] * 50)
    found = get_values(evaluate_utility(compare(same, sizes(100, 1), "weight", real=sizes(100, 0))))
    assert max(found[f"tstr.{model}.r2"] for model in ("ridge", "forest", "boosting")) <= 0.0


def test_records_without_the_quantity_are_left_out() -> None:
    train, test = sizes(300, 0), sizes(200, 1)
    with_gaps = dict(train.codes, weight=train.codes["weight"].copy())
    with_gaps["weight"][:100] = train.schema.columns["weight"].size - 1
    comparison = compare(Records(train.schema, with_gaps, 300), test, "weight", real=train)
    section = evaluate_utility(comparison)
    without = evaluate_utility(compare(train.take(slice(100, 300)), test, "weight", real=train))
    assert section.measures == without.measures
    assert section.notes == ["100 records without a value of weight were left out.", INTERVALS]


def test_a_number_with_few_values_is_a_class() -> None:
    columns = {"stars": {"type": "integer", "min": 1, "max": 5}, "age": COLUMNS["age"]}
    rng = np.random.default_rng(0)
    kind = make_records(columns, stars=rng.integers(1, 6, 60), age=rng.integers(0, 99, 60))
    assert "utility.tstr.forest.accuracy" in evaluate_utility(compare(kind, kind, "stars")).measures
