"""Sets: counting queries against brute force, measures against hand computations, hostile records."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.evaluation.sets.baskets import Baskets, disturb_baskets, draw_baskets, encode_baskets, evaluate_baskets

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.sets.set_evaluation import evaluate_sets

# --- the other measures --------------------------------------------------------------------------------------------


def test_measures_by_hand() -> None:
    # Frequencies: real (1, 3/4, 0), synthetic (1/2, 1/2, 1/2). Sizes: real 1, 2, 2, 2; synthetic 1, 2.
    found = evaluate_baskets([[0], [0, 1], [0, 1], [0, 1]], [[0, 1], [2]], 3).measures
    expected = {
        "sets.item_frequency_error": (1 / 2 + 1 / 4 + 1 / 2) / 3,
        "sets.item_tvd": (abs(4 / 7 - 1 / 3) + abs(3 / 7 - 1 / 3) + 1 / 3) / 2,
        "sets.pair_frequency_error": abs(3 / 4 - 1 / 2) / 3,  # of the pairs 01, 02 and 12
        "sets.size_tvd": 1 / 4,
        "sets.topk_overlap": 1.0,  # two items are held at all, and items 0 and 1 come before 2
    }
    assert {name: found[name].value for name in expected} == pytest.approx(expected)


def test_top_items_that_are_missed_are_counted() -> None:
    real = [[item] for item in range(30) for _ in range(31 - item)]
    synthetic = [[item] for item in range(10, 30) for _ in range(31 - item)]
    assert evaluate_baskets(real, synthetic, 30).measures["sets.topk_overlap"].value == 0.5


def test_pairs_are_those_of_the_most_frequent_real_items() -> None:
    rng = np.random.default_rng(0)
    real, synthetic = (sparse.csr_array(rng.random((400, 250)) < np.linspace(0.02, 0.3, 250)) for _ in range(2))
    baskets, others = ([np.flatnonzero(row).tolist() for row in held.toarray()] for held in (real, synthetic))
    found = evaluate_baskets(baskets, others, 250).measures["sets.pair_frequency_error"].value
    most = np.argsort(-real.sum(axis=0), kind="stable")[:200]
    ours, theirs = (held.toarray()[:, most].astype(float) for held in (real, synthetic))
    difference = np.abs(ours.T @ ours - theirs.T @ theirs) / 400
    assert found == pytest.approx(difference[np.triu_indices(200, 1)].mean())


def test_records_compared_with_themselves_are_perfect() -> None:
    real = draw_baskets(400, np.random.default_rng(0))
    for name, found in evaluate_baskets(real, real, 30).measures.items():
        if name != "queries.answerable_share":
            assert found.value == (1.0 if name == "sets.topk_overlap" else 0.0), name


def test_more_noise_is_worse() -> None:
    rng = np.random.default_rng(0)
    real = draw_baskets(2000, rng)
    found = [evaluate_baskets(real, disturb_baskets(real, share, rng), 30).measures for share in (0.02, 0.2, 0.9)]
    for name in found[0]:
        if name == "queries.answerable_share" or "by_length" in name:
            continue
        values = [each[name].value for each in found]
        assert values == sorted(values, reverse=name == "sets.topk_overlap"), name


def test_items_that_know_nothing_of_each_other_are_told_by_pairs_and_queries_only() -> None:
    ours = encode_baskets(draw_baskets(2000, np.random.default_rng(0)), 30)
    comparison = Comparison(ours, ours, ours, ours)
    floor = evaluate_sets(comparison.build_floor(), "basket").measures
    assert floor["sets.item_frequency_error"].value == 0.0
    assert floor["sets.topk_overlap"].value == 1.0
    assert floor["sets.pair_frequency_error"].low > 0.01
    assert floor["sets.size_tvd"].low > 0.1
    assert floor["queries.relative_error_cooccurring"].low > 0.3


# --- hostile records -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("real", "synthetic", "universe"),
    [
        ([[]] * 5, [[]] * 3, 4),
        ([[]] * 5, [[0, 1, 2, 3]] * 3, 4),
        ([[0, 1, 2, 3]] * 5, [[]] * 3, 4),
        ([[0]], [[1]], 2),
        ([[0], []], [[0]], 1),
        ([list(range(300))], [[299]], 300),
    ],
)
def test_strange_sets_are_measured(real: Baskets, synthetic: Baskets, universe: int) -> None:
    found = evaluate_baskets(real, synthetic, universe)
    assert set(found.metrics) == set(found.measures)
    json.dumps(found.details, allow_nan=False)
    for name, measure in found.measures.items():
        assert math.isnan(measure.value) or 0 <= measure.low <= measure.value <= measure.high, name
        assert not math.isnan(measure.value) or name.endswith(("answerable", "cooccurring")), name
    for picture in found.pictures:
        picture.draw().canvas.draw()


def test_nothing_real_to_ask_about_is_said() -> None:
    found = evaluate_baskets([[]] * 5, [[1]] * 5, 4)
    assert math.isnan(found.measures["queries.relative_error_cooccurring"].value)
    assert found.measures["sets.item_tvd"].value == 0.5
    assert "no random counting query" in found.notes[0]


def test_explicit_zeros_are_no_items() -> None:
    ours = encode_baskets([[0], [0, 1]], 2)
    codes = sparse.csr_array((np.array([1, 0, 1, 1], np.uint8), [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    theirs = Records(ours.schema, {**ours.codes, "basket": codes}, 2)
    found = evaluate_sets(Comparison(ours, theirs, ours, ours), "basket").measures
    assert found["sets.item_frequency_error"].value == found["sets.size_tvd"].value == 0.0
    assert found["queries.relative_error"].value == 0.0
    assert codes.nnz == 4  # what was given is as it was


def test_no_records_are_refused() -> None:
    with pytest.raises(DataError, match="column 'basket' has no records"):
        evaluate_baskets([[0]], [], 2)


def test_another_kind_of_column_is_refused() -> None:
    ours = encode_baskets([[0]], 2)
    with pytest.raises(DataError, match="column 'age' is integer, not a set"):
        evaluate_sets(Comparison(ours, ours, ours, ours), "age")


def test_the_seed_decides() -> None:
    rng = np.random.default_rng(0)
    real, synthetic = draw_baskets(300, rng), draw_baskets(300, rng)
    first, again, other = (evaluate_baskets(real, synthetic, 30, seed).measures for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_details_name_the_items() -> None:
    schema = Schema.from_dict({"columns": {"basket": {"type": "set", "universe": ["tea", "milk"], "max_size": 2}}})
    column: Any = schema.columns["basket"]
    ours = Records(schema, {"basket": column.encode([["milk"], ["milk", "tea"]], where="t")}, 2)
    theirs = Records(schema, {"basket": column.encode([["tea"]], where="t")}, 1)
    found = evaluate_sets(Comparison(ours, theirs, ours, ours), "basket").details["sets"]
    assert found["top_items"] == [
        {"item": "milk", "real": 1.0, "synthetic": 0.0},
        {"item": "tea", "real": 0.5, "synthetic": 1.0},
    ]
    assert found["mean_size"] == {"real": 1.5, "synthetic": 1.0}
