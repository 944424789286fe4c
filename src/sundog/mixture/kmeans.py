"""Private k-means: Lloyd's algorithm, of which each iteration sees noisy counts and sums and nothing else.

In an iteration, a record adds (a, x) to its nearest cluster only. So one Gaussian covers all clusters
(`gaussian_group_sums`). A cluster with few records, whose centre would be noise, starts again as a part of the largest
one. Post-processing of noisy numbers is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import compute_count_deviation, gaussian_group_sums

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Points = Callable[[], Iterable[Floats]]  # yields all points, in chunks, each time it is called

GRAIN = 2.0**-16  # coordinates that are multiples of it are compared without rounding: see `find_nearest_centre`
_ROWS = 16_384
TOO_FEW = 3.0  # standard deviations of the noise of a count
SPLIT = 0.05  # of the clip norm: how far from the mean of the largest cluster others start again


@dataclass(frozen=True)
class Centres:
    """Centres of clusters, and noisy counts of the records that were nearest to those of the iteration before."""

    centres: Floats
    counts: Floats


def run_private_lloyd(
    points: Points,
    start: Floats,
    *,
    iterations: int,
    clip_norm: float,
    noise_multiplier: float,
    ledger: Ledger,
    purpose: str,
    rng: np.random.Generator,
) -> Centres:
    """Move centres to the noisy means of the points that are nearest to them, several times.

    >>> rng = np.random.default_rng(0)
    >>> pile = np.concatenate([np.full((5000, 1), -0.5), np.full((5000, 1), 0.5)])
    >>> found = run_private_lloyd(
    ...     split_into_chunks(pile), np.array([[-0.1], [0.1]]), iterations=3, clip_norm=1.0, noise_multiplier=8.0,
    ...     ledger=Ledger(epsilon=2, delta=1e-6), purpose="k-means", rng=rng,
    ... )
    >>> found.centres.round(1).ravel().tolist()
    [-0.5, 0.5]

    Args:
        points: chunks of rows.
        start: the first centres.
        iterations: the number of iterations.
        clip_norm: points that are farther from the origin are moved to this distance.
        noise_multiplier: of each iteration.
        ledger: pays for each iteration.
        purpose: of the charges.
        rng: draws where small clusters start again; never noise.
    """
    centres, counts = round_to_grain(start), np.zeros(len(start))
    for _ in range(iterations):
        counts, sums = gaussian_group_sums(
            ((find_nearest_centre(chunk, centres), chunk) for chunk in points()),
            groups=len(centres),
            width=centres.shape[1],
            clip_norm=clip_norm,
            noise_multiplier=noise_multiplier,
            ledger=ledger,
            purpose=purpose,
        )
        least = TOO_FEW * compute_count_deviation(width=centres.shape[1], noise_multiplier=noise_multiplier)
        centres = _update_centres(centres, counts, sums, clip_norm=clip_norm, least=least, rng=rng)
    return Centres(centres, counts)


def _update_centres(
    before: Floats, counts: Floats, sums: Floats, *, clip_norm: float, least: float, rng: np.random.Generator
) -> Floats:
    """Return the noisy means of clusters; those with fewer than `least` records start again."""
    few = counts < max(1.0, least)
    means = clip_to_ball(sums / np.where(few, 1.0, counts)[:, None], clip_norm)
    restart_small(means, few, before, counts, SPLIT * clip_norm, rng)
    return round_to_grain(clip_to_ball(means, clip_norm))


def restart_small(
    means: Floats, few: npt.NDArray[np.bool_], before: Floats, counts: Floats, distance: float, rng: np.random.Generator
) -> None:
    """Move clusters of few records, and the largest one, to points around the mean of the largest: they share it."""
    if not few.any():
        return
    largest = np.where(few, -np.inf, counts).argmax()
    middle = before[counts.argmax()] if few.all() else means[largest]
    together = few | (np.arange(len(few)) == largest)
    means[together] = middle + distance * spread_directions(int(together.sum()), means.shape[1], rng)


def find_nearest_centre(points: npt.NDArray[Any], centres: Floats) -> Integers:
    """Return the nearest centre of each point, the first of those that are equally near.

    Where points and centres are multiples of GRAIN and not long, all sums are exact: the centre of a point never
    depends on other points.

    >>> find_nearest_centre(np.array([[0.9], [0.2]]), np.array([[0.0], [1.0]])).tolist()
    [1, 0]
    """
    scores = np.asarray(points, np.float64) @ centres.T
    scores -= np.square(centres).sum(axis=1) / 2
    return np.asarray(scores.argmax(axis=1))


def spread_directions(count: int, width: int, rng: np.random.Generator) -> Floats:
    """Return directions far from each other: up to 2 × `width` of them are orthogonal or opposite, randomly rotated.

    >>> directions = spread_directions(4, 2, np.random.default_rng(0))
    >>> np.abs(directions @ directions.T).round(6).sum(axis=1).tolist()  # itself, and the one that is opposite
    [2.0, 2.0, 2.0, 2.0]
    """
    frames = []
    for _ in range(0, count, max(1, 2 * width)):
        axes = np.linalg.qr(rng.standard_normal((width, width)))[0]
        frames += [axes, -axes]
    return np.concatenate(frames)[:count] if frames else np.zeros((0, width))


def split_into_chunks(points: npt.NDArray[Any]) -> Points:
    """Return an array as `Points`: chunks of float64."""

    def yield_chunks() -> Iterator[Floats]:
        for start in range(0, len(points), _ROWS):
            yield points[start : start + _ROWS].astype(np.float64)

    return yield_chunks


def round_to_grain(points: npt.NDArray[Any]) -> Floats:
    """Round each coordinate to a multiple of GRAIN."""
    return np.asarray(np.rint(points / GRAIN) * GRAIN, np.float64)


def clip_to_ball(points: Floats, radius: float) -> Floats:
    """Move points outside of a ball around the origin to its surface.

    >>> clip_to_ball(np.array([[3.0, 4.0], [0.1, 0.0]]), 1.0).round(6).tolist()
    [[0.6, 0.8], [0.1, 0.0]]
    """
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points * np.minimum(1.0, radius / np.maximum(norms, 1e-300)))
