"""Sums of clipped vectors."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Ledger

Floats = npt.NDArray[np.float64]

_FINENESS = 2.0**-20


def gaussian_sum(
    vectors: Floats, *, clip_norm: float, noise_multiplier: float, ledger: Ledger, purpose: str, contribution: int = 1
) -> Floats:
    """The sum of the rows, each clipped to `clip_norm`, with Gaussian noise.

    The noise has standard deviation `noise_multiplier` × `clip_norm`. Floats betray what was added to them in their
    last bits (Mironov 2012), so the sum is rounded to a lattice far finer than the noise, and the noise is a discrete
    Gaussian on that lattice. Rounding moves the sum by at most half a step in each coordinate; the rows are clipped
    that much shorter, so the sensitivity stays `clip_norm`.

    >>> ledger = Ledger(epsilon=1, delta=1e-6)
    >>> gaussian_sum(np.ones((10, 3)), clip_norm=1.0, noise_multiplier=8.0, ledger=ledger, purpose="a sum").shape
    (3,)
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    scale = noise_multiplier * clip_norm
    step = min(scale, clip_norm) * _FINENESS / math.sqrt(max(1, vectors.shape[1]))
    ledger.spend(Charge(event=Gaussian(noise_multiplier=noise_multiplier / contribution), purpose=purpose))
    total = _clip(vectors, clip_norm * (1 - 2 * _FINENESS)).sum(axis=0)
    noise = ledger.noise.discrete_gaussian(sigma=scale / step, size=vectors.shape[1])
    return np.asarray((np.rint(total / step) + noise) * step)


def _clip(vectors: Floats, norm: float) -> Floats:
    vectors = np.where(
        np.isfinite(vectors).all(axis=1, keepdims=True), vectors, 0.0
    )  # one NaN must not show in the sum
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors * np.minimum(1.0, norm / np.maximum(norms, np.finfo(float).tiny)))
