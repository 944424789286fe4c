"""What a tally would cost, before any vector is sent: groups, thresholds, bytes, noise, and what may go wrong.

There are two modes. With `peers`, groups mask their vectors among themselves, and the sum of each group is opened: each
needs the whole noise. With `keepers`, independent servers hold the masks, and one sum of everybody is opened.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from sundog.errors import ArgumentError
from sundog.privacy.budget import check_budget, compute_default_delta
from sundog.tally.modulus import WORD_BYTES, check_room
from sundog.tally.noise import Contribution, plan_noise
from sundog.tally.plan_text import describe_plan
from sundog.tally.sketches import CountMin
from sundog.tally.thresholds import compute_most_corrupt, compute_threshold

Mode = Literal["peers", "keepers"]

GROUP_SIZE = 300
_RARE = 1e-9  # the probability of a group with more colluders, at which groups are large enough
_LARGEST_GROUP = 10_000  # people: in larger ones each would talk to too many others
_FEWEST = 3  # people in a sum: of two, each would know the other's part but for the noise
_MOST = 10**9  # people, cells, or keys of a person


@dataclass(frozen=True)
class TallyRequest:
    """What is to be summed, and for whom.

    Args:
        users: people who may take part.
        cells: counts that are wanted.
        epsilon: of a round, for each person.
        delta: of a round; by default from the number of users.
        items: how many counts a person adds one to, at most.
        largest: what clients let one cell change by; by default 1, or `items` in a sketch, where they may collide.
        l2_squared: what clients let the squares of the changes add up to, if that is less than the rest implies.
        sketched: whether vectors are Count-Min sketches; by default if those are shorter.
        sketch_error: of the sketch, as a part of the total count.
        sketch_failure: the probability of a larger error.
        group_size: about how many people mask one another, with peers.
        dropout: the part of the users that drops out, as far as known.
        corrupt: the part of the users that colludes with the server, as far as known.
    """

    users: int
    cells: int
    epsilon: float
    delta: float | None = None
    items: int = 1
    largest: int | None = None
    l2_squared: int | None = None
    sketched: bool | None = None
    sketch_error: float = 0.01
    sketch_failure: float = 0.01
    group_size: int = GROUP_SIZE
    dropout: float = 0.2
    corrupt: float = 0.05

    def __post_init__(self) -> None:
        least = {"users": _FEWEST, "group_size": _FEWEST, "cells": 1, "items": 1}
        for name, fewest in least.items():
            if not fewest <= (value := getattr(self, name)) <= _MOST:
                raise ArgumentError(f"{name} must be between {fewest} and {_MOST:,}, not {value:,}")
        for name in ("dropout", "corrupt"):
            if not 0 <= (value := getattr(self, name)) < 1:
                raise ArgumentError(f"{name} is a part of the users, between 0 and 1, not {value:g}")
        if self.items > self.cells:
            raise ArgumentError(f"a person cannot add to {self.items:,} of {self.cells:,} cells")


@dataclass(frozen=True)
class ModePlan:
    """One mode: who is summed, what is sent, how much noise there is, and what may go wrong."""

    mode: Mode
    groups: int
    group_size: int
    threshold: int
    corrupt: int
    vector_bytes: int
    sigma: float
    share_variance: float
    group_factor: float
    reserve_factor: float
    total_deviation: float
    spent_epsilon: float
    excess_epsilon: float
    dropout_failure: float
    collusion_failure: float


@dataclass(frozen=True)
class TallyPlan:
    """Both modes of a tally, to be printed."""

    request: TallyRequest
    delta: float
    sketch: tuple[int, int] | None
    contribution: Contribution
    smallest_group: int | None
    modes: tuple[ModePlan, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        return describe_plan(self)


def plan_tally(request: TallyRequest) -> TallyPlan:
    """Plan a round in both modes.

    >>> plan = plan_tally(TallyRequest(users=600, cells=10_000, epsilon=1.0, delta=1e-6))
    >>> plan.sketch, [(each.mode, each.groups, each.threshold) for each in plan.modes]
    ((14, 272), [('peers', 2, 180), ('keepers', 1, 360)])
    """
    delta = compute_default_delta(request.users) if request.delta is None else request.delta
    sketch = _choose_sketch(request)
    contribution = _bound_contribution(request, rows=1 if sketch is None else sketch[0])
    size = request.cells if sketch is None else sketch[0] * sketch[1]
    groups = max(1, round(request.users / request.group_size))
    counts: dict[Mode, int] = {"peers": groups, "keepers": 1}
    modes = tuple(
        _plan_mode(mode, request, contribution, groups=count, size=size, delta=delta) for mode, count in counts.items()
    )
    return TallyPlan(request, delta, sketch, contribution, find_smallest_group(request.corrupt), modes)


def compute_dropout_failure(group_size: int, *, dropout: float) -> float:
    """Return the probability that too few of a group survive, if each drops out independently.

    >>> f"{compute_dropout_failure(300, dropout=0.2):.0e}", f"{compute_dropout_failure(300, dropout=0.35):.2f}"
    ('6e-16', '0.03')
    """
    return float(stats.binom.sf(group_size - compute_threshold(group_size), group_size, dropout))


def compute_collusion_failure(group_size: int, *, corrupt: float) -> float:
    """Return the probability that a fifth of a group or more colludes, if each person does independently.

    >>> f"{compute_collusion_failure(300, corrupt=0.05):.0e}", f"{compute_collusion_failure(30, corrupt=0.05):.0e}"
    ('4e-20', '3e-03')
    """
    return float(stats.binom.sf(compute_most_corrupt(group_size), group_size, corrupt))


def find_smallest_group(corrupt: float) -> int | None:
    """Return the size from which on a fifth of a group colludes with probability below 10⁻⁹; None if none is found.

    >>> find_smallest_group(0.05), find_smallest_group(0.1), find_smallest_group(0.2)
    (131, 411, None)
    """
    sizes = np.arange(1, _LARGEST_GROUP + 1)
    most = [compute_most_corrupt(size) for size in sizes.tolist()]
    risky = np.flatnonzero(stats.binom.sf(most, sizes, corrupt) > _RARE)
    if len(risky) == 0:
        return 1
    return None if risky[-1] == len(sizes) - 1 else int(sizes[risky[-1]]) + 1


def _choose_sketch(request: TallyRequest) -> tuple[int, int] | None:
    if request.sketched is False:
        return None
    sketch = CountMin.for_error(
        keys=request.cells, epsilon=request.sketch_error, delta=request.sketch_failure, seed=bytes(32)
    )
    return (sketch.rows, sketch.width) if request.sketched or sketch.size < request.cells else None


def _bound_contribution(request: TallyRequest, *, rows: int) -> Contribution:
    default = 1 if rows == 1 else request.items
    largest = default if request.largest is None else request.largest
    return Contribution(l1=request.items * rows, largest=largest, l2_squared=request.l2_squared)


def _plan_mode(
    mode: Mode, request: TallyRequest, contribution: Contribution, *, groups: int, size: int, delta: float
) -> ModePlan:
    people = request.users // groups  # of the smallest group
    threshold, corrupt = compute_threshold(people), compute_most_corrupt(people)
    budget = check_budget(request.epsilon, delta)
    noise = plan_noise(contribution, budget=budget, threshold=threshold, corrupt=corrupt)
    check_room(users=people + 1, largest=contribution.largest, deviation=noise.shares.compute_deviation(people + 1))
    total = noise.shares.compute_deviation(request.users)
    return ModePlan(
        mode=mode,
        groups=groups,
        group_size=people,
        threshold=threshold,
        corrupt=corrupt,
        vector_bytes=WORD_BYTES * size,
        sigma=noise.shares.sigma,
        share_variance=noise.shares.variance,
        group_factor=math.sqrt(groups),
        reserve_factor=total / noise.shares.sigma / math.sqrt(groups),
        total_deviation=total,
        spent_epsilon=noise.spent,
        excess_epsilon=noise.excess,
        dropout_failure=_compute_any(compute_dropout_failure(people, dropout=request.dropout), groups),
        collusion_failure=_compute_any(compute_collusion_failure(people, corrupt=request.corrupt), groups),
    )


def _compute_any(probability: float, groups: int) -> float:
    """Return the probability that it happens to any group."""
    return -math.expm1(groups * math.log1p(-probability)) if probability < 1 else 1.0
