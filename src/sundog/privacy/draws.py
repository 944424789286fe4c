"""Draws: what a mechanism is about to release, described for an audit.

Every released value passes through `NoiseSource.release` together with the exact values that it was computed from, and
every secret random number that belongs to a record passes through `NoiseSource.hide`. In production both only call the
function they are given. An audit's source keeps the descriptions (`privacy/transcript.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Signature = tuple[Any, ...]  # the public facts of a draw, which may not depend on the data


@dataclass(frozen=True, eq=False)
class GaussianDraw:
    """Gaussian noise on arrays or tensors.

    Args:
        exact: the values before noise.
        deviations: the standard deviation of the noise in each of them, one number or an array.
    """

    exact: Sequence[Any]
    deviations: Sequence[Any]

    @property
    def signature(self) -> Signature:
        """The shapes, and the deviations in full."""
        deviations = [np.asarray(each, np.float64) for each in self.deviations]
        return (
            "gaussian noise",
            tuple(tuple(each.shape) for each in self.exact),
            tuple((each.shape, each.tobytes() if each.size > 1 else float(each)) for each in deviations),
        )


@dataclass(frozen=True, eq=False)
class DiscreteGaussianDraw:
    """The sum of `times` discrete Gaussians of parameter `sigma` on each integer of an array."""

    exact: Array
    sigma: float
    times: int = 1

    @property
    def signature(self) -> Signature:
        """The shape and the noise."""
        return "discrete Gaussian noise", self.exact.shape, self.sigma, self.times


@dataclass(frozen=True, eq=False)
class DiscreteLaplaceDraw:
    """Geometric noise, P(k) ∝ exp(−rate·|k|), on each integer of an array."""

    exact: Array
    rate: float

    @property
    def signature(self) -> Signature:
        """The shape and the noise."""
        return "geometric noise", self.exact.shape, self.rate


@dataclass(frozen=True, eq=False)
class ChoiceDraw:
    """An index i that is drawn with probability ∝ exp(logits[i])."""

    logits: Array

    @property
    def signature(self) -> Signature:
        """The number of candidates."""
        return "exponential mechanism", self.logits.shape


@dataclass(frozen=True, eq=False)
class PermuteAndFlipDraw:
    """An index that is drawn by permute-and-flip; `logits` are the scores times ε / 2·sensitivity."""

    logits: Array

    @property
    def signature(self) -> Signature:
        """The number of candidates."""
        return "permute-and-flip", self.logits.shape


@dataclass(frozen=True, eq=False)
class QuantileDraw:
    """An integer of [0, size): v with probability ∝ exp(−weight · |number of values below v − p·n|).

    Args:
        ordered: the exact values, ascending.
        p: the probability of the quantile.
        size: of the domain.
        weight: of a rank.
    """

    ordered: Array
    p: float
    size: int
    weight: float

    @property
    def signature(self) -> Signature:
        """Everything but the values and their number."""
        return "quantile", self.p, self.size, self.weight


@dataclass(frozen=True, eq=False)
class KeysDraw:
    """The keys whose counts reach a threshold after geometric noise; which keys there are is private."""

    counts: Mapping[Any, int]
    rate: float
    threshold: int

    @property
    def signature(self) -> Signature:
        """The noise and the threshold."""
        return "stable keys", self.rate, self.threshold


Draw = (
    GaussianDraw
    | DiscreteGaussianDraw
    | DiscreteLaplaceDraw
    | ChoiceDraw
    | PermuteAndFlipDraw
    | QuantileDraw
    | KeysDraw
)


# --- secret random numbers of records ---


@dataclass(frozen=True, eq=False)
class BatchDraw:
    """The positions of a Poisson sample of the records, ascending."""

    records: int
    sample_rate: float

    @property
    def signature(self) -> Signature:
        """The rate; the number of records is private."""
        return "Poisson batch", self.sample_rate


@dataclass(frozen=True, eq=False)
class RowsDraw:
    """An independent row of random numbers for each record at these positions."""

    positions: Array

    @property
    def signature(self) -> Signature:
        """Only what it is: the number of records is private."""
        return ("random rows",)


@dataclass(frozen=True, eq=False)
class PairingDraw:
    """A random order of the records, of which consecutive ones are paired."""

    records: int

    @property
    def signature(self) -> Signature:
        """Only what it is: the number of records is private."""
        return ("random pairs",)


HiddenDraw = BatchDraw | RowsDraw | PairingDraw
