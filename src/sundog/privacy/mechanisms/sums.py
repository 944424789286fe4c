"""Sums of clipped vectors: of all of them, of groups of them, of their outer products.

The last bits of a float reveal what was added to it (Mironov 2012), and a long sum of floats can change by more than
a row. So each clipped row is rounded to a lattice far finer than the noise, sums are those of integers, and the noise
is a discrete Gaussian on that lattice. Rounding lengthens a row by at most half a step in each coordinate; rows are
clipped that much shorter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from sundog.privacy.draws import GaussianDraw
from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Ledger

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_FINENESS = 2.0**-20
_FINEST = 2.0**-32  # of the clip norm: keeps integers small enough for sums of many rows
_SQUARED = 2.0**-12  # the fineness where products of integers are summed
_EXACT = 2.0**52  # integers up to here are sums of floats without rounding, in whatever order
_ROWS = 65_536  # rounded at a time, so that memory stays flat
_NUMBERS = 2**18  # of them at a time where several passes are made, so that they stay in the cache


def gaussian_sum(
    vectors: Floats, *, clip_norm: float, noise_multiplier: float, ledger: Ledger, purpose: str, contribution: int = 1
) -> Floats:
    """Return the sum of the rows, each clipped to `clip_norm`, with Gaussian noise.

    The noise has standard deviation `noise_multiplier` × `clip_norm`.

    >>> ledger = Ledger(epsilon=1, delta=1e-6)
    >>> gaussian_sum(np.ones((10, 3)), clip_norm=1.0, noise_multiplier=8.0, ledger=ledger, purpose="a sum").shape
    (3,)
    """
    vectors = np.asarray(vectors)
    width = vectors.shape[1]
    scale = noise_multiplier * clip_norm
    step = _choose_step(scale, clip_norm, width)
    ledger.spend(Charge(event=Gaussian(noise_multiplier=noise_multiplier / contribution), purpose=purpose))
    total = np.zeros(width, np.int64)
    for start in range(0, len(vectors), _ROWS):
        rows = vectors[start : start + _ROWS].astype(np.float64)
        total += round_to_lattice(rows, clip_norm=clip_norm, step=step, slack=_FINENESS).astype(np.int64).sum(axis=0)
    noisy = _add_lattice_noise(total, scale / step, ledger)
    return np.asarray(noisy * step)


def gaussian_group_sums(
    chunks: Iterable[tuple[Integers, Floats]],
    *,
    groups: int,
    width: int,
    clip_norm: float,
    noise_multiplier: float,
    ledger: Ledger,
    purpose: str,
    counted: bool = True,
) -> tuple[Floats, Floats]:
    """Return the number of rows of each group, and the sum of its clipped rows: one Gaussian for both.

    A row x (in units of the clip) adds (a, x) to its group, which is no longer than √(1 + a²), so all coordinates get
    noise of that times `noise_multiplier`. A centre c = sum ÷ count then errs by (1 + a²)(d + |c|²/a²) times the same
    for every a. For |c| ≤ 1, that is least at a = d^(−1/4). With no x, or no a, the other is alone in its Gaussian.

    >>> ledger = Ledger(epsilon=1, delta=1e-6)
    >>> chunks = [(np.array([0, 1, 1]), np.eye(3))]
    >>> counts, sums = gaussian_group_sums(
    ...     chunks, groups=2, width=3, clip_norm=1.0, noise_multiplier=8.0, ledger=ledger, purpose="k-means"
    ... )
    >>> counts.shape, sums.shape
    ((2,), (2, 3))

    Args:
        chunks: the group of each row, and the rows; rows of other groups add nothing.
        groups: how many groups there are, numbered from 0.
        width: of the rows.
        clip_norm: longer rows are shortened to it.
        noise_multiplier: of the charge.
        ledger: pays, and draws the noise.
        purpose: of the charge.
        counted: whether counts are measured too; without them sums have less noise, and counts are zeros.
    """
    weight = _choose_count_weight(width) if counted else 0.0
    longest = clip_norm * _bound_length(width, weight)
    step = _choose_step(noise_multiplier * longest, clip_norm, width + 1)
    ledger.spend(Charge(event=Gaussian(noise_multiplier=noise_multiplier), purpose=purpose))
    one = math.floor(weight * clip_norm / step)
    total = np.zeros((groups, width + 1), np.int64)
    for group, rows in _split_chunks(chunks, width=width, most=_EXACT * step / clip_norm):
        member = (group[:, None] == np.arange(groups)).astype(np.float64)
        whole = round_to_lattice(rows, clip_norm=clip_norm, step=step, slack=_FINENESS)
        total[:, 0] += member.sum(axis=0).astype(np.int64) * one
        total[:, 1:] += (member.T @ whole).astype(np.int64)
    noisy = _add_lattice_noise(total, noise_multiplier * longest / step, ledger)
    counts = noisy[:, 0] / one if counted else np.zeros(groups)
    return np.asarray(counts), np.asarray(noisy[:, 1:] * step)


def compute_count_deviation(*, width: int, noise_multiplier: float) -> float:
    """Return the standard deviation of the noise that `gaussian_group_sums` adds to the counts of groups.

    >>> round(compute_count_deviation(width=16, noise_multiplier=1.0), 2)
    2.24
    """
    weight = _choose_count_weight(width)
    return noise_multiplier * _bound_length(width, weight) / weight


def gaussian_moments(
    chunks: Iterable[Floats],
    *,
    width: int,
    clip_norm: float,
    noise_multiplier: float,
    ledger: Ledger,
    purpose: str,
) -> tuple[Floats, Floats]:
    """Return the sum of the clipped rows, and the sum of their outer products: one Gaussian for both.

    A row x (in units of the clip) adds the matrix v vᵀ of v = (½, x), whose Frobenius norm is |v|² ≤ 1¼. That counts
    entries off the diagonal twice and they are measured once, so they need 1/√2 of the noise of the diagonal. The ½
    is a compromise: with a smaller number the sum is noisier, with a larger one everything else.

    >>> ledger = Ledger(epsilon=1, delta=1e-6)
    >>> total, products = gaussian_moments(
    ...     [np.eye(3)], width=3, clip_norm=1.0, noise_multiplier=8.0, ledger=ledger, purpose="moments"
    ... )
    >>> total.shape, bool((products == products.T).all())
    ((3,), True)
    """
    step = clip_norm * _SQUARED / math.sqrt(max(1, width))
    ledger.spend(Charge(event=Gaussian(noise_multiplier=noise_multiplier), purpose=purpose))
    half = math.floor(clip_norm / (2 * step))
    total = np.zeros((width + 1, width + 1), np.int64)
    numbered = ((np.zeros(len(rows), np.int64), rows) for rows in chunks)
    for _, rows in _split_chunks(numbered, width=width, most=_EXACT * (step / clip_norm) ** 2):
        whole = round_to_lattice(rows, clip_norm=clip_norm, step=step, slack=_SQUARED)
        v = np.column_stack([np.full(len(whole), float(half)), whole])
        total += (v.T @ v).astype(np.int64)
    noisy = _add_symmetric_noise(total, noise_multiplier * 1.25 * (clip_norm / step) ** 2, ledger)
    return np.asarray(noisy[0, 1:] * (step / half)), np.asarray(noisy[1:, 1:] * step**2)


def _add_symmetric_noise(total: Integers, sigma: float, ledger: Ledger) -> Integers:
    """Return a symmetric matrix in whole steps with a discrete Gaussian on each entry of its upper triangle."""
    upper = np.triu_indices(len(total))
    deviations = np.where(upper[0] == upper[1], sigma, sigma / math.sqrt(2))

    def compute() -> Integers:
        noise = np.triu(ledger.noise.discrete_gaussian(sigma=sigma / math.sqrt(2), size=total.shape), 1)
        noise += np.diag(ledger.noise.discrete_gaussian(sigma=sigma, size=len(total)))
        return np.asarray(total[upper] + noise[upper])

    noisy = np.zeros_like(total)
    noisy[upper] = ledger.noise.release(GaussianDraw([total[upper]], [deviations]), compute)
    return noisy + np.triu(noisy, 1).T


def _add_lattice_noise(total: Integers, sigma: float, ledger: Ledger) -> Integers:
    """Return sums in whole steps with a discrete Gaussian on each, which is accounted as a Gaussian."""
    return ledger.noise.release(
        GaussianDraw([total], [sigma]), lambda: total + ledger.noise.discrete_gaussian(sigma=sigma, size=total.shape)
    )


def round_to_lattice(rows: Floats, *, clip_norm: float, step: float, slack: float) -> Floats:
    """Round the rows to whole steps, after clipping them a little below `clip_norm`, which rounding then cannot exceed.

    >>> round_to_lattice(np.array([[0.0, 4.0], [0.26, 0.0]]), clip_norm=1.0, step=0.125, slack=0.125).tolist()
    [[0.0, 7.0], [2.0, 0.0]]
    """
    norm = clip_norm * (1 - slack)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
        factor = np.minimum(1.0, norm / np.sqrt(squares))
    odd = np.flatnonzero(~np.isfinite(squares))
    if len(odd):  # squares overflow, or not finite
        rows, factor[odd] = rows.copy(), 1.0
        rows[odd] = clip_rows(rows[odd], norm)
    whole: Floats = rows * (factor / step)[:, None]
    return np.rint(whole, out=whole)


def clip_rows(rows: Floats, norm: float) -> Floats:
    """Shorten rows that are longer than `norm`; a row with a NaN or an infinity becomes zero.

    >>> clip_rows(np.array([[0.0, 4.0], [0.3, 0.4], [np.nan, 1.0]]), 1.0).tolist()
    [[0.0, 1.0], [0.3, 0.4], [0.0, 0.0]]
    """
    rows = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True, initial=0.0), norm)
    scaled = rows / largest  # entries of at most one: no norm can overflow
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled * (norm / np.maximum(norms, norm / largest)))


def _choose_count_weight(width: int) -> float:
    return float(max(1, width) ** -0.25)


def _bound_length(width: int, weight: float) -> float:
    """Return the largest length of (a, x), in units of the clip norm."""
    return math.hypot(float(width > 0), weight) if weight else 1.0


def _choose_step(scale: float, clip_norm: float, width: int) -> float:
    return max(min(scale, clip_norm) * _FINENESS, clip_norm * _FINEST) / math.sqrt(max(1, width))


def _split_chunks(
    chunks: Iterable[tuple[Integers, Floats]], *, width: int, most: float
) -> Iterable[tuple[Integers, Floats]]:
    """Yield the chunks in parts of at most `most` rows, as arrays of the right types; raise if a shape is wrong."""
    size = max(1, min(_ROWS, _NUMBERS // max(1, width), int(most)))
    for group, rows in chunks:
        if rows.shape != (len(group), width):
            raise ValueError(f"a chunk of {len(group)} rows of {width} numbers has shape {rows.shape}")
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            yield np.asarray(group[part]), np.asarray(rows[part], np.float64)
