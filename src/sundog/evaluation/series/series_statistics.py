"""What is looked at in time series, a row of numbers for each: autocorrelations, power spectra, distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sundog.evaluation.bootstrap import Floats, PairedBlocks
from sundog.evaluation.measure import Measure

CELLS = 2**13  # of the histograms that stand for distributions


def fill_gaps(values: Floats) -> Floats:
    """Gaps as straight lines between the values beside them; a series without any value becomes zero.

    >>> fill_gaps(np.array([[np.nan, 1.0, np.nan, 3.0], [np.nan] * 4])).tolist()
    [[1.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0]]
    """
    gaps = np.isnan(values)
    complete = np.where(gaps, 0.0, values)
    places = np.arange(values.shape[1])
    for row in np.flatnonzero(gaps.any(axis=1) & ~gaps.all(axis=1)):
        known = ~gaps[row]
        complete[row] = np.interp(places, places[known], values[row, known])
    return complete


def compute_autocorrelation(values: Floats) -> Floats:
    """The correlation of each series with itself 1, 2, … places later, up to half its length.

    The usual estimate: the sum of products of deviations from the series' mean, over the sum of squares. A constant
    series has none, and gets zeros.

    >>> compute_autocorrelation(np.array([[1.0, -1.0, 1.0, -1.0]])).tolist()
    [[-0.75, 0.5]]
    """
    from scipy import fft

    length = values.shape[1]
    lags = length // 2
    centred = _centre(values)
    size = fft.next_fast_len(length + lags, real=True)  # long enough that the end never meets the beginning
    products = fft.irfft(np.abs(fft.rfft(centred, size)) ** 2, size)[:, 1 : lags + 1]
    energy = np.einsum("ij,ij->i", centred, centred)
    return np.asarray(products / np.where(energy > 0, energy, 1.0)[:, None])


def compute_power_spectrum(values: Floats) -> Floats:
    """The power of each series at 1, 2, … cycles in its length; that of a constant one is zero."""
    from scipy import fft

    return np.asarray(np.abs(fft.rfft(_centre(values))[:, 1:]) ** 2)


def spectral_distance(p: Floats, q: Floats) -> float:
    """Half the sum of differences between two power spectra, each divided by its sum: the share of misplaced power.

    >>> spectral_distance(np.array([3.0, 1.0]), np.array([1.0, 1.0]))
    0.25
    """
    if not p.any() or not q.any():
        return float(p.any() != q.any())
    return float(np.abs(p / p.sum() - q / q.sum()).sum() / 2)


def measure_wasserstein(blocks: PairedBlocks, real: Floats, synthetic: Floats) -> Measure:
    """The Wasserstein distance between all values of the one and of the other, to 1/8,192 of their range."""
    low, high = min(real.min(), synthetic.min()), max(real.max(), synthetic.max())
    width = (high - low) / CELLS or 1.0
    ours, theirs = (np.rint((values - low) / width).astype(np.int32) for values in (real, synthetic))
    counted = blocks.average(ours, theirs, lambda cells: np.bincount(cells.ravel(), minlength=CELLS + 1))
    return counted.measure(lambda p, q: width * float(np.abs(np.cumsum(p / p.sum() - q / q.sum())).sum()))


def _centre(values: Floats) -> Floats:
    """Each series less its mean; a constant one is nothing but zeros, without what rounding leaves."""
    constant: NDArray[np.bool_] = np.ptp(values, axis=1) == 0
    return np.where(constant[:, None], 0.0, values - values.mean(axis=1, keepdims=True))
