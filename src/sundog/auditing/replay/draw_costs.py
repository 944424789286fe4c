"""What a draw costs: the privacy loss between two exact values, in the terms of the charges that paid for it.

A draw that was made for two neighbouring inputs has a loss that can be computed, because both exact values are known.
It must not exceed what was charged: Gaussians add up in μ² (the squared distance in units of the noise), discrete
Gaussians in shifts by one, everything else in ε.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from sundog.privacy.draws import (
    ChoiceDraw,
    DiscreteGaussianDraw,
    DiscreteLaplaceDraw,
    Draw,
    GaussianDraw,
    KeysDraw,
    PermuteAndFlipDraw,
    QuantileDraw,
)
from sundog.privacy.events import Charge, DiscreteGaussian, DiscreteLaplace, Failure, Gaussian, Pure, SampledGaussian

Floats = npt.NDArray[np.float64]
Costs = dict[str, float]  # by unit: μ², shifts by one at some σ, ε, δ

_SLACK = 1e-6  # of a cost that is computed exactly, up to rounding
_FLOAT_SLACK = 2e-3  # of the squared norm of a sum of float32 gradients


@dataclass(frozen=True)
class Neighbours:
    """One draw, for two neighbouring inputs."""

    before: Draw
    after: Draw


def find_excess(charges: Sequence[Charge], draws: Sequence[Neighbours]) -> list[str]:
    """Return how the draws between two charges cost more than what was charged for them; empty if they do not.

    >>> charge = Charge(event=DiscreteLaplace(rate=0.5), purpose="a count")
    >>> draws = [Neighbours(*(DiscreteLaplaceDraw(np.array([n]), 0.5) for n in (7, 9)))]
    >>> find_excess([charge], draws)
    ['costs ε = 1, and 0.5 was charged']
    """
    sampled = [charge for charge in charges if isinstance(charge.event, SampledGaussian)]
    steps = [each for each in draws if sampled and isinstance(each.before, GaussianDraw)]
    rest = [each for each in draws if not any(each is step for step in steps)]
    found = list(_find_step_excess(sampled, steps))
    return found + compare_costs(add_costs(rest), add_charges(charges)) + list(_find_wide_shifts(rest))


def compare_costs(costs: Costs, charged: Costs) -> list[str]:
    """Return which costs exceed what was charged."""
    return [
        f"costs {unit} = {cost:.4g}, and {charged.get(unit, 0.0):.4g} was charged"
        for unit, cost in costs.items()
        if not cost <= charged.get(unit, 0.0) * (1 + _SLACK) + 1e-12
    ]


def add_costs(draws: Iterable[Neighbours]) -> Costs:
    """Return the costs of several draws together."""
    total: Costs = defaultdict(float)
    for each in draws:
        for unit, cost in measure_cost(each.before, each.after).items():
            total[unit] += cost
    return dict(total)


def add_charges(charges: Iterable[Charge]) -> Costs:
    """Return what charges pay for; steps of a training are compared one at a time."""
    total: Costs = defaultdict(float)
    for charge in charges:
        event = charge.event
        if isinstance(event, Gaussian):
            total["μ²"] += charge.count / event.noise_multiplier**2
        elif isinstance(event, DiscreteGaussian):
            total[_name_shifts(event.sigma)] += charge.count
        elif isinstance(event, Pure | DiscreteLaplace):
            total["ε"] += event.epsilon * charge.count
        elif isinstance(event, Failure):
            total["δ"] += event.delta * charge.count
    return dict(total)


def measure_cost(before: Any, after: Any) -> Costs:
    """Return what one draw costs between two exact values.

    >>> measure_cost(*(DiscreteGaussianDraw(np.array([n, 4]), 10.0) for n in (7, 8)))
    {'shifts by one at σ = 10': 1.0}
    """
    if isinstance(before, GaussianDraw):
        return {"μ²": measure_squared_distance(before, after)}
    if isinstance(before, DiscreteGaussianDraw):
        return {_name_shifts(before.sigma): float(np.abs(after.exact - before.exact).sum())}
    if isinstance(before, DiscreteLaplaceDraw):
        return {"ε": before.rate * float(np.abs(after.exact - before.exact).sum())}
    if isinstance(before, ChoiceDraw):
        logs = [each.logits - logsumexp(each.logits) for each in (before, after)]
        return {"ε": _measure_largest(logs[1] - logs[0])}
    if isinstance(before, PermuteAndFlipDraw):
        return {"ε": 2 * _measure_largest(after.logits - before.logits)}
    if isinstance(before, QuantileDraw):
        return {"ε": _measure_quantile(before, after)}
    assert isinstance(before, KeysDraw)  # noqa: S101
    return _measure_keys(before, after)


def measure_squared_distance(before: GaussianDraw, after: GaussianDraw) -> float:
    """Return μ², the squared distance of two exact values in units of the noise; infinite without noise."""
    total = 0.0
    for first, second, deviation in zip(before.exact, after.exact, before.deviations, strict=False):
        shift = np.asarray(second, np.float64) - np.asarray(first, np.float64)
        scale = np.broadcast_to(np.asarray(deviation, np.float64), shift.shape)
        moved = shift != 0
        if (moved & (scale <= 0)).any() or not np.isfinite(shift).all():
            return math.inf
        total += float(np.square(shift[moved] / scale[moved]).sum())
    return total


def _find_step_excess(charges: Sequence[Charge], steps: Sequence[Neighbours]) -> Iterable[str]:
    """Yield how the steps of a training differ from those that were charged, each by itself."""
    if not charges:
        return
    (least, *_) = sorted(charge.event.noise_multiplier for charge in charges)  # type: ignore[union-attr]
    paid = sum(charge.count for charge in charges)
    if len(steps) > paid:
        yield f"{len(steps)} steps were taken, and {paid} charged"
    distances = [measure_squared_distance(each.before, each.after) for each in steps]  # type: ignore[arg-type]
    wrong = [each for each in distances if not each <= (1 + _FLOAT_SLACK) / least**2]
    if wrong:
        times = math.sqrt(max(wrong)) * least
        yield f"{len(wrong)} of {len(steps)} steps have sums that differ by up to {times:.4g} times what was charged"


def _find_wide_shifts(draws: Iterable[Neighbours]) -> Iterable[str]:
    """Yield which integers differ by more than their noise was added for: one draw of noise allows a shift by one."""
    for each in draws:
        before, after = each.before, each.after
        if isinstance(before, DiscreteGaussianDraw) and isinstance(after, DiscreteGaussianDraw):
            widest = int(np.abs(after.exact - before.exact).max(initial=0))
            if widest > before.times:
                yield f"a count differs by {widest}, and has the noise for {before.times}"


def _name_shifts(sigma: float) -> str:
    return f"shifts by one at σ = {sigma:.6g}"


def _measure_largest(difference: Floats) -> float:
    return math.inf if np.isnan(difference).any() else float(np.abs(difference).max(initial=0.0))


def _measure_quantile(before: QuantileDraw, after: QuantileDraw) -> float:
    """Return the largest change of the log-probability of any integer."""
    cuts = np.concatenate([[0], before.ordered, before.ordered + 1, after.ordered, after.ordered + 1])
    starts = np.unique(np.clip(cuts, 0, before.size - 1))
    widths = np.diff(np.append(starts, before.size)).astype(np.float64)
    logs = []
    for each in (before, after):
        below = np.searchsorted(each.ordered, starts, side="left")
        scores = -each.weight * np.abs(below - each.p * len(each.ordered))
        logs.append(scores - logsumexp(scores, b=widths))
    return _measure_largest(logs[1] - logs[0])


def _measure_keys(before: KeysDraw, after: KeysDraw) -> Costs:
    """Return the ε of the keys that both have, and the probability that one of the others is published."""
    common = before.counts.keys() & after.counts.keys()
    epsilon = before.rate * sum(abs(after.counts[key] - before.counts[key]) for key in common)
    alone = [each.counts[key] for each in (before, after) for key in each.counts if key not in common]
    delta = sum(_compute_laplace_tail(before.threshold - count, before.rate) for count in alone)
    return {"ε": epsilon, "δ": delta}


def _compute_laplace_tail(k: int, rate: float) -> float:
    """Return the probability that geometric noise is k or more."""
    return 1 - _compute_laplace_tail(1 - k, rate) if k <= 0 else math.exp(-rate * k) / (1 + math.exp(-rate))
