"""The noisy mean of every feature, in each part of the records: what a network starts from.

A network that starts from the marginals spends its training on the dependences between columns. 1. Most records have
much smaller norms than the schema allows: a private quantile of their norms is the clipping norm. 2. Records are
clipped to it and summed in each part; one Gaussian covers all parts, because a record is in one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sundog.data.schema import Schema
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext, Parts
from sundog.models.released import MEANS, NORM
from sundog.privacy.calibration import find_noise_multiplier
from sundog.privacy.draws import RowsDraw
from sundog.privacy.events import Charge, Gaussian, Pure
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.measure_once import measure_once
from sundog.privacy.mechanisms import gaussian_group_sums, noisy_quantiles

_NORM_SHARE = 0.01  # of ε
_SPREAD = 2**10  # parts of one
_NUMBERS = 2**22  # in a chunk
_WRONG = 1e-3  # the probability that the rank of a quantile is wrong by more than is allowed for

Floats = npt.NDArray[np.float64]


class Rows(Protocol):
    """Records, or people whose records were averaged."""

    def __len__(self) -> int: ...

    def take_vectors(self, index: npt.NDArray[np.int64]) -> Tensor:
        """Return the vectors at these places."""


@dataclass(frozen=True)
class MeansPlan:
    """The public numbers of the means.

    Args:
        norm_epsilon: of the quantile of norms.
        noise_multiplier: of the sums.
    """

    norm_epsilon: float
    noise_multiplier: float

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The charges of the norm and of the sums, in the order in which they are made."""
        return (
            Charge(event=Pure(epsilon=self.norm_epsilon), purpose=NORM),
            Charge(event=Gaussian(noise_multiplier=self.noise_multiplier), purpose=MEANS),
        )


def plan_means(budget: Budget, *, share: float) -> MeansPlan:
    """Plan the means for a share of the budget, measured in 1 / noise_multiplier².

    >>> round(plan_means(Budget(1.0, 1e-5), share=0.04).noise_multiplier, 1)
    18.7
    """
    return MeansPlan(_NORM_SHARE * budget.epsilon, calibrate_share(budget, share))


def calibrate_share(budget: Budget, share: float) -> float:
    """Return the noise multiplier of a Gaussian that takes a share of the budget, measured in 1 / noise_multiplier².

    >>> round(calibrate_share(Budget(1.0, 1e-5), 0.25), 2)
    7.46
    """
    all_of_it = find_noise_multiplier(epsilon=budget.epsilon, delta=budget.delta, sample_rate=1.0, steps=1)
    return all_of_it / math.sqrt(share)


def measure_means(
    features: Features, examples: Rows, parts: Parts, plan: MeansPlan, ledger: Ledger, context: FitContext
) -> tuple[Floats, Floats]:
    """Return the noisy means of features, (parts, width), and the scale of their noise, (parts,)."""
    sums, scale = measure_sums(features, examples, parts, plan, ledger, context)
    sizes = np.maximum(1.0, np.array(parts.sizes))
    return np.clip(sums / sizes[:, None], 0.0, 1.0), scale / sizes


def measure_sums(
    features: Features, examples: Rows, parts: Parts, plan: MeansPlan, ledger: Ledger, context: FitContext
) -> tuple[Floats, float]:
    """Return the noisy sums of features, (parts, width), and the scale of their noise."""

    def measure(ledger: Ledger) -> dict[str, npt.NDArray[Any]]:
        norm, multiplier = _measure_norm(features, examples, parts, plan, ledger), plan.noise_multiplier
        _, sums = gaussian_group_sums(
            _yield_rows(features, examples, parts),
            groups=len(parts.sizes),
            width=features.width,
            clip_norm=norm,
            noise_multiplier=multiplier,
            ledger=ledger,
            purpose=MEANS,
            counted=False,
        )
        return {"sums": sums, "scale": np.array([norm * multiplier])}

    found = measure_once("means", plan.charges, measure, ledger, context.checkpoint)
    return found["sums"], float(found["scale"][0])


def _measure_norm(features: Features, examples: Rows, parts: Parts, plan: MeansPlan, ledger: Ledger) -> float:
    """Return a noisy quantile of the norms, which most records do not exceed; squared norms are rounded up to integers.

    Longer records are clipped, and a larger norm means more noise. The two errors balance where the number of longer
    records equals the noise of norm one in all parts (Amin et al. 2019), or the error of the quantile.
    """
    squares = [np.ceil(np.square(rows).sum(axis=1)).astype(np.int64) for _, rows in _yield_chunks(features, examples)]
    least, most = _bound_squares(features.schema)
    size = _SPREAD * (most - least) + 1
    noise = len(parts.sizes) * plan.noise_multiplier * math.sqrt(features.width)
    error = 2 * math.log(size / _WRONG) / plan.norm_epsilon  # of the exponential mechanism
    longer = max(noise, error) / max(1.0, sum(parts.sizes))
    # A quantile is searched between values, and there is nothing between equal ones: so they are spread, each by a draw
    # of its own that does not depend on other records.
    own = ledger.noise.hide(RowsDraw(np.arange(len(examples))), lambda: ledger.noise.uniform(len(examples)))
    spread = np.concatenate([np.zeros(0), *squares]) - least - own
    codes = np.ceil(_SPREAD * spread).astype(np.int64).clip(0)
    (code,) = noisy_quantiles(
        codes, [1 - min(0.5, longer)], size=size, epsilon=plan.norm_epsilon, ledger=ledger, purpose=NORM
    )
    return math.sqrt(max(1, least + math.ceil(code / _SPREAD)))


def _bound_squares(schema: Schema) -> tuple[int, int]:
    """Return the smallest and the largest squared norm of a record that the schema allows."""
    least, most = zip(*(column.squared_norms for column in schema.columns.values()), strict=True)
    return sum(least), sum(most)


def _yield_rows(features: Features, examples: Rows, parts: Parts) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
    for index, rows in _yield_chunks(features, examples):
        yield np.zeros_like(index) if parts.owner is None else parts.owner[index], rows


def _yield_chunks(features: Features, examples: Rows) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
    size = max(1, _NUMBERS // features.width)
    for start in range(0, len(examples), size):
        index = np.arange(start, min(start + size, len(examples)))
        yield index, examples.take_vectors(index).cpu().numpy().astype(np.float64)
