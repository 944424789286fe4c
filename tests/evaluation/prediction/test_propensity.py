"""Telling synthetic records from real ones: known answers, a hand computation, hostile tables."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.measure import Measure
from sundog.evaluation.prediction import propensity as module
from sundog.evaluation.prediction.learners import limit_threads
from sundog.evaluation.prediction.propensity import evaluate_propensity

Array = npt.NDArray[np.int64]

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 99, "nullable": True},
            "town": {"type": "categorical", "values": list("abcde")},
            "ill": {"type": "boolean"},
        }
    }
)


def compare(synthetic: Records, test: Records, seed: int = 0) -> Comparison:
    return Comparison(real=test, synthetic=synthetic, train=test, test=test, seed=seed)


def draw_people(count: int, seed: int, **fixed: Array) -> Records:
    rng = np.random.default_rng(seed)
    codes = {"age": rng.integers(0, 101, count), "town": rng.integers(0, 5, count), "ill": rng.integers(0, 2, count)}
    return Records(SCHEMA, {**codes, **fixed}, count)


def measure_auc(comparison: Comparison) -> Measure:
    return evaluate_propensity(comparison).measures["fidelity.propensity_auc"]


def list_importance(comparison: Comparison) -> dict[str, float]:
    found: dict[str, float] = evaluate_propensity(comparison).details["propensity"]["gives_away"]
    return found


# --- known answers -------------------------------------------------------------------------------------------------


def test_real_records_cannot_be_told_from_real_ones() -> None:
    """A 95% interval of twenty may miss 0.5 once or twice, not more."""
    found = [
        measure_auc(compare(draw_people(300, 2 * seed), draw_people(300, 2 * seed + 1), seed)) for seed in range(20)
    ]
    assert sum(measure.low <= 0.5 <= measure.high for measure in found) >= 17
    assert np.mean([measure.value for measure in found]) == pytest.approx(0.5, abs=0.02)


def test_records_from_disjoint_distributions_are_separated() -> None:
    old, young = draw_people(300, 0, age=np.full(300, 90)), draw_people(300, 1, age=np.full(300, 20))
    assert measure_auc(compare(old, young)).value == 1.0
    away = list_importance(compare(old, young))
    assert next(iter(away)) == "age"
    assert away["age"] == pytest.approx(0.5, abs=0.1)
    assert away["town"] == away["ill"] == 0.0


def test_one_column_gives_away_what_it_can() -> None:
    """Towns with shares p and q: the best there is wins Σ p(a) q(b) [r(a) > r(b)] + ½ Σ p(a) q(a), with r = p / q."""
    p, q = np.array([0.4, 0.3, 0.1, 0.1, 0.1]), np.array([0.1, 0.1, 0.2, 0.3, 0.3])
    ratio = p / q
    wins = (ratio[:, None] > ratio) + 0.5 * (ratio[:, None] == ratio)
    best = float(p @ wins @ q)
    rng = np.random.default_rng(0)
    fake, real = (
        draw_people(4000, 1, town=rng.choice(5, 4000, p=p)),
        draw_people(4000, 2, town=rng.choice(5, 4000, p=q)),
    )
    found = measure_auc(compare(fake, real))
    assert found.value == pytest.approx(best, abs=0.02)
    assert found.value - found.low < 0.02


def test_what_only_two_columns_together_give_away() -> None:
    """In real records the boolean is the parity of the town; in synthetic ones it is anything."""
    town = np.random.default_rng(0).integers(0, 5, 600)
    fake, real = draw_people(600, 1), draw_people(600, 2, town=town, ill=town % 2)
    assert measure_auc(compare(fake, real)).value > 0.65
    away = list_importance(compare(fake, real))
    assert set(list(away)[:2]) == {"town", "ill"}
    assert abs(away["age"]) < away["town"] / 2


def test_missing_values_give_away() -> None:
    gaps = np.where(np.arange(300) % 2 == 0, 100, 50)
    fake, real = draw_people(300, 1, age=gaps), draw_people(300, 2, age=np.full(300, 50))
    assert measure_auc(compare(fake, real)).value == pytest.approx(0.75, abs=0.05)


# --- by hand -------------------------------------------------------------------------------------------------------


def test_figures_are_those_of_scikit_learn() -> None:
    comparison = compare(draw_people(400, 0), draw_people(250, 1, town=np.zeros(250, np.int64)), seed=3)
    found = measure_auc(comparison)
    rng = comparison.make_rng("propensity")
    chosen = np.sort(rng.choice(400, 250, replace=False))
    parts = [comparison.synthetic.take(chosen), comparison.test]
    columns = [np.concatenate([part.codes[name] for part in parts]).astype(float) for name in SCHEMA.columns]
    heap = np.column_stack(columns)
    heap[heap[:, 0] == 100, 0] = np.nan
    fake = np.arange(500) < 250
    learn, test = module._split_halves(fake, rng)
    model = HistGradientBoostingClassifier(categorical_features=[False, True, False], early_stopping=False)
    with limit_threads():
        scores = model.fit(heap[learn], fake[learn]).predict_proba(heap[test])[:, 1]
    assert found.value == pytest.approx(roc_auc_score(fake[test], scores))
    draws = np.random.default_rng(1).integers(0, 250, (300, 250))
    spread = np.std([roc_auc_score(fake[test][rows], scores[rows]) for rows in draws])
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * spread, rel=0.25)


@pytest.mark.parametrize("count", [20, 21])
def test_halves_have_as_many_of_each_kind(count: int) -> None:
    fake = np.arange(2 * count) < count
    halves = module._split_halves(fake, np.random.default_rng(0))
    assert sorted(np.concatenate(halves).tolist()) == list(range(2 * count))
    assert [int(fake[half].sum()) * 2 for half in halves] == list(map(len, halves))


# --- properties ----------------------------------------------------------------------------------------------------


def test_same_seed_same_figures() -> None:
    comparison = compare(draw_people(300, 0), draw_people(200, 1))
    first, again = evaluate_propensity(comparison), evaluate_propensity(comparison)
    assert first.measures == again.measures
    assert first.details == again.details
    assert evaluate_propensity(replace(comparison, seed=1)).measures != first.measures


def test_equal_numbers_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    heap, fake = module._pool_records(compare(draw_people(50, 0), draw_people(30, 1)), list(SCHEMA.columns), rng)
    assert (len(heap), int(fake.sum())) == (60, 30)
    monkeypatch.setattr(module, "_MOST", 25)
    heap, fake = module._pool_records(compare(draw_people(50, 0), draw_people(30, 1)), list(SCHEMA.columns), rng)
    assert (len(heap), int(fake.sum())) == (50, 25)


def test_arrays_are_left_out() -> None:
    columns: dict[str, Any] = {**SCHEMA.columns, "photo": {"type": "image", "shape": [2, 2]}}
    schema = Schema.from_dict({"columns": columns})

    def add_photo(kind: Records, level: int) -> Records:
        photo = np.full((len(kind), 2, 2), level, np.uint8)
        return Records(schema, {**kind.codes, "photo": photo}, len(kind))

    plain = compare(draw_people(100, 0), draw_people(100, 1))
    shown = compare(add_photo(plain.synthetic, 0), add_photo(plain.test, 9))
    assert evaluate_propensity(shown).measures == evaluate_propensity(plain).measures


def test_constant_columns_tell_nothing() -> None:
    same = {name: np.zeros(60, np.int64) for name in SCHEMA.columns}
    found = measure_auc(compare(draw_people(60, 0, **same), draw_people(60, 1, **same)))
    assert found.value == 0.5
    # 30 of each kind, none told from another: Hanley and McNeil's standard error is √(61 / (12 · 30 · 30)).
    assert found.high - 0.5 == pytest.approx(0.5 - found.low) == pytest.approx(1.96 * 0.0752, rel=0.1)


@pytest.mark.parametrize("count", [20, 30, 60, 100])
def test_few_records_from_disjoint_distributions_are_separated(count: int) -> None:
    old, young = draw_people(count, 0, age=np.full(count, 90)), draw_people(count, 1, age=np.full(count, 20))
    found = measure_auc(compare(old, young))
    assert found.value == 1.0
    assert 0.5 < found.low < 1 - 1 / count  # so few cannot be sure


@pytest.mark.parametrize("gap", [100, 50])
def test_a_column_without_values(gap: int) -> None:
    """Empty everywhere, or only in what is synthetic."""
    fake, real = draw_people(60, 0, age=np.full(60, 100)), draw_people(60, 1, age=np.full(60, gap))
    found = measure_auc(compare(fake, real))
    assert (found.value == 1.0) if gap == 50 else (found.low < 0.5 < found.high)


@pytest.mark.parametrize(("fake", "real", "kind"), [(19, 50, "synthetic"), (50, 19, "held-out")])
def test_too_few_records_are_named(fake: int, real: int, kind: str) -> None:
    with pytest.raises(DataError, match=f"^19 {kind} records are too few"):
        evaluate_propensity(compare(draw_people(fake, 0), draw_people(real, 1)))


def test_without_scalar_columns_there_is_nothing_to_see() -> None:
    schema = Schema.from_dict({"columns": {"photo": {"type": "image", "shape": [2, 2]}}})
    photos = Records(schema, {"photo": np.zeros((30, 2, 2), np.uint8)}, 30)
    with pytest.raises(DataError, match="no column has one value per record"):
        evaluate_propensity(compare(photos, photos))


def test_every_measure_has_a_meaning() -> None:
    section = evaluate_propensity(compare(draw_people(60, 0), draw_people(60, 1)))
    assert set(section.metrics) == set(section.measures)
    json.dumps(section.details, allow_nan=False)


def test_the_picture_shows_the_columns_that_give_most_away() -> None:
    section = evaluate_propensity(
        compare(draw_people(300, 0, age=np.full(300, 90)), draw_people(300, 1, age=np.full(300, 20)))
    )
    axes = section.pictures[0].draw().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(section.details["propensity"]["gives_away"])
    assert axes.yaxis_inverted()


def test_a_table_of_one_column() -> None:
    schema = Schema.from_dict({"columns": {"ill": {"type": "boolean"}}})
    kind = Records(schema, {"ill": np.arange(40) % 2}, 40)
    section = evaluate_propensity(compare(kind, kind))
    assert len(section.pictures[0].draw().axes[0].patches) == 1
