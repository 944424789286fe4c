"""Distances between arrays that forgive small shifts: of series in time, of images in the plane.

They cost far more than distances between components, and are computed for a few records that are near by those.
"""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sundog.auditing.array_components import scale_levels, thin_out
from sundog.data.records import Records

Singles = npt.NDArray[np.float32]

SHIFT = 2  # pixels, in each direction


class _ScaledArrays:
    """Arrays of one column, around 0 and with a total variance of 1 on known records."""

    def __init__(self, name: str, known: Records) -> None:
        self.name = name
        levels = scale_levels(name, thin_out(known))
        self._mean = levels.mean()
        self._scale = np.sqrt(levels.var(axis=0, dtype=np.float64).sum()) or 1.0

    def encode(self, records: Records) -> Singles:
        """Return the scaled values."""
        return np.asarray((scale_levels(self.name, records) - self._mean) / self._scale, np.float32)


class WarpedSeries(_ScaledArrays):
    """Dynamic time warping that shifts no value by more than a tenth of the length.

    Attributes:
        count: of how many candidates the nearest is found at least.
    """

    count: ClassVar[int] = 16

    def compare(self, these: Singles, those: Singles) -> Singles:
        """Return the squared distances, (these, those)."""
        from sundog.evaluation.series.dynamic_time_warping import compute_warped_distances

        series, candidates = these.astype(np.float64), those.astype(np.float64)
        return np.array([compute_warped_distances(one, candidates) for one in series], np.float32) ** 2


class ShiftedImages(_ScaledArrays):
    """The least Euclidean distance over shifts of the first image by up to two pixels; its border is repeated.

    Attributes:
        count: of how many candidates the nearest is found at least; of 16, many shifted copies are missed.
    """

    count: ClassVar[int] = 64

    def compare(self, these: Singles, those: Singles) -> Singles:
        """Return the squared distances, (these, those)."""
        others = those.reshape(len(those), -1)
        return np.stack([compare_rows(shift_image(one), others).min(axis=0) for one in these])


def shift_image(image: Singles) -> Singles:
    """Return all shifts of an image, one in each row.

    >>> shift_image(np.array([[0, 1, 2]], np.float32))[[11, 13]].tolist()
    [[0.0, 0.0, 1.0], [1.0, 2.0, 2.0]]
    """
    height, width = image.shape[:2]
    padded = np.pad(image, [(SHIFT, SHIFT)] * 2 + [(0, 0)] * (image.ndim - 2), mode="edge")
    places = range(2 * SHIFT + 1)
    return np.stack([padded[y : y + height, x : x + width].ravel() for y, x in product(places, places)])


def compare_rows(these: Singles, those: Singles) -> Singles:
    """Return the squared Euclidean distances, (these, those).

    >>> compare_rows(np.array([[0, 0]], np.float32), np.array([[3, 4], [0, 1]], np.float32)).tolist()
    [[25.0, 1.0]]
    """
    squares = these @ (-2 * those.T)
    squares += np.einsum("ij,ij->i", these, these)[:, None]
    squares += np.einsum("ij,ij->i", those, those)[None, :]
    return np.asarray(squares, np.float32)
