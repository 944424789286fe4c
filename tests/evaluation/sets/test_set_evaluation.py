"""Sets: counting queries against brute force, measures against hand computations, hostile records."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.section import Section
from sundog.evaluation.sets.counting_queries import (
    compute_relative_errors,
    count_answers,
    draw_cooccurring_queries,
    draw_random_queries,
    evaluate_queries,
)
from sundog.evaluation.sets.set_evaluation import evaluate_sets

Baskets = Sequence[Sequence[int]]


def records_of(baskets: Baskets, universe: int) -> Records:
    schema = Schema.from_dict(
        {"columns": {"basket": {"type": "set", "universe": universe, "max_size": universe}, "age": AGE}}
    )
    codes = schema.columns["basket"].encode(
        [list(basket) for basket in baskets] or sparse.csr_array((0, universe)), where="t"
    )
    return Records(schema, {"basket": codes, "age": np.zeros(len(baskets), np.uint8)}, len(baskets))


AGE = {"type": "integer", "min": 0, "max": 9}


def compared(real: Baskets, synthetic: Baskets, universe: int, seed: int = 0) -> Section:
    ours, theirs = records_of(real, universe), records_of(synthetic, universe)
    return evaluate_sets(Comparison(ours, theirs, ours, ours, seed=seed), "basket")


def shopping(n: int, rng: np.random.Generator, universe: int = 30) -> list[list[int]]:
    """Baskets in which items 3k, 3k + 1 and 3k + 2 are mostly bought together, and low numbers often."""
    baskets = []
    for _ in range(n):
        kits = np.flatnonzero(rng.random(universe // 3) < 1.2 / np.arange(2, universe // 3 + 2))
        baskets.append([3 * int(kit) + part for kit in kits for part in range(3) if rng.random() < 0.9])
    return baskets


def disturbed(baskets: Baskets, share: float, rng: np.random.Generator, universe: int = 30) -> list[list[int]]:
    """The same with this share of the items swapped for random ones."""
    return [
        sorted({int(rng.integers(universe)) if rng.random() < share else item for item in basket}) for basket in baskets
    ]


# --- counting queries ----------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    baskets=st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=150),
    asked=st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=10),
)
def test_answers_are_those_of_brute_force(baskets: list[set[int]], asked: list[set[int]]) -> None:
    held = records_of([sorted(basket) for basket in baskets], 7).codes["basket"]
    expected = [sum(query <= basket for basket in baskets) for query in asked]
    assert count_answers(held, [np.array(sorted(query)) for query in asked]).tolist() == expected


def test_answers_do_not_depend_on_how_records_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    held = sparse.csr_array(rng.random((1000, 20)) < 0.3).astype(np.uint8)
    asked = draw_random_queries(20, 5, rng)
    whole = count_answers(held, asked)
    monkeypatch.setattr(evaluate_queries, "WORDS", 20)  # blocks of 64 records
    np.testing.assert_array_equal(count_answers(held, asked), whole)
    dense = held.toarray().astype(bool)
    np.testing.assert_array_equal(whole, [dense[:, items].all(axis=1).sum() for items in asked])


def test_lengths_of_random_queries_follow_the_paper() -> None:
    lengths = np.array([len(items) for items in draw_random_queries(100, 50, np.random.default_rng(0))]).reshape(5, 200)
    for class_, longest in enumerate((10, 20, 30, 40, 50)):
        assert lengths[class_].min() >= 1
        assert lengths[class_].max() <= longest
        assert lengths[class_].mean() == pytest.approx((1 + longest) / 2, abs=4 * longest / math.sqrt(12 * 200))


def test_items_of_random_queries_are_all_different_and_from_all_of_the_universe() -> None:
    asked = draw_random_queries(8, 8, np.random.default_rng(0))
    assert all(len(set(items.tolist())) == len(items) for items in asked)
    assert set(np.concatenate(asked).tolist()) == set(range(8))


def test_queries_are_not_longer_than_the_universe_and_never_empty() -> None:
    assert {len(items) for items in draw_random_queries(1, 0, np.random.default_rng(0))} == {1}


def test_cooccurring_queries_are_parts_of_real_sets() -> None:
    held = records_of([[0, 1, 2], [], [4]], 5).codes["basket"]
    asked = {tuple(sorted(items.tolist())) for items in draw_cooccurring_queries(held, np.random.default_rng(0), 300)}
    assert asked == {(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2), (4,)}


def test_the_error_is_relative_to_the_real_count_or_the_bound() -> None:
    found = compute_relative_errors(np.array([30.0, 0.0, 2.0, 100.0]), np.array([20, 20, 0, 10]), bound=10.0)
    assert found.tolist() == [0.5, 1.0, 0.2, 9.0]


def test_the_protocol_is_that_of_brute_force() -> None:
    rng = np.random.default_rng(1)
    real, synthetic = shopping(2000, rng), disturbed(shopping(1000, rng), 0.2, rng)
    ours, theirs = (records_of(baskets, 30).codes["basket"] for baskets in (real, synthetic))
    found = evaluate_queries(ours, theirs, np.random.default_rng(5)).measures

    dense, others = ours.toarray().astype(bool), theirs.toarray().astype(bool)
    same = np.random.default_rng(5)
    asked = [*draw_random_queries(30, max(map(len, real)), same), *draw_cooccurring_queries(ours, same, 4000)]
    truth = np.array([dense[:, items].all(axis=1).sum() for items in asked])
    guess = np.array([others[:, items].all(axis=1).sum() for items in asked])
    everything = np.abs(2 * guess - truth) / np.maximum(truth, 2)
    errors, answerable = everything[:1000], truth[:1000] >= 2
    together = everything[1000:][truth[1000:] >= 2]
    assert 1000 < len(together) < 4000  # some are held by one record only
    assert found["queries.relative_error_cooccurring"].value == pytest.approx(together[:1000].mean())
    assert found["queries.relative_error"].value == pytest.approx(np.mean(errors))
    assert found["queries.answerable_share"].value == pytest.approx(np.mean(answerable))
    assert found["queries.relative_error_answerable"].value == pytest.approx(errors[answerable].mean())
    for class_, name in enumerate(("20", "40", "60", "80", "100")):
        expected = np.mean(errors[200 * class_ : 200 * (class_ + 1)])
        assert found[f"queries.by_length.{name}"].value == pytest.approx(expected)


def test_twice_the_same_records_have_no_error() -> None:
    real = shopping(500, np.random.default_rng(0))
    found = compared(real, real + real, 30).measures
    assert {name: found[name].value for name in found if "error" in name and name.startswith("queries")} == {
        "queries.relative_error": 0.0,
        "queries.relative_error_answerable": 0.0,
        "queries.relative_error_cooccurring": 0.0,
    }


def test_intervals_hold_the_error_of_other_queries() -> None:
    rng = np.random.default_rng(2)
    real, synthetic = (records_of(shopping(1000, rng), 30).codes["basket"] for _ in range(2))
    found = [evaluate_queries(real, synthetic, np.random.default_rng(seed)).measures for seed in range(12)]
    for name in ("queries.relative_error", "queries.relative_error_cooccurring"):
        middle = np.mean([each[name].value for each in found])
        assert sum(each[name].low <= middle <= each[name].high for each in found) >= 9


# --- the other measures --------------------------------------------------------------------------------------------


def test_measures_by_hand() -> None:
    # Frequencies: real (1, 3/4, 0), synthetic (1/2, 1/2, 1/2). Sizes: real 1, 2, 2, 2; synthetic 1, 2.
    found = compared([[0], [0, 1], [0, 1], [0, 1]], [[0, 1], [2]], 3).measures
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
    assert compared(real, synthetic, 30).measures["sets.topk_overlap"].value == 0.5


def test_pairs_are_those_of_the_most_frequent_real_items() -> None:
    rng = np.random.default_rng(0)
    real, synthetic = (sparse.csr_array(rng.random((400, 250)) < np.linspace(0.02, 0.3, 250)) for _ in range(2))
    baskets, others = ([np.flatnonzero(row).tolist() for row in held.toarray()] for held in (real, synthetic))
    found = compared(baskets, others, 250).measures["sets.pair_frequency_error"].value
    most = np.argsort(-real.sum(axis=0), kind="stable")[:200]
    ours, theirs = (held.toarray()[:, most].astype(float) for held in (real, synthetic))
    difference = np.abs(ours.T @ ours - theirs.T @ theirs) / 400
    assert found == pytest.approx(difference[np.triu_indices(200, 1)].mean())


def test_records_compared_with_themselves_are_perfect() -> None:
    real = shopping(400, np.random.default_rng(0))
    for name, found in compared(real, real, 30).measures.items():
        if name != "queries.answerable_share":
            assert found.value == (1.0 if name == "sets.topk_overlap" else 0.0), name


def test_more_noise_is_worse() -> None:
    rng = np.random.default_rng(0)
    real = shopping(2000, rng)
    found = [compared(real, disturbed(real, share, rng), 30).measures for share in (0.02, 0.2, 0.9)]
    for name in found[0]:
        if name == "queries.answerable_share" or "by_length" in name:
            continue
        values = [each[name].value for each in found]
        assert values == sorted(values, reverse=name == "sets.topk_overlap"), name


def test_items_that_know_nothing_of_each_other_are_told_by_pairs_and_queries_only() -> None:
    ours = records_of(shopping(2000, np.random.default_rng(0)), 30)
    comparison = Comparison(ours, ours, ours, ours)
    floor = evaluate_sets(comparison.floor(), "basket").measures
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
    found = compared(real, synthetic, universe)
    assert set(found.metrics) == set(found.measures)
    json.dumps(found.details, allow_nan=False)
    for name, measure in found.measures.items():
        assert math.isnan(measure.value) or 0 <= measure.low <= measure.value <= measure.high, name
        assert not math.isnan(measure.value) or name.endswith(("answerable", "cooccurring")), name
    for picture in found.pictures:
        picture.draw().canvas.draw()


def test_nothing_real_to_ask_about_is_said() -> None:
    found = compared([[]] * 5, [[1]] * 5, 4)
    assert math.isnan(found.measures["queries.relative_error_cooccurring"].value)
    assert found.measures["sets.item_tvd"].value == 0.5
    assert "no random counting query" in found.notes[0]


def test_explicit_zeros_are_no_items() -> None:
    ours = records_of([[0], [0, 1]], 2)
    codes = sparse.csr_array((np.array([1, 0, 1, 1], np.uint8), [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    theirs = Records(ours.schema, {**ours.codes, "basket": codes}, 2)
    found = evaluate_sets(Comparison(ours, theirs, ours, ours), "basket").measures
    assert found["sets.item_frequency_error"].value == found["sets.size_tvd"].value == 0.0
    assert found["queries.relative_error"].value == 0.0
    assert codes.nnz == 4  # what was given is as it was


def test_no_records_are_refused() -> None:
    with pytest.raises(DataError, match="column 'basket' has no records"):
        compared([[0]], [], 2)


def test_another_kind_of_column_is_refused() -> None:
    ours = records_of([[0]], 2)
    with pytest.raises(DataError, match="column 'age' is integer, not a set"):
        evaluate_sets(Comparison(ours, ours, ours, ours), "age")


def test_the_seed_decides() -> None:
    rng = np.random.default_rng(0)
    real, synthetic = shopping(300, rng), shopping(300, rng)
    first, again, other = (compared(real, synthetic, 30, seed).measures for seed in (1, 1, 2))
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
