"""Figures that anybody may see: measured with noise, and charged to the ledger of the real data.

Everything else in a report was measured on private records without a budget. What is measured here is little: the
distances of all one-way marginals, and how many of the held-out records the models predict rightly. Whose answer is
counted depends on one record alone: models learn from synthetic records only, bins are the schema's, and all records
are counted, not a sample (which records are drawn depends on how many there are).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.bins import Bins, bins_for
from sundog.data.columns import ScalarColumn
from sundog.data.records import Records
from sundog.errors import DataError
from sundog.evaluate.measure import Measure, Measures
from sundog.privacy.calibration import smallest_noise
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import Histogram, noisy_histograms

_ACCURACY = ".accuracy"
_ANSWERS_SCALE = 2.0  # marginals have many cells and their noise adds up; the few answers can bear more of it


@dataclass(frozen=True)
class Answers:
    """How models did on all records that were held out: their accuracies by name."""

    accuracies: Mapping[str, float]
    count: int
    contribution: int


def publish(real: Records, synthetic: Records, tests: Answers | None, *, epsilon: float, ledger: Ledger) -> Measures:
    """Measures what can be shown, for ε of the ledger.

    Args:
        real: all real records.
        synthetic: records of the release.
        tests: what is known about the held-out records, if there were any.
        epsilon: what to spend.
        ledger: of the real data.
    """
    bins = {name: bins_for(column) for name, column in real.schema.columns.items() if isinstance(column, ScalarColumn)}
    if not bins:
        raise DataError("there is no column of single values whose marginal could be published; leave out publish")
    run = ledger.run(epsilon=epsilon, delta=ledger.budget.delta)
    counted = [_counts(real, name, cut) for name, cut in bins.items()]
    answered = [] if tests is None else [_answers(share, tests.count) for share in tests.accuracies.values()]

    def histograms(scale: float) -> list[Histogram]:
        shown = [
            Histogram(counts, scale, f"published marginal of {name}", 1, real.schema.cap)
            for name, counts in zip(bins, counted, strict=True)
        ]
        if tests is not None:
            shown += [
                Histogram(counts, scale * _ANSWERS_SCALE, f"published {name}", 1, tests.contribution)
                for name, counts in zip(tests.accuracies, answered, strict=True)
            ]
        return shown

    def plan(scale: float) -> list[Charge]:
        return [histogram.charge for histogram in histograms(scale)]

    scale = smallest_noise(plan, epsilon=epsilon, delta=run.budget.delta)
    asked = histograms(scale)
    noisy = noisy_histograms(asked, ledger=run)
    draws = np.random.default_rng(0)
    distances = [
        _distance(counts, _counts(synthetic, name, cut), histogram.standard_deviation, draws)
        for (name, cut), counts, histogram in zip(bins.items(), noisy, asked, strict=False)
    ]
    found: Measures = {"fidelity.tvd_1way": _mean(distances)}
    for name, counts, histogram in zip(
        tests.accuracies if tests else (), noisy[len(bins) :], asked[len(bins) :], strict=True
    ):
        found[name] = _share(counts, histogram.standard_deviation)
    return found


def _counts(records: Records, name: str, cut: Bins) -> NDArray[np.int64]:
    return np.bincount(cut.to_bins(records.codes[name]), minlength=cut.count).astype(np.int64)


def _answers(accuracy: float, count: int) -> NDArray[np.int64]:
    right = round(accuracy * count)
    return np.array([right, count - right], np.int64)


def _distance(noisy: Any, synthetic: Any, deviation: float, draws: np.random.Generator) -> Measure:
    """Total variation between noisy counts and exact ones; noise can have moved it by half its own sum at most."""
    counts = np.maximum(noisy, 0)
    total = max(float(counts.sum()), 1.0)
    value = 0.5 * float(np.abs(counts / total - synthetic / synthetic.sum()).sum())
    noise = np.abs(draws.normal(0.0, deviation, (1000, len(noisy)))).sum(axis=1)
    reach = float(np.quantile(noise, 0.95)) / total  # a half for the cells, and as much for the total
    return Measure(value, max(0.0, value - reach), min(1.0, value + reach))


def _mean(measures: list[Measure]) -> Measure:
    ends = np.array([[each.value, each.low, each.high] for each in measures]).mean(axis=0)
    return Measure(*map(float, ends))


def _share(noisy: Any, deviation: float) -> Measure:
    """The share of right answers, with an interval for both the noise and the sampling of the records."""
    right, wrong = (max(0.0, float(count)) for count in noisy)
    total = max(right + wrong, 1.0)
    share = right / total
    error = math.sqrt(share * (1 - share) / total + (deviation / total) ** 2)
    return Measure.around(share, error=error, lowest=0.0, highest=1.0)


def accuracies(measures: Mapping[str, Measure]) -> dict[str, float]:
    """Those of the measures that are shares of right answers."""
    return {
        name: measure.value
        for name, measure in measures.items()
        if name.startswith("utility.tstr.") and name.endswith(_ACCURACY) and "balanced" not in name
    }
