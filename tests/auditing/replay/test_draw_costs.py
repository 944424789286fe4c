"""The cost of a draw against a slow oracle: the largest log-ratio of the probabilities of what can be released."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundog.auditing.replay.draw_costs import Neighbours, find_excess, measure_cost
from sundog.privacy.draws import (
    ChoiceDraw,
    DiscreteGaussianDraw,
    DiscreteLaplaceDraw,
    GaussianDraw,
    KeysDraw,
    QuantileDraw,
)
from sundog.privacy.events import Charge, DiscreteGaussian, Failure, Gaussian, Pure, SampledGaussian

SIZE = 12


def enumerate_quantile(draw: QuantileDraw) -> list[float]:
    """The log-probability of each integer."""
    n = len(draw.ordered)
    scores = [-draw.weight * abs(sum(each < value for each in draw.ordered) - draw.p * n) for value in range(draw.size)]
    total = sum(math.exp(score) for score in scores)
    return [score - math.log(total) for score in scores]


@given(
    values=st.lists(st.integers(0, SIZE - 1), max_size=5),
    more=st.integers(0, SIZE - 1),
    p=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
def test_a_quantile(values: list[int], more: int, p: float) -> None:
    draws = [QuantileDraw(np.sort(np.array(each, np.int64)), p, SIZE, 0.7) for each in (values, [*values, more])]
    logs = [enumerate_quantile(draw) for draw in draws]
    worst = max(abs(first - second) for first, second in zip(*logs, strict=True))
    cost = measure_cost(*draws)["ε"]
    assert cost == pytest.approx(worst, abs=1e-9)
    assert cost <= 2 * 0.7 + 1e-9


def test_a_choice() -> None:
    before, after = np.array([0.0, 1.0, 2.0]), np.array([0.5, 1.0, 1.5])
    chances = [np.exp(each) / np.exp(each).sum() for each in (before, after)]
    cost = measure_cost(ChoiceDraw(before), ChoiceDraw(after))["ε"]
    assert cost == pytest.approx(np.abs(np.log(chances[0] / chances[1])).max())


def test_keys_of_one_record() -> None:
    before, after = KeysDraw({"a": 7}, 0.5, 20), KeysDraw({"a": 8, "new": 1}, 0.5, 20)
    cost = measure_cost(before, after)
    tail = sum(math.exp(-0.5 * k) for k in range(19, 500)) * math.tanh(0.25)
    assert cost == pytest.approx({"ε": 0.5, "δ": tail})
    charges = [Charge(event=Pure(epsilon=0.5), purpose="keys"), Charge(event=Failure(delta=tail), purpose="keys")]
    assert find_excess(charges, [Neighbours(before, after)]) == []
    assert find_excess(charges[:1], [Neighbours(before, after)])


def test_gaussians_add_up_in_squares() -> None:
    def draw(x: float) -> GaussianDraw:
        return GaussianDraw([np.array([x, 0.0]), np.array([1.0])], [2.0, 4.0])

    shifted = GaussianDraw([np.array([3.0, 4.0]), np.array([3.0])], [2.0, 4.0])
    assert measure_cost(draw(0.0), shifted)["μ²"] == pytest.approx(25 / 4 + 4 / 16)
    charge = Charge(event=Gaussian(noise_multiplier=2.0), purpose="a sum")
    assert find_excess([charge], [Neighbours(draw(0.0), draw(1.0))]) == []
    assert find_excess([charge], [Neighbours(draw(0.0), draw(1.0))] * 2) == ["costs μ² = 0.5, and 0.25 was charged"]
    silent = GaussianDraw([np.zeros(1)], [0.0])
    assert measure_cost(silent, silent)["μ²"] == 0.0
    assert measure_cost(silent, GaussianDraw([np.ones(1)], [0.0]))["μ²"] == math.inf
    assert measure_cost(silent, GaussianDraw([np.array([np.nan])], [0.0]))["μ²"] == math.inf


def test_each_step_of_a_training_by_itself() -> None:
    charge = Charge(event=SampledGaussian(noise_multiplier=2.0, sample_rate=0.1), count=2, purpose="training")
    none, whole, more = (GaussianDraw([np.array([x])], [2.0]) for x in (0.0, 1.0, 1.1))
    assert find_excess([charge], [Neighbours(none, whole)] * 2) == []
    assert find_excess([charge], [Neighbours(none, whole)] * 3) == ["3 steps were taken, and 2 charged"]
    assert find_excess([charge], [Neighbours(none, none), Neighbours(none, more)]) == [
        "1 of 2 steps have sums that differ by up to 1.1 times what was charged"
    ]


def test_a_shift_by_two_needs_the_noise_of_two() -> None:
    charge = Charge(event=DiscreteGaussian(sigma=3.0), count=2, purpose="counts")
    for times, problems in ((2, 0), (1, 1)):
        draws = [DiscreteGaussianDraw(np.array(counts), 3.0, times) for counts in ([5, 5], [7, 5])]
        assert len(find_excess([charge], [Neighbours(*draws)])) == problems


def test_geometric_noise() -> None:
    draws = [DiscreteLaplaceDraw(np.array(counts), 0.25) for counts in ([5, 5], [6, 3])]
    assert measure_cost(*draws) == {"ε": 0.75}
