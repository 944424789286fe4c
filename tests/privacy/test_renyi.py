"""Rényi divergences are turned into ε as dp-accounting does."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import rdp

from sundog.privacy import renyi


@pytest.mark.parametrize("delta", [1e-40, 1e-9, 1e-5, 0.3, 0.9999])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-9, 1e-3, 1.0, 1e3, 1e20, math.inf])
def test_orders_are_turned_into_epsilon_as_by_dp_accounting(scale: float, delta: float) -> None:
    orders = renyi._RDP_ORDERS
    divergences = np.minimum(scale * orders, math.inf) if scale else np.zeros_like(orders)
    theirs = float(rdp.compute_epsilon(orders, divergences, delta)[0])
    assert renyi._convert_to_epsilon(orders, divergences, delta) == pytest.approx(theirs, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(
    "epsilon", [1e-15, 1e-12, 1e-9, 8e-9, 1e-7, 1e-5, 1e-3, 0.39, 0.4, 1.0, 5.0, 49.9, 50.1, 300.0]
)
def test_the_divergence_of_randomised_response_keeps_its_digits(epsilon: float) -> None:
    orders = np.array([2.0, 3.0, 64.0, 256.0])
    with mpmath.workdps(400):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        exact = [
            mpmath.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (order - 1)
            for order in map(mpmath.mpf, orders)
        ]
    assert renyi._compute_pure_divergences(epsilon, orders) == pytest.approx([float(each) for each in exact], rel=1e-13)
