"""Relations: how much of the dependence between two columns of the real data the synthetic data keeps.

Columns are cut into a few groups. The dependence of two columns is the difference between the share of records in each
pair of groups and the product of the shares of both, r = p(a, b) − p(a)·p(b), which is zero everywhere for independent
columns; r · r′ is the sum over pairs of groups and pairs of columns, each pair of groups weighted by 1 / (p(a)·p(b)) as
in Pearson's χ².

- kept: r(synthetic) · r(held out) / r(train) · r(held out). 1 for real data, 0 for independent columns.

- error: |r(synthetic) − r(real)|² / |r(real)|². 0 for real data, 1 for independent columns; more where the synthetic
data holds relations that the real data does not.

- pairs: the same as error with p(a, b) in place of r, which also detects errors of single columns.

The square of a sample is biased upwards by sampling, which hides differences where records are few. So no sample is
multiplied by itself: squares are products of two independent samples (held-out and training records; two halves of the
synthetic ones), and no figure is biased, however few records there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.columns import ScalarColumn
from sundog.evaluation.bootstrap import Blocks, Floats, Labels, measure_estimates
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.measure import Measure, Measures, Metric, Z, combine, compute_bonferroni_quantile, measure_ratio
from sundog.evaluation.tables.table_pair import ColumnNames
from sundog.evaluation.total_variation import normalise

GROUPS = 6  # of a column; one more for nulls
RARE = 0.02  # the smallest share of a group in its weight
FEWEST = 4  # records of each kind: fewer have no halves to resample
WEAK = 0.9  # a pair that keeps less than this is weakened

METRICS = {
    "fidelity.relations_kept": Metric(
        "Relations kept",
        "high",
        "The share of the dependence between two columns of the real data that the synthetic data keeps (over all "
        "pairs): 1 for real data, 0 for independent columns.",
    ),
    "fidelity.relations_error": Metric(
        "Error of relations",
        "low",
        "The error of relations between two columns, missing or made up, as a share of those in the real data "
        "(squares, over all pairs): 0 for real data, 1 for independent columns.",
    ),
    "fidelity.pairs_error": Metric(
        "Error of pairs",
        "low",
        "The same for joint distributions of pairs, which also detects errors of single columns.",
    ),
}


@dataclass(frozen=True)
class Relations:
    """What is kept of the relations of the real data; empty where the real data shows none.

    Args:
        measures: the measures by name.
        weakest: the pair with the largest significant loss, and the share that it keeps.
    """

    measures: Measures
    weakest: tuple[ColumnNames, Measure] | None

    @property
    def details(self) -> dict[str, Any]:
        """The weakest pair, for machines."""
        if self.weakest is None:
            return {"weakest_pair": None}
        pair, kept = self.weakest
        return {"weakest_pair": {"columns": list(pair), **kept.to_dict()}}


def measure_relations(comparison: Comparison, pairs: list[ColumnNames]) -> Relations:
    """Compare the relations of these pairs of columns."""
    if not pairs or min(len(each) for each in (comparison.train, comparison.test, comparison.synthetic)) < FEWEST:
        return Relations({}, None)
    columns = comparison.real.schema.scalars
    grouping = {name: _Grouping.of(comparison, name, columns[name]) for pair in pairs for name in pair}
    samples = _Samples.of(comparison, grouping)
    found = {pair: _Products.of(samples, grouping, pair) for pair in pairs}
    total = sum(found.values(), start=_Products.nothing())
    real = _measure_sum(total.real)
    parts = dict(zip(METRICS, (total.kept, total.error, total.pairs), strict=True))
    shares = {name: measure_ratio(_measure_sum(part), real) for name, part in parts.items()}
    if real.value <= 0 or any(share is None for share in shares.values()):
        return Relations({}, None)
    return Relations({name: share for name, share in shares.items() if share is not None}, _find_weakest(found))


def _find_weakest(found: Mapping[ColumnNames, _Products]) -> tuple[ColumnNames, Measure] | None:
    """Return the pair with the largest loss that is significant among all pairs."""
    z = compute_bonferroni_quantile(len(found))
    losses: dict[ColumnNames, float] = {}
    for pair, products in found.items():
        kept, real = (_measure_sum(each, z=z) for each in (products.kept, products.real))
        loss = combine((WEAK, real), (-1.0, kept), z=z)
        if real.low > 0 and loss.low > 0:
            losses[pair] = loss.value
    if not losses:
        return None
    pair = max(losses, key=lambda each: losses[each])
    share = measure_ratio(*(_measure_sum(each, z=z) for each in (found[pair].kept, found[pair].real)), z=z)
    return None if share is None else (pair, share)


def _measure_sum(estimates: Floats, *, z: float = Z) -> Measure:
    """Return a sum of products with its interval, which may reach below zero."""
    return measure_estimates(estimates, lowest=-np.inf, highest=np.inf, z=z, keep=True)


# --- groups --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grouping:
    """The groups of a column in the real records: quantiles of numbers, otherwise the most frequent values.

    Args:
        ends: the last code of each group except the last, for numbers; otherwise the codes with a group of their own.
        ordered: whether values are numbers.
        null_code: the code of nulls, which have the last group; -1 if the column is not nullable.
        shares: the share of each group in the real records.
    """

    ends: NDArray[Any]
    ordered: bool
    null_code: int
    shares: Floats

    @classmethod
    def of(cls, comparison: Comparison, name: str, column: ScalarColumn) -> _Grouping:
        codes = np.concatenate([comparison.train.codes[name], comparison.test.codes[name]]).astype(np.int64)
        ordered = column.is_numeric
        null_code = -1 if column.null_code is None else column.null_code
        known = codes[codes != null_code]
        values, counts = np.unique(known, return_counts=True)
        if ordered and len(known):
            steps = np.quantile(known, np.arange(1, GROUPS) / GROUPS, method="lower")
            spikes = values[counts > len(known) / GROUPS]
            ends = np.unique(np.concatenate([steps, spikes - 1]))  # frequent values get groups of their own
        else:
            ends = np.sort(values[np.argsort(-counts, kind="stable")[: GROUPS - 1]])
        bare = cls(ends, ordered, null_code, np.empty(0))
        return replace(bare, shares=np.bincount(bare.label(codes), minlength=bare.size) / max(1, len(codes)))

    @property
    def size(self) -> int:
        return len(self.ends) + 2  # the rest, and nulls

    def label(self, codes: NDArray[Any]) -> Labels:
        """Return the group of each code."""
        codes = codes.astype(np.int64)
        found = np.searchsorted(self.ends, codes, side="left")
        if not self.ordered:
            found = np.where(np.isin(codes, self.ends), found, len(self.ends))
        return np.where(codes == self.null_code, self.size - 1, found).astype(np.int64)


# --- products of samples -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Samples:
    """The independent samples in blocks, with the groups of their records: held out, train, two synthetic halves."""

    blocks: tuple[Blocks, ...]
    labels: tuple[Mapping[str, Labels], ...]

    @classmethod
    def of(cls, comparison: Comparison, grouping: Mapping[str, _Grouping]) -> _Samples:
        rng = comparison.make_rng("relations")
        half = rng.permutation(len(comparison.synthetic)) % 2 == 0
        records = (
            comparison.test,
            comparison.train,
            comparison.synthetic.take(half),
            comparison.synthetic.take(~half),
        )
        return cls(
            tuple(Blocks.deal(len(each), rng) for each in records),
            tuple({name: group.label(each.codes[name]) for name, group in grouping.items()} for each in records),
        )

    def compute_joint(self, place: int, pair: ColumnNames, grouping: Mapping[str, _Grouping]) -> Floats:
        """Return the share of records in each pair of groups: (estimates, groups of one, groups of the other)."""
        one, other = (grouping[name].size for name in pair)
        first, second = (self.labels[place][name] for name in pair)
        counts = self.blocks[place].sum_labels(first * other + second, one * other)
        return normalise(counts).reshape(-1, one, other)


@dataclass(frozen=True, eq=False)
class _Products:
    """Estimates of sums over pairs of groups; those of several pairs of columns add up."""

    kept: Floats
    real: Floats
    error: Floats
    pairs: Floats

    @classmethod
    def nothing(cls) -> _Products:
        return cls(*(np.zeros(1) for _ in range(4)))

    @classmethod
    def of(cls, samples: _Samples, grouping: Mapping[str, _Grouping], pair: ColumnNames) -> _Products:
        one, other = (np.maximum(grouping[name].shares, RARE) for name in pair)
        weight = 1 / np.outer(one, other)
        joint = [samples.compute_joint(place, pair, grouping) for place in range(4)]
        kept, real, error = _multiply_samples([_subtract_independence(each) for each in joint], weight)
        return cls(kept, real, error, _multiply_samples(joint, weight)[2])

    def __add__(self, other: _Products) -> _Products:
        return _Products(*(getattr(self, name) + getattr(other, name) for name in ("kept", "real", "error", "pairs")))


def _subtract_independence(joint: Floats) -> Floats:
    """Return the difference of each pair of groups from the product of both."""
    found: Floats = joint - joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)
    return found


def _multiply_samples(samples: list[Floats], weight: Floats) -> tuple[Floats, Floats, Floats]:
    """Return synthetic · held out, train · held out, and the squared distance of synthetic and real."""
    held_out, train, *halves = samples

    def multiply(left: Floats, right: Floats) -> Floats:
        return np.asarray((weight * left * right).sum(axis=(1, 2)))

    kept, real = multiply(held_out, (halves[0] + halves[1]) / 2), multiply(held_out, train)
    return kept, real, multiply(halves[0], halves[1]) - 2 * kept + real
