"""Counts and histograms, with integer noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sundog.privacy.draws import DiscreteGaussianDraw, DiscreteLaplaceDraw
from sundog.privacy.events import Charge, DiscreteGaussian, DiscreteLaplace
from sundog.privacy.ledger import Ledger

Integers = npt.NDArray[np.int64]


def noisy_count(count: int, *, epsilon: float, ledger: Ledger, purpose: str, contribution: int = 1) -> int:
    """Return the number of records with geometric noise, ε-DP with δ = 0. It may be negative.

    >>> isinstance(noisy_count(100, epsilon=0.5, ledger=Ledger(epsilon=1, delta=1e-6), purpose="records"), int)
    True
    """
    rate = epsilon / contribution
    ledger.spend(Charge(event=DiscreteLaplace(rate=rate, sensitivity=contribution), purpose=purpose))
    draw = DiscreteLaplaceDraw(np.array([count]), rate)
    noisy = ledger.noise.release(draw, lambda: draw.exact + ledger.noise.discrete_laplace(epsilon=rate, size=1))
    return int(noisy[0])


@dataclass(frozen=True)
class Histogram:
    """Counts to be measured with discrete Gaussian noise of parameter `sigma` in each cell.

    `touched` is how many cells one record can change, each by one: 1 for the values of a column, the number of pixels
    for the histograms of all pixels, the largest set for the items of sets.
    """

    counts: Integers
    sigma: float
    purpose: str
    touched: int = 1
    contribution: int = 1

    @property
    def charge(self) -> Charge:
        """The charge for measuring it.

        A record changes `touched` cells by one, each with noise of its own: that many compositions of the one-cell
        mechanism. A unit's records are dealt into `contribution` slots with at most one record in each; the noisy
        histograms of the slots compose, and what is released is their sum. So the noise is a sum of `contribution`
        draws, and nothing more has to be proved about units than about records.
        """
        return compute_histogram_charge(
            sigma=self.sigma, purpose=self.purpose, touched=self.touched, contribution=self.contribution
        )

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the noise in each cell."""
        return float(self.sigma * np.sqrt(self.contribution))


def compute_histogram_charge(*, sigma: float, purpose: str, touched: int, contribution: int) -> Charge:
    """Return the charge for measuring a histogram, before there is one."""
    return Charge(event=DiscreteGaussian(sigma=sigma), count=int(touched * contribution), purpose=purpose)


def noisy_histograms(histograms: Sequence[Histogram], *, ledger: Ledger) -> list[Integers]:
    """Measure several histograms; the ledger pays for all or none."""
    ledger.spend(*(histogram.charge for histogram in histograms))
    return [add_histogram_noise(histogram, ledger) for histogram in histograms]


def noisy_histogram(
    counts: Integers, *, sigma: float, ledger: Ledger, purpose: str, touched: int = 1, contribution: int = 1
) -> Integers:
    """Measure one histogram; `Histogram` explains the arguments.

    >>> ledger = Ledger(epsilon=1, delta=1e-6)
    >>> noisy_histogram(np.array([5, 0, 7]), sigma=10.0, ledger=ledger, purpose="colours").shape
    (3,)
    """
    return noisy_histograms([Histogram(counts, sigma, purpose, touched, contribution)], ledger=ledger)[0]


def add_histogram_noise(histogram: Histogram, ledger: Ledger) -> Integers:
    """Return the counts with noise in each cell; the caller has paid for the histogram."""

    def compute() -> Integers:
        total = histogram.counts.copy()
        for _ in range(histogram.contribution):
            total += ledger.noise.discrete_gaussian(sigma=histogram.sigma, size=histogram.counts.shape)
        return total

    return ledger.noise.release(
        DiscreteGaussianDraw(histogram.counts, histogram.sigma, histogram.contribution), compute
    )
