"""Figures for publication: measured with noise and charged to the ledger of the real data.

Everything else in a report is measured on private records without a budget. Only a few figures are published: the mean
distance of all one-way marginals, and how many held-out records each model predicts correctly. The contribution of one
record depends on no other record: synthetic records come from a release, whose size and seed are public; models learn
from synthetic records only; bins are the schema's; and all records are counted, not a sample (which records a sample
holds depends on how many there are). What is measured, and with how much noise, is fixed before any record is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sundog.data.bins import Bins, make_bins
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError, SundogError
from sundog.evaluation.measure import Measure, Measures, measure_share
from sundog.evaluation.report.number_text import format_power
from sundog.evaluation.total_variation import compute_total_variation
from sundog.privacy.calibration import find_smallest_noise
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.mechanisms import Histogram, compute_histogram_charge, noisy_histograms
from sundog.release.release import Release

_ANSWERS_SCALE = 2.0  # noise of the few answers over noise of the marginals, whose many cells add up

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Publication:
    """The planned publication and its noise; nothing here depends on a record.

    Args:
        schema: the schema of the release.
        models: the names of the accuracies to publish; empty without held-out records.
        scale: the noise scale of the marginals.
        run: the run of the ledger that is charged.
    """

    schema: Schema
    models: tuple[str, ...]
    scale: float
    run: Ledger

    @classmethod
    def plan(cls, release: Release | None, models: Sequence[str], *, epsilon: float, ledger: Ledger) -> Publication:
        """Plan a publication that costs ε; raise where it would not be private or would exceed the ledger."""
        if release is None:
            raise DataError("only figures about a release can be published: other data may contain real records")
        if release.verify() or not ledger.private:
            raise SundogError("the release or the ledger is not private: no figures can be published")
        schema = release.schema
        if not _find_bins(schema):
            raise DataError("no column has single values, so there is no marginal to publish; leave out publish")
        run = ledger.run(epsilon=epsilon, delta=ledger.budget.delta)
        scale = find_smallest_noise(
            lambda scale: _compute_charges(schema, models, scale), epsilon=epsilon, delta=ledger.budget.delta
        )
        run.check(*_compute_charges(schema, models, scale))
        return cls(schema, tuple(models), scale, run)

    def measure(self, real: Records, synthetic: Records, right: Mapping[str, int], tested: int) -> Measures:
        """Spend the planned budget and measure.

        Args:
            real: all real records.
            synthetic: records of the release.
            right: the number of held-out records that each model predicts correctly.
            tested: the number of held-out records.
        """
        counts = [_count_bins(real, name, cut) for name, cut in _find_bins(self.schema).items()]
        counts += [np.array([right[name], tested - right[name]], np.int64) for name in self.models]
        histograms = [
            Histogram(each, scale, purpose, 1, self.schema.cap)
            for each, (purpose, scale) in zip(
                counts, _list_histograms(self.schema, self.models, self.scale), strict=True
            )
        ]
        noisy = noisy_histograms(histograms, ledger=self.run)
        deviations = [histogram.standard_deviation for histogram in histograms]
        columns = _find_bins(self.schema).items()
        distances = [
            _measure_noisy_distance(each, _count_bins(synthetic, name, cut), deviation)
            for (name, cut), each, deviation in zip(columns, noisy, deviations, strict=False)
        ]
        found: Measures = {"fidelity.tvd_1way": _average_intervals(distances)}
        answers = zip(self.models, noisy[len(columns) :], deviations[len(columns) :], strict=True)
        return found | {name: measure_noisy_share(each, deviation) for name, each, deviation in answers}


def describe_price(budget: Budget) -> str:
    """Return what published figures cost.

    >>> describe_price(Budget(0.5, 1e-6))
    'The published figures cost ε = 0.5 (δ = 10⁻⁶) of the ledger.'
    """
    return f"The published figures cost ε = {budget.epsilon:g} (δ = {format_power(budget.delta)}) of the ledger."


def _find_bins(schema: Schema) -> dict[str, Bins]:
    return {name: make_bins(column) for name, column in schema.scalars.items()}


def _list_histograms(schema: Schema, models: Sequence[str], scale: float) -> list[tuple[str, float]]:
    """Return the purpose and the noise scale of each histogram."""
    marginals = [(f"published marginal of {name}", scale) for name in _find_bins(schema)]
    return marginals + [(f"published {name}", _ANSWERS_SCALE * scale) for name in models]


def _compute_charges(schema: Schema, models: Sequence[str], scale: float) -> list[Charge]:
    return [
        compute_histogram_charge(sigma=sigma, purpose=purpose, touched=1, contribution=schema.cap)
        for purpose, sigma in _list_histograms(schema, models, scale)
    ]


def _count_bins(records: Records, name: str, cut: Bins) -> Counts:
    return np.bincount(cut.to_bins(records.codes[name]), minlength=cut.count).astype(np.int64)


def _measure_noisy_distance(noisy: Counts, synthetic: Counts, deviation: float) -> Measure:
    """Return the total variation distance between noisy and exact counts; the interval covers the noise."""
    counts = np.maximum(noisy, 0)
    total = max(float(counts.sum()), 1.0)
    value = float(compute_total_variation(counts / total, synthetic / synthetic.sum()))
    noise = np.abs(np.random.default_rng(0).normal(0.0, deviation, (1000, len(noisy)))).sum(axis=1)
    reach = float(np.quantile(noise, 0.95)) / total  # half for the cells, half for the total
    return Measure(value, max(0.0, value - reach), min(1.0, value + reach))


def _average_intervals(measures: Sequence[Measure]) -> Measure:
    ends = np.array([[each.value, each.low, each.high] for each in measures]).mean(axis=0)
    return Measure(*map(float, ends))


def measure_noisy_share(noisy: Counts | NDArray[np.float64], deviation: float) -> Measure:
    """Return the share of the first of two counts, with Wilson's interval for the number that the noise leaves.

    >>> share = measure_noisy_share(np.array([90, 10]), 1.0)
    >>> round(share.value, 2), round(share.low, 2), round(share.high, 2)
    (0.9, 0.82, 0.95)

    Args:
        noisy: both counts.
        deviation: of the noise of each.
    """
    right, wrong = (max(0.0, float(count)) for count in noisy)
    total = max(right + wrong, 1.0)
    share = right / total
    spread = max(share * (1 - share), 1 / total)
    worth = 1 / (1 / total + (deviation / total) ** 2 / spread)
    return measure_share(share * worth, worth)
