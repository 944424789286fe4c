"""The means that a generator starts from, for each value of its condition.

Every record has one value, so the sums for all values cost as much as one; the sum of the value's own feature is its
count. Where an example is a person, each person's mean is averaged, and people are counted privately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.models.neural.features import FeatureRows, Features
from sundog.models.neural.noisy_means import MeansPlan, measure_means, measure_sums
from sundog.models.neural.person_examples import PeopleRows
from sundog.models.protocol import FitContext, Parts
from sundog.models.released import PEOPLE
from sundog.privacy.events import Charge, DiscreteLaplace
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.measure_once import measure_once
from sundog.privacy.mechanisms import noisy_count

_PEOPLE_SHARE = 0.02  # of ε
_CLEAR = 2.5  # a frequency, or the count of a value, is kept if it is this many times its noise

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ConditionalMeans:
    """Noisy means for each value of the condition.

    Args:
        shares: of the values of the condition; empty without a condition.
        means: of the features of records that have the value; one row without a condition.
        scales: of the noise in those means.
    """

    shares: Tensor
    means: Sequence[Tensor]
    scales: Sequence[float]

    def logits(self, features: Features) -> Tensor:
        """Return the logits of the means, (values, features)."""
        pairs = zip(self.means, self.scales, strict=True)
        return torch.stack(
            [features.logits(features.condition_on_presence(mean), least=scale) for mean, scale in pairs]
        )


def measure_conditional_means(
    features: Features,
    records: Records,
    means: MeansPlan,
    ledger: Ledger,
    context: FitContext,
    *,
    condition: str | None,
    count: float,
    people_charge: Charge | None,
) -> ConditionalMeans:
    """Measure the means that the generator starts from, or load those measured before an interruption.

    Args:
        features: of the records.
        records: the private records.
        means: what the means cost.
        ledger: pays, and draws the noise.
        context: has the checkpoint.
        condition: the column on which the generator is conditioned; None for none.
        count: about how many records there are.
        people_charge: what it costs to count people; None where an example is a record.
    """
    if people_charge is not None:
        people = PeopleRows(features, records)
        count = _count_people(len(people), people_charge, ledger, context)
        return _measure_overall(features, people, count, means, ledger, context)
    rows = FeatureRows(features, records)
    if condition is None:
        return _measure_overall(features, rows, count, means, ledger, context)
    at = features.at(condition)
    values = at.stop - at.start
    parts = Parts(features.to_cells(condition, records.codes[condition]), (count / values,) * values)
    sums, scale = measure_sums(features, rows, parts, means, ledger, context)
    return _divide_by_counts(features, at, count, sums, scale)


def _divide_by_counts(features: Features, at: slice, count: float, sums: Floats, scale: float) -> ConditionalMeans:
    """Return the means of each value; values whose counts do not exceed the noise get the means of all records."""
    count = max(1.0, count)
    counts, values = sums[:, at].diagonal(), len(sums)
    clear = counts > _CLEAR * scale
    means = np.where(clear[:, None], sums / np.where(clear, counts, 1.0)[:, None], sums.sum(axis=0) / count)
    means[:, at] = np.eye(values)
    scales = np.where(clear, scale / np.where(clear, counts, 1.0), scale * values**0.5 / count)
    shares = torch.from_numpy(np.maximum(counts, scale)).float()
    return _smooth(features, shares / shares.sum(), torch.from_numpy(means.clip(0.0, 1.0)).float(), scales)


def _measure_overall(
    features: Features,
    rows: FeatureRows | PeopleRows,
    count: float,
    plan: MeansPlan,
    ledger: Ledger,
    context: FitContext,
) -> ConditionalMeans:
    means, scales = measure_means(features, rows, Parts.whole(count), plan, ledger, context)
    return _smooth(features, torch.zeros(0), torch.from_numpy(means).float(), scales)


def _smooth(features: Features, shares: Tensor, means: Tensor, scales: Floats) -> ConditionalMeans:
    """Keep the frequencies of a mean series that exceed the noise, which is the same in all of them.

    Otherwise the noise at each position would be in all generated series.
    """
    noise = torch.from_numpy(scales).float()[:, None]
    for at in (features.at(name) for name, column in features.schema.columns.items() if column.form is Form.SERIES):
        waves = torch.fft.rfft(means[:, at], norm="ortho")
        kept = torch.where(waves.abs() > _CLEAR * noise, waves, 0)
        kept[:, 0] = waves[:, 0]  # the level is kept
        means[:, at] = torch.fft.irfft(kept, n=at.stop - at.start, norm="ortho").clamp(0.0, 1.0)
    return ConditionalMeans(shares, list(means), scales.tolist())


# --- people ---


def make_people_charge(budget: Budget) -> Charge:
    """Return the charge for counting people."""
    return Charge(event=DiscreteLaplace(rate=_PEOPLE_SHARE * budget.epsilon, sensitivity=1), purpose=PEOPLE)


def _count_people(people: int, charge: Charge, ledger: Ledger, context: FitContext) -> float:
    assert isinstance(charge.event, DiscreteLaplace)  # noqa: S101
    epsilon = charge.event.rate

    def measure(ledger: Ledger) -> dict[str, npt.NDArray[Any]]:
        return {"count": np.array([noisy_count(people, epsilon=epsilon, ledger=ledger, purpose=PEOPLE)], np.float64)}

    return max(1.0, float(measure_once("people", [charge], measure, ledger, context.checkpoint)["count"][0]))
