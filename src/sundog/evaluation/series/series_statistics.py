"""Statistics of time series: autocorrelations, power spectra, distances of distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sundog.evaluation.bootstrap import Floats, PairedBlocks
from sundog.evaluation.measure import Measure
from sundog.evaluation.total_variation import compute_total_variation, normalise

CELLS = 2**13  # of the histograms that approximate distributions


def draw_series(values: Floats, most: int, rng: np.random.Generator) -> Floats:
    """Draw at most `most` series without replacement, in random order."""
    return values[rng.permutation(len(values))[:most]]


def fill_gaps(values: Floats) -> Floats:
    """Fill gaps by linear interpolation; a series without any value becomes zero.

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
    """Return the autocorrelation of each series at lags 1, 2, … up to half its length.

    The usual estimate: the sum of products of deviations from the mean of the series over the sum of squares. Zero for
    a constant series.

    >>> compute_autocorrelation(np.array([[1.0, -1.0, 1.0, -1.0]])).tolist()
    [[-0.75, 0.5]]
    """
    from scipy import fft

    length = values.shape[1]
    lags = length // 2
    centred = _subtract_mean(values)
    size = fft.next_fast_len(length + lags, real=True)  # long enough to avoid wrapping around
    products = fft.irfft(np.abs(fft.rfft(centred, size)) ** 2, size)[:, 1 : lags + 1]
    energy = np.einsum("ij,ij->i", centred, centred)
    return np.asarray(products / np.where(energy > 0, energy, 1.0)[:, None])


def compute_power_spectrum(values: Floats) -> Floats:
    """Return the power of each series at 1, 2, … cycles per length; zero for a constant series."""
    from scipy import fft

    return np.asarray(np.abs(fft.rfft(_subtract_mean(values))[:, 1:]) ** 2)


def compute_spectral_distance(p: Floats, q: Floats) -> float:
    """Return the total variation distance of two normalised power spectra: the share of misplaced power.

    It is 1 where only one of them has any power.

    >>> compute_spectral_distance(np.array([3.0, 1.0]), np.array([1.0, 1.0]))
    0.25
    """
    if not p.any() or not q.any():
        return float(p.any() != q.any())
    return float(compute_total_variation(normalise(p), normalise(q)))


def measure_pooled_wasserstein(blocks: PairedBlocks, real: Floats, synthetic: Floats) -> Measure:
    """Return the Wasserstein distance between all real and all synthetic values, to 1/8,192 of their range."""
    low, high = min(real.min(), synthetic.min()), max(real.max(), synthetic.max())
    width = (high - low) / CELLS or 1.0
    ours, theirs = (np.rint((values - low) / width).astype(np.int32) for values in (real, synthetic))
    counted = blocks.average(ours, theirs, lambda cells: np.bincount(cells.ravel(), minlength=CELLS + 1))
    return counted.measure(lambda p, q: width * float(np.abs(np.cumsum(p / p.sum() - q / q.sum())).sum()))


def _subtract_mean(values: Floats) -> Floats:
    """Subtract the mean of each series; constant series become exactly zero."""
    constant: NDArray[np.bool_] = np.ptp(values, axis=1) == 0
    return np.where(constant[:, None], 0.0, values - values.mean(axis=1, keepdims=True))
