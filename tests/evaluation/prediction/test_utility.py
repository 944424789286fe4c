"""Models that learn from synthetic records: known answers, hand computations, hostile tables."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    roc_auc_score,
)
from tests.evaluation.prediction.people import COLUMNS, MODELS, Columns, compare, draw_people, get_values, make_records

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.prediction.learners import TREES, limit_threads
from sundog.evaluation.prediction.utility import (
    INTERVALS,
    draw_balanced_rows,
    evaluate_utility,
    score_classes,
)

# --- known answers -------------------------------------------------------------------------------------------------


def test_a_copy_of_the_target_is_predicted_perfectly() -> None:
    rng = np.random.default_rng(0)

    def table(count: int) -> Records:
        ill = rng.random(count) < 0.3
        rest = {"age": rng.integers(0, 100, count), "level": rng.choice(["low", "mid", "high"], count)}
        return make_records(COLUMNS, town=np.where(ill, "a", "b"), ill=ill, **rest)

    section = evaluate_utility(compare(table(500), table(200), "ill"))
    assert set(get_values(section).values()) == {1.0}
    assert all(measure.high == 1.0 for measure in section.measures.values())
    assert section.measures["utility.tstr.forest.accuracy"].low == pytest.approx(200 / (200 + 1.96**2), abs=1e-3)


def test_an_independent_target_is_guessed() -> None:
    section = evaluate_utility(compare(draw_people(1000, 0, strength=0), draw_people(1000, 1, strength=0), "ill"))
    for name in [*(f"tstr.{model}.auc" for model in MODELS), "balanced_forest", "balanced_forest_categorical"]:
        assert get_values(section)[name] == pytest.approx(0.5, abs=0.06), name


def test_release_lies_between_floor_and_ceiling() -> None:
    """Half of what there is to know is in the synthetic records."""
    real, test = draw_people(600, 0, strength=2.0), draw_people(600, 1, strength=2.0)
    half, noise = draw_people(300, 2, strength=2.0), draw_people(300, 3, strength=0)
    mixed = Records(half.schema, {n: np.concatenate([half.codes[n], noise.codes[n]]) for n in half.codes}, 600)
    comparison = compare(mixed, test, "ill", real=real)
    turns = (comparison.build_floor(), comparison, comparison.build_ceiling())
    floor, release, ceiling = (get_values(evaluate_utility(each))["tstr.forest.auc"] for each in turns)
    assert floor < 0.6 < release < ceiling
    assert ceiling > 0.9


# --- by hand -------------------------------------------------------------------------------------------------------


def test_figures_are_those_of_scikit_learn() -> None:
    """The same models on matrices made by pandas, scored by scikit-learn."""
    train, test = draw_people(800, 0), draw_people(400, 1)
    comparison = compare(train, test, "ill", seed=5)
    found = get_values(evaluate_utility(comparison))

    def frame(kind: Records) -> pd.DataFrame:
        return pd.DataFrame({name: np.asarray(codes, float) for name, codes in kind.codes.items()})

    def dummies(kind: Records) -> npt.NDArray[np.float64]:
        table = frame(kind)
        hot = [pd.get_dummies(table[name]).to_numpy(float) for name in ("town", "level")]
        return np.hstack([table[["age"]] / 99, *hot])

    spread = dummies(train).std(axis=0)
    truth = frame(test)["ill"]
    seeds = {name: int(comparison.make_rng(f"training of {name}").integers(2**31)) for name in MODELS}
    trees = ["age", "town", "level"]
    models: dict[str, tuple[Any, Any, Any]] = {
        "logistic": (LogisticRegression(), dummies(train) / spread, dummies(test) / spread),
        "forest": (
            RandomForestClassifier(TREES, random_state=seeds["forest"]),
            frame(train)[trees],
            frame(test)[trees],
        ),
        "boosting": (
            HistGradientBoostingClassifier(categorical_features=["town"], early_stopping=False),
            frame(train)[trees],
            frame(test)[trees],
        ),
    }
    for name, (model, learn, asked) in models.items():
        with limit_threads():
            chances = model.fit(learn, frame(train)["ill"]).predict_proba(asked)[:, 1]
        assert found[f"tstr.{name}.accuracy"] == pytest.approx(accuracy_score(truth, chances > 0.5), abs=1e-9), name
        expected = balanced_accuracy_score(truth, chances > 0.5)
        assert found[f"tstr.{name}.balanced_accuracy"] == pytest.approx(expected, abs=1e-9), name
        assert found[f"tstr.{name}.auc"] == pytest.approx(roc_auc_score(truth, chances), abs=1e-3), name


@pytest.mark.parametrize("classes", [2, 4])
def test_class_scores_are_those_of_scikit_learn(classes: int) -> None:
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(classes), 300).round(1)  # rounded: many ties
    chances[:, 0] = 1 - chances[:, 1:].sum(axis=1)
    truth = np.where(rng.random(300) < 0.5, chances.argmax(axis=1), rng.integers(0, classes, 300))
    found = score_classes(chances, truth, rng)
    shown = chances[:, 1] if classes == 2 else chances
    assert found["accuracy"].value == pytest.approx(accuracy_score(truth, chances.argmax(axis=1)))
    assert found["balanced_accuracy"].value == pytest.approx(balanced_accuracy_score(truth, chances.argmax(axis=1)))
    assert found["auc"].value == pytest.approx(roc_auc_score(truth, shown, multi_class="ovr"))


def test_intervals_are_those_of_resampled_records() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random(300) < 0.3).astype(np.int64)
    score = np.clip(rng.normal(0.4 + 0.2 * truth, 0.2), 0, 1)
    found = score_classes(np.column_stack([1 - score, score]), truth, rng)
    draws = np.random.default_rng(1).integers(0, 300, (400, 300))
    areas = [roc_auc_score(truth[rows], score[rows]) for rows in draws]
    balanced = [balanced_accuracy_score(truth[rows], score[rows] > 0.5) for rows in draws]
    for name, again in {"auc": areas, "balanced_accuracy": balanced}.items():
        assert (found[name].high - found[name].low) / 2 == pytest.approx(1.96 * np.std(again), rel=0.25), name


def test_a_class_that_resampling_loses_is_no_problem() -> None:
    truth = np.array([0] * 29 + [1])
    found = score_classes(np.column_stack([1 - truth, truth]) * 1.0, truth, np.random.default_rng(0))
    assert {name: measure.value for name, measure in found.items()} == dict.fromkeys(found, 1.0)
    # One record of a class was ranked and answered rightly: by Wilson's formula it may be one of five.
    assert found["balanced_accuracy"].low == pytest.approx(1 - math.hypot(1 - 0.2065, 1 - 0.8830) / 2, abs=1e-3)
    assert found["auc"].low < 0.7


@pytest.mark.parametrize("count", [60, 200])
@pytest.mark.parametrize("apart", [1.0, 3.0])
def test_intervals_of_a_rare_class_cover(count: int, apart: float) -> None:
    """One record in twenty: scores of two normal distributions, whose areas and shares are known."""
    rng = np.random.default_rng(0)
    truth = (np.arange(count) % 20 == 0).astype(np.int64)
    right = {"auc": norm.cdf(apart / math.sqrt(2)), "balanced_accuracy": norm.cdf(apart / 2)}
    covered = dict.fromkeys(right, 0)
    for _ in range(150):
        score = 1 / (1 + np.exp(apart / 2 - rng.normal(apart * truth)))
        found = score_classes(np.column_stack([1 - score, score]), truth, rng)
        for name, value in right.items():
            covered[name] += found[name].low <= value <= found[name].high
    assert min(covered.values()) / 150 >= 0.88


# --- balanced classes ----------------------------------------------------------------------------------------------


def test_balanced_rows_are_distinct_and_as_many_as_possible() -> None:
    classes = np.array([0] * 50 + [2] * 7 + [3] * 20)
    rows = draw_balanced_rows(classes, np.random.default_rng(0))
    assert np.unique(classes[rows], return_counts=True)[1].tolist() == [7, 7, 7]
    assert len(set(rows.tolist())) == 21


def test_balanced_forest_forgives_no_majority() -> None:
    """Nine of ten are well and nothing tells who: accuracy is 0.9, and 0.5 once both are equally common."""
    rng = np.random.default_rng(0)

    def table(count: int) -> Records:
        return make_records(
            COLUMNS,
            age=rng.integers(0, 100, count),
            town=rng.choice(list("abcde"), count),
            level=rng.choice(["low", "mid", "high"], count),
            ill=np.arange(count) % 10 == 0,
        )

    section = evaluate_utility(compare(table(2000), table(2000), "ill"))
    assert get_values(section)["tstr.logistic.accuracy"] == pytest.approx(0.9, abs=0.01)
    found = section.measures["utility.balanced_forest"]
    assert found.value == pytest.approx(0.5, abs=0.07)
    # 400 records are tested each time, the same 200 ill ones among them.
    assert found.high - found.low >= 2 * 1.96 * math.sqrt(0.25 / 400) * 0.95


def test_balanced_forest_by_hand() -> None:
    train, test = draw_people(600, 0), draw_people(300, 1)
    comparison = compare(train, test, "ill")
    section = evaluate_utility(comparison)
    shares = []
    for resampling in range(3):
        rng = comparison.make_rng(f"balanced classes {resampling}")
        rows, tested = draw_balanced_rows(train.codes["ill"], rng), draw_balanced_rows(test.codes["ill"], rng)
        forest = RandomForestClassifier(TREES, random_state=int(rng.integers(2**31)))
        learn, asked = (np.column_stack([kind.codes[n] for n in ("town", "level")]) for kind in (train, test))
        forest.fit(learn[rows], train.codes["ill"][rows])
        shares.append(forest.score(asked[tested], test.codes["ill"][tested]))
    found = section.measures["utility.balanced_forest_categorical"]
    assert found.value == pytest.approx(np.mean(shares))
    assert found.low <= min(shares)
    assert found.high >= max(shares)


def test_one_category_is_not_enough_for_the_categorical_forest() -> None:
    columns = {name: COLUMNS[name] for name in ("age", "town", "ill")}
    rng = np.random.default_rng(0)
    kind = make_records(columns, age=rng.integers(0, 99, 60), town=rng.choice(list("ab"), 60), ill=rng.random(60) < 0.5)
    assert "utility.balanced_forest_categorical" not in evaluate_utility(compare(kind, kind, "ill")).measures


# --- properties ----------------------------------------------------------------------------------------------------


def test_same_seed_same_figures() -> None:
    comparison = compare(draw_people(300, 0), draw_people(200, 1), "ill")
    first, again = evaluate_utility(comparison), evaluate_utility(comparison)
    assert first.measures == again.measures
    assert first.details == again.details
    assert evaluate_utility(replace(comparison, seed=1)).measures != first.measures


def test_each_answer_depends_on_one_record() -> None:
    """Right answers of two halves add up to those of the whole: nothing was learned from records to test on."""
    train, test = draw_people(400, 0), draw_people(301, 1)
    halves = [test.take(slice(0, 150)), test.take(slice(150, 301))]

    def right(kind: Records) -> npt.NDArray[np.float64]:
        found = get_values(evaluate_utility(compare(train, kind, "ill")))
        return np.array([found[f"tstr.{model}.accuracy"] for model in MODELS]) * len(kind)

    np.testing.assert_allclose(right(halves[0]) + right(halves[1]), right(test))


def test_every_measure_has_a_meaning() -> None:
    section = evaluate_utility(compare(draw_people(60, 0), draw_people(60, 1), "ill"))
    assert set(section.metrics) == set(section.measures)
    assert all("{" not in metric.meaning + metric.label for metric in section.metrics.values())
    json.dumps(section.details, allow_nan=False)


def test_a_target_may_have_any_name() -> None:
    columns = {"{model}": COLUMNS["ill"], "age": COLUMNS["age"]}
    kind = make_records(columns, **{"{model}": [True, False] * 15, "age": range(30)})
    assert "{model}" in evaluate_utility(compare(kind, kind, "{model}")).metrics["utility.tstr.forest.accuracy"].meaning


# --- many classes, missing values, poor synthetic data -------------------------------------------------------------


def test_several_classes() -> None:
    """The level is written in the age; one level in ten is wrong."""
    rng = np.random.default_rng(0)

    def table(count: int) -> Records:
        age = rng.integers(0, 90, count)
        level = np.where(rng.random(count) < 0.1, rng.integers(0, 3, count), age // 30)
        names = np.array(["low", "mid", "high"])[level]
        return make_records(COLUMNS, age=age, town=rng.choice(list("abcde"), count), level=names, ill=age < 0)

    section = evaluate_utility(compare(table(900), table(600), "level"))
    assert get_values(section)["tstr.boosting.accuracy"] == pytest.approx(0.933, abs=0.04)
    assert get_values(section)["tstr.forest.auc"] > 0.9
    assert "roc" not in section.details


def test_missing_values_are_a_value() -> None:
    """Whether a number, or a category, is missing tells everything."""
    columns = {
        "age": {**COLUMNS["age"], "nullable": True},
        "town": {**COLUMNS["town"], "nullable": True},
        "ill": COLUMNS["ill"],
    }
    rng = np.random.default_rng(0)
    for named in ("age", "town"):

        def table(count: int, named: str = named) -> Records:
            ill = rng.random(count) < 0.5
            free = {"age": rng.integers(0, 100, count).astype(object), "town": rng.choice(list("abcde"), count)}
            free[named] = np.array([None if gap else value for gap, value in zip(ill, free[named], strict=True)])
            return make_records(columns, ill=ill, **free)

        found = get_values(evaluate_utility(compare(table(300), table(200), "ill")))
        assert {found[f"tstr.{model}.accuracy"] for model in MODELS} == {1.0}


def test_a_missing_target_is_a_class() -> None:
    """So that every record that was held out is answered, and counted."""
    columns = {**COLUMNS, "ill": {"type": "boolean", "nullable": True}}
    rng = np.random.default_rng(0)

    def table(count: int) -> Records:
        town = rng.integers(0, 3, count)
        free = {"age": rng.integers(0, 100, count), "level": ["low"] * count}
        ill = np.array([True, False, None], object)[town]
        return make_records(columns, town=np.array(list("abc"))[town], ill=ill, **free)

    section = evaluate_utility(compare(table(300), table(200), "ill"))
    assert get_values(section)["tstr.boosting.accuracy"] == 1.0
    assert section.notes == [INTERVALS]


def test_one_class_in_the_synthetic_records() -> None:
    test = draw_people(400, 1)
    train = draw_people(600, 0)
    well = train.take(train.codes["ill"] == 0)
    section = evaluate_utility(compare(well, test, "ill", real=train))
    share = float((test.codes["ill"] == 0).mean())
    for model in MODELS:
        assert get_values(section)[f"tstr.{model}.accuracy"] == pytest.approx(share)
        assert get_values(section)[f"tstr.{model}.balanced_accuracy"] == 0.5
        assert get_values(section)[f"tstr.{model}.auc"] == 0.5
        assert section.details["roc"][model] == {"fpr": [0.0, 1.0], "tpr": [0.0, 1.0]}
    assert get_values(section)["balanced_forest"] == 0.5
    assert "All synthetic records have the same ill" in section.notes[0]


def test_a_class_that_the_synthetic_records_lack() -> None:
    train, test = draw_people(300, 0), draw_people(200, 1)
    section = evaluate_utility(compare(train.take(train.codes["level"] != 1), test, "level", real=train))
    assert section.notes == ["1 of 3 classes of level do not occur in the synthetic records.", INTERVALS]


def test_a_class_with_one_record_only() -> None:
    train = draw_people(200, 0)
    ill = np.flatnonzero(train.codes["ill"])
    few = train.take(np.concatenate([np.flatnonzero(train.codes["ill"] == 0), ill[:1]]))
    found = evaluate_utility(compare(few, draw_people(200, 1), "ill", real=train)).measures["utility.balanced_forest"]
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize("target", ["ill", "age"])
def test_a_column_without_values_to_learn_from(target: str) -> None:
    """Nothing was learned about it, so what the test records hold there changes nothing."""
    columns = {**COLUMNS, "score": {"type": "integer", "min": 0, "max": 9, "nullable": True}}
    schema = Schema.from_dict({"columns": columns})

    def scored(kind: Records, codes: Any) -> Records:
        return Records(schema, {**kind.codes, "score": np.broadcast_to(codes, len(kind))}, len(kind))

    train, test = scored(draw_people(100, 0), 10), draw_people(100, 1)
    found = [
        get_values(evaluate_utility(compare(train, scored(test, codes), target))) for codes in (10, np.arange(100) % 11)
    ]
    trees = [{name: value for name, value in each.items() if "boosting" in name} for each in found]
    assert trees[0] == trees[1] != {}


def test_boosting_learns_from_few_records() -> None:
    kinds = [make_records(COLUMNS, age=range(30), town=["a"] * 30, level=["low"] * 30, ill=np.arange(30) < 15)] * 2
    assert get_values(evaluate_utility(compare(kinds[0], kinds[1], "ill")))["tstr.boosting.accuracy"] == 1.0


def test_constant_columns_and_many_categories() -> None:
    columns: Columns = {
        "same": {"type": "categorical", "values": ["x", "y"]},
        "one": {"type": "integer", "min": 3, "max": 3},
        "word": {"type": "categorical", "values": [f"w{i}" for i in range(400)]},
        "ill": COLUMNS["ill"],
    }
    rng = np.random.default_rng(0)

    def table(count: int) -> Records:
        word = rng.integers(0, 400, count)
        names = [f"w{i}" for i in word]
        return make_records(columns, same=["x"] * count, one=[3] * count, word=names, ill=word < 200)

    found = get_values(evaluate_utility(compare(table(3000), table(300), "ill")))
    assert min(found[f"tstr.{model}.accuracy"] for model in MODELS) > 0.95
