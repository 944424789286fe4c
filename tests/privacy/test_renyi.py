"""Rényi divergences are turned into ε as dp-accounting does."""

from __future__ import annotations

import math

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
    assert renyi._epsilon_of_orders(orders, divergences, delta) == pytest.approx(theirs, rel=1e-12, abs=1e-15)
