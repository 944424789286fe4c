"""Sums of clipped vectors."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Ledger

Floats = npt.NDArray[np.float64]

_FINENESS = 2.0**-20
_ROWS = 65_536  # rounded at a time, so that memory stays flat


def gaussian_sum(
    vectors: Floats, *, clip_norm: float, noise_multiplier: float, ledger: Ledger, purpose: str, contribution: int = 1
) -> Floats:
    """The sum of the rows, each clipped to `clip_norm`, with Gaussian noise.

    The noise has standard deviation `noise_multiplier` × `clip_norm`. Floats betray what was added to them in their
    last bits (Mironov 2012), and a long sum of them can move by more than a row. So each clipped row is rounded to a
    lattice far finer than the noise, the sum is one of integers, and the noise is a discrete Gaussian on that
    lattice. Rounding lengthens a row by at most half a step in each coordinate; rows are clipped that much shorter.

    >>> ledger = Ledger(epsilon=1, delta=1e-6)
    >>> gaussian_sum(np.ones((10, 3)), clip_norm=1.0, noise_multiplier=8.0, ledger=ledger, purpose="a sum").shape
    (3,)
    """
    vectors = np.asarray(vectors)
    width = vectors.shape[1]
    scale = noise_multiplier * clip_norm
    step = min(scale, clip_norm) * _FINENESS / math.sqrt(max(1, width))
    ledger.spend(Charge(event=Gaussian(noise_multiplier=noise_multiplier / contribution), purpose=purpose))
    total = np.zeros(width, np.int64)
    for start in range(0, len(vectors), _ROWS):
        rows = clip_rows(vectors[start : start + _ROWS].astype(np.float64), clip_norm * (1 - _FINENESS))
        total += np.rint(rows / step).astype(np.int64).sum(axis=0)
    return np.asarray((total + ledger.noise.discrete_gaussian(sigma=scale / step, size=width)) * step)


def clip_rows(rows: Floats, norm: float) -> Floats:
    """The rows, those that are too long shortened to `norm`; a row with a NaN or an infinity becomes zero.

    >>> clip_rows(np.array([[0.0, 4.0], [0.3, 0.4], [np.nan, 1.0]]), 1.0).tolist()
    [[0.0, 1.0], [0.3, 0.4], [0.0, 0.0]]
    """
    rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True, initial=0.0), norm)
    scaled = rows / largest  # entries of at most one: no norm can overflow
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled * (norm / np.maximum(norms, norm / largest)))
