"""Counting queries over sets as in Acs et al. (2019): how many records hold all of these items?

1. A thousand queries in five classes of 200. The length of a query of class i is uniform in 1 … i·m/5, where m is the
size of the largest real set; its items are drawn from the universe. 2. The error of a query is |Q(synthetic) − Q(real)|
/ max(Q(real), s) with the sanity bound s = 0.1% of the records; synthetic counts are scaled to the real number of
records. (One printing of the paper divides by the synthetic count instead, which hides overcounting; the other two
divide by the real one, as here.) 3. In any data most long random queries have the answer zero. So the share of queries
that reach the bound is reported, too, with the error over those alone and the error over queries of items that some
real record holds together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.evaluation.bootstrap import Floats, bootstrap_mean
from sundog.evaluation.measure import Measure, Measures, Metric, measure_share
from sundog.evaluation.section import Picture, Section

QUERIES = 1000
CLASSES = 5
SANITY = 0.001  # of the records
CANDIDATES = 4  # drawn per query of co-occurring items: many are too rare to be answered
WORDS = 2**23  # of 64 records each are held in memory over all items: 64 MB

Query = NDArray[np.int64]
Integers = NDArray[np.int64]


def draw_random_queries(universe: int, largest: int, rng: np.random.Generator, count: int = QUERIES) -> list[Query]:
    """Draw the queries of the paper, class by class.

    Args:
        universe: the number of items.
        largest: the size of the largest real set.
        rng: draws lengths and items.
        count: the number of queries, a multiple of five.
    """
    queries = []
    for class_ in range(1, CLASSES + 1):
        longest = min(universe, max(1, class_ * largest // CLASSES))
        lengths = rng.integers(1, longest, count // CLASSES, endpoint=True)
        queries += [rng.choice(universe, length, replace=False) for length in lengths]
    return queries


def draw_cooccurring_queries(sets: Any, rng: np.random.Generator, count: int) -> list[Query]:
    """Draw random subsets of random sets, of any length up to the whole set; none if all sets are empty."""
    filled = np.flatnonzero(np.diff(sets.indptr))
    if not len(filled):
        return []
    queries = []
    for row in rng.choice(filled, count):
        items = sets.indices[sets.indptr[row] : sets.indptr[row + 1]]
        queries.append(rng.choice(items, rng.integers(1, len(items), endpoint=True), replace=False).astype(np.int64))
    return queries


def count_answers(sets: Any, queries: Sequence[Query]) -> Integers:
    """Return, for each query, the number of sets that hold all its items.

    >>> from scipy import sparse
    >>> sets = sparse.csr_array([[1, 1, 0], [1, 0, 1], [1, 1, 1]])
    >>> count_answers(sets, [np.array([0]), np.array([1, 2])]).tolist()
    [3, 1]
    """
    records, universe = sets.shape
    found = np.zeros(len(queries), np.int64)
    block = 64 * max(1, WORDS // universe)
    for start in range(0, records, block):
        holders = _pack_bits(sets[start : start + block])
        for place, items in enumerate(queries):
            all_of_them = np.bitwise_and.reduce(holders[items], axis=0)
            found[place] += int(np.bitwise_count(all_of_them).sum())
    return found


def _pack_bits(sets: Any) -> NDArray[np.uint64]:
    """Return a bit for each item and set, 64 sets per word: (items, words)."""
    records, universe = sets.shape
    words = math.ceil(records / 64)
    row = np.repeat(np.arange(records), np.diff(sets.indptr))
    bits = np.zeros(universe * words, np.uint64)
    np.bitwise_or.at(bits, sets.indices * words + row // 64, np.uint64(1) << (row % 64).astype(np.uint64))
    return bits.reshape(universe, words)


def compute_relative_errors(synthetic: Floats, real: Integers, bound: float) -> Floats:
    """Return the relative error of each answer.

    >>> compute_relative_errors(np.array([12.0, 3.0]), np.array([10, 0]), bound=5.0).tolist()
    [0.2, 0.6]
    """
    return np.asarray(np.abs(synthetic - real) / np.maximum(real, bound))


@dataclass(frozen=True)
class AnsweredQueries:
    """Queries, the error of the synthetic answer to each, and whether enough real records answer it."""

    queries: Sequence[Query]
    errors: Floats
    answerable: NDArray[np.bool_]

    def take(self, places: Integers) -> AnsweredQueries:
        """Return some of the queries."""
        return AnsweredQueries([self.queries[place] for place in places], self.errors[places], self.answerable[places])


def _answer_queries(queries: Sequence[Query], real: Any, synthetic: Any) -> AnsweredQueries:
    truth = count_answers(real, queries)
    bound = SANITY * real.shape[0]
    scaled = count_answers(synthetic, queries) * (real.shape[0] / synthetic.shape[0])
    return AnsweredQueries(queries, compute_relative_errors(scaled, truth, bound), truth >= bound)


def evaluate_queries(real: Any, synthetic: Any, rng: np.random.Generator) -> Section:
    """Run the whole protocol on two sparse arrays of sets, (records, items) each."""
    largest = int(np.diff(real.indptr).max())
    asked = _answer_queries(draw_random_queries(real.shape[1], largest, rng), real, synthetic)
    candidates = _answer_queries(draw_cooccurring_queries(real, rng, CANDIDATES * QUERIES), real, synthetic)
    together = candidates.take(np.flatnonzero(candidates.answerable)[:QUERIES])
    classes = [asked.take(places) for places in np.array_split(np.arange(QUERIES), CLASSES)]
    by_length = [bootstrap_mean(each.errors, rng, lowest=0.0) for each in classes]
    by_length_answerable = [bootstrap_mean(each.errors[each.answerable], rng, lowest=0.0) for each in classes]
    measures: Measures = {
        "queries.relative_error": bootstrap_mean(asked.errors, rng, lowest=0.0),
        "queries.relative_error_answerable": bootstrap_mean(asked.errors[asked.answerable], rng, lowest=0.0),
        "queries.relative_error_cooccurring": bootstrap_mean(together.errors, rng, lowest=0.0),
        "queries.answerable_share": measure_share(float(asked.answerable.sum()), QUERIES),
        **{f"queries.by_length.{percent}": found for percent, found in zip(_PERCENT, by_length, strict=True)},
    }
    details = {
        "sanity_bound": SANITY * real.shape[0],
        "largest_set": largest,
        "by_length": _describe_classes(classes, by_length, by_length_answerable, largest),
        "cooccurring": {
            "candidates": len(candidates.queries),
            "answerable": int(candidates.answerable.sum()),
            "by_items": _group_by_items(together),
        },
    }
    picture = Picture(
        "Counting queries",
        f"The mean relative error of random queries of up to 20%, 40%, … of the largest set ({largest} items), with "
        "95% intervals: of all of them, and of those that enough real records answer. To the right, queries of items "
        "that are held together.",
        lambda: _draw_errors(by_length, by_length_answerable, measures["queries.relative_error_cooccurring"]),
    )
    notes = [] if asked.answerable.any() else ["no random counting query has an answer of 0.1% of the records or more"]
    return Section("Counting queries", measures, METRICS, {"queries": details}, [picture], notes)


def _describe_classes(
    classes: Sequence[AnsweredQueries], errors: Sequence[Measure], answerable: Sequence[Measure], largest: int
) -> list[dict[str, Any]]:
    """Return the figures of each class of queries, given its errors over all and over answerable queries."""
    return [
        {
            "longest": max(1, largest * percent // 100),
            "queries": len(each.queries),
            "answerable": int(each.answerable.sum()),
            "relative_error": error.to_dict(),
            "relative_error_answerable": error_answerable.to_dict(),
        }
        for percent, each, error, error_answerable in zip(_PERCENT, classes, errors, answerable, strict=True)
    ]


def _group_by_items(asked: AnsweredQueries) -> dict[str, dict[str, float]]:
    """Return the errors by the number of items in a query."""
    lengths = np.array([len(items) for items in asked.queries], np.int64)
    return {
        str(length): {
            "queries": int((lengths == length).sum()),
            "relative_error": asked.errors[lengths == length].mean(),
        }
        for length in np.unique(lengths).tolist()
    }


_PERCENT = [100 * class_ // CLASSES for class_ in range(1, CLASSES + 1)]

METRICS = {
    "queries.relative_error": Metric(
        "Error of counting queries",
        "low",
        "The error of the number of records that hold some random items together, as a share of the true number, or of "
        "0.1% of the records where that is larger: the mean of 1,000 queries, many of which have the answer zero.",
        ideal=0.0,
    ),
    "queries.relative_error_answerable": Metric(
        "… that have an answer",
        "low",
        "The same over the random queries whose true answer is at least 0.1% of the records.",
        ideal=0.0,
    ),
    "queries.relative_error_cooccurring": Metric(
        "Error of queries, items held together",
        "low",
        "The same over 1,000 queries of items that some real record holds together, each with a true answer of at "
        "least 0.1% of the records.",
        ideal=0.0,
    ),
    "queries.answerable_share": Metric(
        "Queries that have an answer",
        "high",
        "The share of the random queries whose true answer is at least 0.1% of the records. It is a property of the "
        "real data, not of the release.",
    ),
    **{
        f"queries.by_length.{percent}": Metric(
            f"… of up to {percent}% of the largest set",
            "low",
            f"The error of the random queries with at most {percent}% as many items as the largest real set.",
            ideal=0.0,
        )
        for percent in _PERCENT
    },
}


def _draw_errors(by_length: Sequence[Measure], answerable: Sequence[Measure], together: Measure) -> Any:
    from matplotlib.figure import Figure

    from sundog.evaluation.report.plot_style import ACCENT, SYNTHETIC, compute_error_bars

    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    axes = figure.subplots()
    places = np.arange(CLASSES + 1)
    for shifted, found, colour, label in (
        (places[:-1] - 0.12, by_length, SYNTHETIC, "all"),
        (places + 0.12, [*answerable, together], ACCENT, "answerable"),
    ):
        values = [measure.value for measure in found]
        axes.errorbar(
            shifted, values, compute_error_bars(found), fmt="o", markersize=4, capsize=3, color=colour, label=label
        )
    axes.set_xticks(places, [*(f"{percent}%" for percent in _PERCENT), "together"])
    axes.set(xlabel="longest query, of the largest set", ylabel="relative error")
    axes.set_ylim(bottom=0.0)
    axes.grid(axis="y")
    axes.legend()
    return figure
