"""Nearest neighbours of time series under dynamic time warping, exact and fast.

The distance is the root of the sum of squared differences along the best alignment that shifts no value by more than
`window` positions (Sakoe and Chiba 1978). 1. The Euclidean neighbour is a good first guess. 2. Lower bounds that cost
far less than distances (Keogh 2002), one with the envelope of the series and one with that of the candidate, rule out
most others. 3. The library dtaidistance computes the rest, most promising first, until no bound is below the best
distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.errors import SundogError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_SLACK = 1 + 1e-9  # bounds and distances are rounded in different ways
_ROWS = 1024  # candidates at a time, to stay in the cache
_FEW = 128  # distances at a time


def choose_window(length: int) -> int:
    """Return a tenth of the length, at least 1."""
    return max(1, length // 10)


def find_nearest_series(series: Floats, among: Floats, *, window: int | None = None) -> tuple[Integers, Floats]:
    """Return, for each series, the index of the nearest candidate and its distance; ties are broken arbitrarily.

    >>> bumps = np.array([[0.0, 1, 0, 0, 0], [0, 0, 0, 0, 1]])
    >>> places, distances = find_nearest_series(np.array([[0.0, 0, 1, 0, 0]]), bumps, window=1)
    >>> places.tolist(), distances.tolist()
    ([0], [0.0])

    Args:
        series: (count, length), without gaps.
        among: the candidates, (candidates, length), at least one.
        window: by how many positions a value may be shifted; a tenth of the length by default.
    """
    library = _load_library()
    series, among = (np.ascontiguousarray(values, np.float64) for values in (series, among))
    window = choose_window(series.shape[1]) if window is None else window
    envelopes = _compute_envelope(among, window)
    squares = np.einsum("ij,ij->i", among, among)
    found = [_find_nearest_to(one, among, envelopes, squares, window, library) for one in series]
    return np.array([place for place, _ in found], np.int64), np.array([distance for _, distance in found])


def compute_warped_distances(one: Floats, candidates: Floats, *, window: int | None = None) -> Floats:
    """Return the distance of one series to each candidate.

    >>> compute_warped_distances(np.array([0.0, 0, 1]), np.array([[0.0, 1, 0], [1, 0, 0]]), window=1).round(2).tolist()
    [1.0, 1.41]

    Args:
        one: (length), without gaps.
        candidates: (candidates, length), at least one.
        window: by how many positions a value may be shifted; a tenth of the length by default.
    """
    window = choose_window(len(one)) if window is None else window
    return _compute_distances(_load_library(), one, candidates, window, most=None)


def _find_nearest_to(
    one: Floats, among: Floats, envelopes: tuple[Floats, Floats], squares: Floats, window: int, library: Any
) -> tuple[int, float]:
    best = int((squares - among @ (2 * one)).argmin())
    least = float(_compute_distances(library, one, among[[best]], window, most=None)[0])
    if least == 0:
        return best, least
    bounds = np.maximum(_bound_distances(among, *_compute_envelope(one, window)), _bound_distances(one, *envelopes))
    left = np.flatnonzero(bounds < least)
    left = left[np.argsort(bounds[left])]
    for start in range(0, len(left), _FEW):
        few = left[start : start + _FEW]
        if bounds[few[0]] >= least:
            break
        distances = _compute_distances(library, one, among[few], window, most=least * _SLACK)
        if distances.min() < least:
            best, least = int(few[distances.argmin()]), float(distances.min())
    return best, least


def _compute_envelope(values: Floats, window: int) -> tuple[Floats, Floats]:
    """Return the minimum and maximum within `window` positions of each value."""
    from scipy import ndimage

    size = 2 * window + 1
    return (
        ndimage.minimum_filter1d(values, size, axis=-1, mode="nearest"),
        ndimage.maximum_filter1d(values, size, axis=-1, mode="nearest"),
    )


def _bound_distances(values: Floats, low: Floats, high: Floats) -> Floats:
    """Return the distance of each row from its envelope: a lower bound of its warped distance."""
    values, low, high = np.broadcast_arrays(values, low, high)
    bounds = np.empty(len(values))
    for start in range(0, len(values), _ROWS):
        rows = slice(start, start + _ROWS)
        outside = values[rows] - np.clip(values[rows], low[rows], high[rows])
        bounds[rows] = np.einsum("ij,ij->i", outside, outside)
    return np.sqrt(bounds)


def _load_library() -> Any:
    try:
        from dtaidistance import dtw, dtw_cc  # noqa: F401  the second is its compiled part
    except ImportError:
        message = "dynamic time warping needs the dtaidistance library: pip install 'sundog[series]'"
        raise SundogError(message) from None
    return dtw


def _compute_distances(library: Any, one: Floats, candidates: Floats, window: int, *, most: float | None) -> Floats:
    """Return the distances to all candidates; those above `most` may be infinite."""
    return np.asarray(
        library.distance_matrix_fast(
            np.vstack([one, candidates]),
            block=((0, 1), (1, len(candidates) + 1)),  # the first row of the matrix, and no more
            compact=True,
            window=window + 1,  # the library counts the diagonal
            max_dist=most,
            parallel=False,
        )
    )
