"""Plans of a tally: thresholds, probabilities, and what groups cost."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest

from sundog.errors import ArgumentError, BudgetError
from sundog.privacy.budget import compute_default_delta
from sundog.tally.planning import (
    TallyRequest,
    compute_collusion_failure,
    compute_dropout_failure,
    find_smallest_group,
    plan_tally,
)
from sundog.tally.thresholds import compute_most_corrupt, compute_threshold


def make_plan(**changes: Any) -> Any:
    return plan_tally(TallyRequest(**{"users": 3000, "cells": 10_000, "epsilon": 1.0, "delta": 1e-6, **changes}))


def test_a_group_that_is_opened_has_more_honest_people_than_any_two_halves_of_a_lie_share() -> None:
    """A server that tells two sets of survivors to different people needs both sets to reach the threshold."""
    for size in range(3, 2000):
        threshold, corrupt = compute_threshold(size), compute_most_corrupt(size)
        assert threshold >= 0.6 * size - 1e-9 > threshold - 1
        assert corrupt < Fraction(size, 5) <= corrupt + 1
        assert 2 * threshold - size > corrupt
        assert threshold > corrupt


def sum_binomial(size: int, probability: float, least: int) -> float:
    """P(at least this many), term by term."""
    exact = Fraction(probability)
    terms = (math.comb(size, k) * exact**k * (1 - exact) ** (size - k) for k in range(least, size + 1))
    return float(sum(terms, Fraction(0)))


@pytest.mark.parametrize("size", [3, 10, 57, 150])
@pytest.mark.parametrize("probability", [0.05, 0.2, 0.5])
def test_probabilities_of_failure_are_those_of_the_binomial(size: int, probability: float) -> None:
    too_many = next(gone for gone in range(size + 2) if size - gone < 0.6 * size - 1e-9)
    assert compute_dropout_failure(size, dropout=probability) == pytest.approx(
        sum_binomial(size, probability, too_many), rel=1e-9
    )
    colluding = next(known for known in range(size + 1) if 5 * known >= size)
    assert compute_collusion_failure(size, corrupt=probability) == pytest.approx(
        sum_binomial(size, probability, colluding), rel=1e-9
    )


@pytest.mark.parametrize("corrupt", [0.001, 0.05, 0.1])
def test_from_the_smallest_group_on_collusion_is_rare(corrupt: float) -> None:
    smallest = find_smallest_group(corrupt)
    assert smallest is not None
    assert compute_collusion_failure(smallest - 1, corrupt=corrupt) > 1e-9
    assert all(compute_collusion_failure(n, corrupt=corrupt) <= 1e-9 for n in range(smallest, 3 * smallest))


def test_without_colluders_any_group_will_do_and_with_a_fifth_none() -> None:
    assert find_smallest_group(0.0) == 1
    assert find_smallest_group(0.2) is None


def test_groups_cost_the_root_of_their_number_and_keepers_nothing() -> None:
    peers, keepers = make_plan(users=1_000_000, group_size=500).modes
    assert (peers.groups, peers.group_size, peers.threshold, peers.corrupt) == (2000, 500, 300, 99)
    assert (keepers.groups, keepers.group_size) == (1, 1_000_000)
    assert peers.group_factor == pytest.approx(math.sqrt(2000))  # the 45 of a million in groups of 500
    assert keepers.group_factor == 1
    assert peers.sigma == pytest.approx(keepers.sigma, rel=1e-3)
    assert peers.total_deviation / keepers.total_deviation == pytest.approx(44.7, rel=0.01)
    for mode in (peers, keepers):
        honest = mode.threshold - mode.corrupt
        assert mode.share_variance == pytest.approx(mode.sigma**2 / honest, rel=1e-4)
        assert mode.total_deviation == pytest.approx(math.sqrt(1_000_000 * mode.share_variance))
        assert mode.reserve_factor == pytest.approx(math.sqrt(mode.group_size / honest), rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "sketch", "bytes_sent", "bounds"),
    [
        ({}, (14, 272), 15_232, (14, 1)),
        ({"cells": 245_000}, (18, 272), 19_584, (18, 1)),
        ({"cells": 245_000, "items": 50}, (18, 272), 19_584, (900, 50)),
        ({"cells": 245_000, "items": 50, "largest": 3}, (18, 272), 19_584, (900, 3)),
        ({"cells": 1000, "items": 50}, None, 4000, (50, 1)),
        ({"cells": 1000, "items": 50, "largest": 3}, None, 4000, (50, 3)),
        ({"sketched": False}, None, 40_000, (1, 1)),
        ({"cells": 100, "sketched": True}, (10, 272), 10_880, (10, 1)),
    ],
    ids=str,
)
def test_vectors_are_sketches_where_those_are_shorter(
    changes: dict[str, Any], sketch: Any, bytes_sent: int, bounds: tuple[int, int]
) -> None:
    plan = make_plan(**changes)
    assert plan.sketch == sketch
    assert [mode.vector_bytes for mode in plan.modes] == [bytes_sent] * 2
    assert (plan.contribution.l1, plan.contribution.largest) == bounds


def test_more_noise_is_needed_for_more_items_and_less_for_bounds_that_clients_enforce() -> None:
    by = [
        make_plan(cells=245_000, **changes).modes[0].sigma
        for changes in ({}, {"items": 50}, {"items": 50, "largest": 3}, {"items": 50, "largest": 3, "l2_squared": 950})
    ]
    assert by[0] < by[3] < by[2] < by[1]
    assert by[2] == pytest.approx(by[0] * math.sqrt(50 * 3), rel=0.02)


def test_every_plan_keeps_to_its_budget() -> None:
    plan = make_plan(users=777, delta=None, epsilon=0.3)
    assert plan.delta == compute_default_delta(777)
    for mode in plan.modes:
        assert 0.99 * 0.3 < mode.spent_epsilon <= 0.3


def test_failures_of_any_group_are_counted() -> None:
    one, many = make_plan(users=300, dropout=0.35).modes[0], make_plan(users=300_000, dropout=0.35).modes[0]
    assert one.dropout_failure == compute_dropout_failure(300, dropout=0.35)
    assert many.dropout_failure == pytest.approx(1 - (1 - one.dropout_failure) ** 1000)


def test_the_text_names_the_modes_their_trust_and_what_is_unsafe() -> None:
    text = str(make_plan(users=1_000_000, group_size=500))
    for part in ("peers", "keepers", "× 44.7", "no other party is needed", "two of them do not collude", "131 people"):
        assert part in text
    assert "warning" not in text
    assert "warning: groups of 50 are small" in str(make_plan(group_size=50))
    assert "warning: no group is safe if 25%" in str(make_plan(corrupt=0.25))


def test_a_plan_is_plain_json() -> None:
    read = json.loads(json.dumps(make_plan().to_dict(), allow_nan=False))
    assert [mode["mode"] for mode in read["modes"]] == ["peers", "keepers"]
    assert read["contribution"] == {"l1": 14, "largest": 1, "l2_squared": None}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"users": 2}, "users must be between 3 and 1,000,000,000, not 2"),
        ({"users": 10**9 + 1}, "users must be between"),
        ({"cells": 0}, "cells must be between 1"),
        ({"items": 0}, "items must be between 1"),
        ({"group_size": 2}, "group_size must be between 3"),
        ({"items": 10_001}, "a person cannot add to 10,001 of 10,000 cells"),
        ({"dropout": 1.0}, "dropout is a part of the users"),
        ({"corrupt": -0.1}, "corrupt is a part of the users"),
        ({"corrupt": math.nan}, "corrupt is a part of the users"),
        ({"largest": 2}, None),
        ({"largest": 15}, "the largest change of a cell is between 1 and all changes together"),
        ({"l2_squared": 3}, "the squares of changes that add up to 14"),
        ({"sketch_error": 0.0}, "a sketch is for one key or more"),
        ({"sketch_error": 1e-7, "sketched": True}, "a sketch has 1 to 32 rows"),
        ({"items": 10_000, "users": 3}, "people can share"),
        ({"items": 5_000, "largest": 5_000, "users": 900_000, "epsilon": 30.0}, "do not fit into 32 bits"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused_in_one_line(changes: dict[str, Any], said: str | None) -> None:
    if said is None:
        make_plan(**changes)
        return
    with pytest.raises(ArgumentError, match=said) as caught:
        make_plan(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (-1.0, 1e-6), (math.nan, 1e-6), (1.0, 0.0), (1.0, 0.5)])
def test_budgets_out_of_range_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(BudgetError):
        make_plan(epsilon=epsilon, delta=delta)
