"""The noise that was added in a recorded run: what was released minus the exact values.

It must have the scale that the draw declares, and two draws must not have the same noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.privacy.draws import DiscreteGaussianDraw, DiscreteLaplaceDraw, GaussianDraw
from sundog.privacy.transcript import Released, Transcript

Floats = npt.NDArray[np.float64]

_FEWEST = 8  # numbers of a draw that are compared with those of others
_WIDE = 3.0  # noise of integers with a smaller deviation may be the same by chance
_SMALL, _SMALLEST = 1.5, 0.3  # of a parameter: below, it is not the deviation; and there is hardly any noise
_SAME = 1e-3  # of the norm: noise on a float32 is known up to rounding
_ENOUGH = 100  # numbers whose variance is tested
_CERTAIN = 6.0  # standard deviations


def find_noise_faults(transcript: Transcript) -> Iterator[tuple[str, str]]:
    """Yield draws whose noise has another scale than declared, or that of another draw.

    A correct run fails with a probability below 1e-8; runs have seeded noise, so it does not fail the next time either.
    """
    groups: dict[str, list[Floats]] = {}
    starts: list[tuple[str, Floats]] = []
    for event, _ in transcript.events:
        if not isinstance(event, Released):
            continue
        noise, deviations = _measure_noise(event)
        if not len(noise):
            continue
        name = str(event.stream[0]) if event.stream[1:2] == ("gradient",) else str(event.draw.signature[0])
        if not (deviations > 0).all():
            yield f"noise of {name}", "a draw declares none"
            continue
        groups.setdefault(name, []).append(noise / deviations)
        if len(noise) >= _FEWEST and (isinstance(event.draw, GaussianDraw) or deviations.min() >= _WIDE):
            starts.append((name, noise[:_FEWEST] / deviations[:_FEWEST]))
    yield from _find_wrong_scales(groups)
    yield from _find_repeated(starts)


def _measure_noise(event: Released) -> tuple[Floats, Floats]:
    """Return the noise of a draw and its declared standard deviations; empty for other mechanisms."""
    draw, value = event.draw, event.value
    if isinstance(draw, GaussianDraw):
        values = value if isinstance(value, list) else [value]
        parts = [_subtract(*each) for each in zip(values, draw.exact, draw.deviations, strict=False)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    if isinstance(draw, DiscreteGaussianDraw) and draw.sigma >= _SMALLEST:
        return _subtract(value, draw.exact, compute_deviation(draw.sigma) * math.sqrt(draw.times))
    if isinstance(draw, DiscreteLaplaceDraw):
        return _subtract(value, draw.exact, math.sqrt(2 * math.exp(-draw.rate)) / -math.expm1(-draw.rate))
    return np.zeros(0), np.zeros(0)


def compute_deviation(sigma: float) -> float:
    """Return the standard deviation of a discrete Gaussian, which is that of its parameter unless that is small.

    >>> round(compute_deviation(0.3), 3), compute_deviation(20.0)
    (0.088, 20.0)
    """
    if sigma >= _SMALL:
        return sigma
    k = np.arange(-10, 11) * 1.0
    weights = np.exp(-(k**2) / (2 * sigma**2))
    return math.sqrt(float((k**2 * weights).sum() / weights.sum()))


def _subtract(value: Any, exact: Any, deviation: Any) -> tuple[Floats, Floats]:
    noise = np.asarray(value, np.float64) - np.asarray(exact, np.float64)
    return noise.ravel(), np.broadcast_to(np.asarray(deviation, np.float64), noise.shape).ravel()


def _find_wrong_scales(groups: dict[str, list[Floats]]) -> Iterator[tuple[str, str]]:
    """Yield the groups of draws whose variance is not one: that of n normal numbers has a deviation of √(2/n)."""
    for name, parts in groups.items():
        noise = np.concatenate(parts)
        heavy = 5.0 if "geometric" in name else 2.0  # the variance of a square is larger for geometric noise
        off = abs(float(np.square(noise).mean()) - 1) if np.isfinite(noise).all() else math.inf
        if len(noise) >= _ENOUGH and not off <= _CERTAIN * math.sqrt(heavy / len(noise)) + 0.02:
            scale = math.sqrt(float(np.square(noise).mean())) if math.isfinite(off) else math.inf
            yield f"noise of {name}", f"{scale:.3g} times the declared scale, in {len(noise)} numbers"


def _find_repeated(starts: list[tuple[str, Floats]]) -> Iterator[tuple[str, str]]:
    """Yield the first pair of draws that begin with the same noise."""
    if len(starts) < 2:
        return
    table = np.array([start for _, start in starts])
    norms = np.linalg.norm(table, axis=1)
    for place in range(1, len(table)):
        distance = np.linalg.norm(table[:place] - table[place], axis=1)
        same = np.flatnonzero(distance <= _SAME * norms[place])
        if len(same) and norms[place] > 0:
            first, second = starts[int(same[0])][0], starts[place][0]
            yield f"noise of {second}", f"draw {place + 1} has the noise of draw {int(same[0]) + 1} ({first})"
            return
