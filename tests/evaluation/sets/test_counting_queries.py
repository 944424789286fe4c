"""Counting queries against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.evaluation.sets.baskets import disturb_baskets, draw_baskets, encode_baskets, evaluate_baskets

from sundog.evaluation.sets import counting_queries
from sundog.evaluation.sets.counting_queries import (
    compute_relative_errors,
    count_answers,
    draw_cooccurring_queries,
    draw_random_queries,
    evaluate_queries,
)


@settings(max_examples=50)
@given(
    baskets=st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=150),
    asked=st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=10),
)
def test_answers_are_those_of_brute_force(baskets: list[set[int]], asked: list[set[int]]) -> None:
    held = encode_baskets([sorted(basket) for basket in baskets], 7).codes["basket"]
    expected = [sum(query <= basket for basket in baskets) for query in asked]
    assert count_answers(held, [np.array(sorted(query)) for query in asked]).tolist() == expected


def test_answers_do_not_depend_on_how_records_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    held = sparse.csr_array(rng.random((1000, 20)) < 0.3).astype(np.uint8)
    asked = draw_random_queries(20, 5, rng)
    whole = count_answers(held, asked)
    monkeypatch.setattr(counting_queries, "WORDS", 20)  # blocks of 64 records
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
    held = encode_baskets([[0, 1, 2], [], [4]], 5).codes["basket"]
    asked = {tuple(sorted(items.tolist())) for items in draw_cooccurring_queries(held, np.random.default_rng(0), 300)}
    assert asked == {(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2), (4,)}


def test_the_error_is_relative_to_the_real_count_or_the_bound() -> None:
    found = compute_relative_errors(np.array([30.0, 0.0, 2.0, 100.0]), np.array([20, 20, 0, 10]), bound=10.0)
    assert found.tolist() == [0.5, 1.0, 0.2, 9.0]


def test_the_protocol_is_that_of_brute_force() -> None:
    rng = np.random.default_rng(1)
    real, synthetic = draw_baskets(2000, rng), disturb_baskets(draw_baskets(1000, rng), 0.2, rng)
    ours, theirs = (encode_baskets(baskets, 30).codes["basket"] for baskets in (real, synthetic))
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
    real = draw_baskets(500, np.random.default_rng(0))
    found = evaluate_baskets(real, real + real, 30).measures
    assert {name: found[name].value for name in found if "error" in name and name.startswith("queries")} == {
        "queries.relative_error": 0.0,
        "queries.relative_error_answerable": 0.0,
        "queries.relative_error_cooccurring": 0.0,
    }


def test_intervals_hold_the_error_of_other_queries() -> None:
    rng = np.random.default_rng(2)
    real, synthetic = (encode_baskets(draw_baskets(1000, rng), 30).codes["basket"] for _ in range(2))
    found = [evaluate_queries(real, synthetic, np.random.default_rng(seed)).measures for seed in range(12)]
    for name in ("queries.relative_error", "queries.relative_error_cooccurring"):
        middle = np.mean([each[name].value for each in found])
        assert sum(each[name].low <= middle <= each[name].high for each in found) >= 9
