"""From Rényi divergences to ε: the cross-check of the claim, and the moments accountant of the papers."""

from __future__ import annotations

import functools
import math
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from sundog.privacy.events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
    Skellam,
)

Floats = npt.NDArray[np.float64]
Orders = Literal["rdp", "moments"]

_RDP_ORDERS = np.array([*range(2, 65), 80, 96, 128, 192, 256], dtype=float)
_LARGE = 100.0  # exponents from which hyperbolic sines could overflow
_MOMENT_ORDERS = np.arange(2, 34).astype(float)  # λ = 1 … 32 in the papers is Rényi order λ + 1


def compute_epsilon_by_orders(totals: dict[Event, int], delta: float, method: Orders) -> float:
    """Return the smallest ε at δ of events and their counts, by Rényi orders or by the papers' moments.

    >>> round(compute_epsilon_by_orders({Gaussian(noise_multiplier=20.0): 20}, 1e-5, "rdp"), 3)
    0.897
    """
    orders = _RDP_ORDERS if method == "rdp" else _MOMENT_ORDERS
    failure = sum(event.delta * count for event, count in totals.items() if isinstance(event, Failure))
    if failure >= delta:  # the failures alone use up δ; no finite ε is left to claim
        return math.inf
    spent = np.zeros_like(orders)
    for event, count in totals.items():
        if not isinstance(event, Failure):
            spent = spent + count * np.asarray(_compute_divergences(event, method))
    spent = np.maximum(spent, 0.0)  # tiny divergences round to either side of zero
    if method == "moments":  # Abadi et al. 2016, Theorem 2: δ = min exp(α(λ) − λε)
        return float(np.min(spent + math.log(1 / (delta - failure)) / (orders - 1)))
    return _convert_to_epsilon(orders, spent, delta - failure)


def _convert_to_epsilon(orders: Floats, spent: Floats, delta: float) -> float:
    """Convert Rényi divergences to ε (Canonne, Kamath, Steinke 2020, Proposition 12), as dp-accounting does."""
    found = spent + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    found = np.where(delta**2 + np.expm1(-spent) > 0, 0.0, found)  # δ ≤ √(1 − exp(−KL))
    return max(0.0, float(found.min()))


@functools.lru_cache(maxsize=256)
def _compute_divergences(event: Event, method: Orders) -> tuple[float, ...]:
    orders = _RDP_ORDERS if method == "rdp" else _MOMENT_ORDERS
    with np.errstate(over="ignore"):  # what overflows is infinite
        return tuple(_compute_divergences_at(event, orders))


def _compute_divergences_at(event: Event, orders: Floats) -> Floats:
    if isinstance(event, Gaussian):
        return orders / 2 / event.noise_multiplier / event.noise_multiplier
    if isinstance(event, DiscreteGaussian):  # Canonne, Kamath, Steinke 2020, Theorem 4
        return orders / 2 / event.sigma / event.sigma
    if isinstance(event, SampledGaussian):
        return _compute_sampled_gaussian_divergences(event, orders)
    if isinstance(event, Skellam):
        return _bound_skellam_divergences(event, orders)
    if isinstance(event, DiscreteLaplace | Pure):
        return _compute_pure_divergences(event.epsilon, orders)
    raise AssertionError(f"no Rényi divergence for {event!r}")


def _bound_skellam_divergences(event: Skellam, orders: Floats) -> Floats:
    """Bound the divergence (Agarwal, Kairouz, Liu 2021, Corollary 3.6): that of a Gaussian, and an excess."""
    variance = event.sigma * event.sigma
    excess = np.minimum(
        ((2 * orders - 1) * event.l2_squared + 6 * event.l1) / 4 / variance / variance, 1.5 * event.l1 / variance
    )
    return np.asarray(orders / 2 * event.l2_squared / variance + excess)


def _compute_sampled_gaussian_divergences(event: SampledGaussian, orders: Floats) -> Floats:
    if event.noise_multiplier < 1e-3:  # meaningless: the bound without sampling is larger, and can be computed
        return _compute_divergences_at(Gaussian(noise_multiplier=event.noise_multiplier), orders)
    excess = special.logsumexp(_compute_excess_terms(event, orders), axis=1)
    return np.asarray(np.logaddexp(0.0, excess) / (orders - 1))


def _compute_excess_terms(event: SampledGaussian, orders: Floats) -> Floats:
    """Return the logarithm of each term of A − 1 (Mironov, Talwar, Zhang 2019, section 3.3), one row per order.

    A = Σₖ C(α, k) qᵏ (1 − q)^(α − k) exp(k(k − 1) / 2σ²) for whole α; without the exponentials the sum is one.
    """
    k = np.arange(2.0, orders.max() + 1)
    alpha = orders[:, None]
    weight = _compute_log_binomials(tuple(orders)) + k * math.log(event.sample_rate)
    weight += (alpha - k) * math.log1p(-event.sample_rate)
    moment = k * (k - 1) / 2 / event.noise_multiplier / event.noise_multiplier
    growth = moment + np.log(-np.expm1(-moment))  # log(exp(moment) − 1)
    return np.where(k <= alpha, weight + growth, -np.inf)


@functools.lru_cache(maxsize=2)
def _compute_log_binomials(orders: tuple[float, ...]) -> Floats:
    """Return log C(α, k) for k from 2 on, one row per order; entries with k above α are not used."""
    k, alpha = np.arange(2.0, max(orders) + 1), np.array(orders)[:, None]
    found = special.gammaln(alpha + 1) - special.gammaln(k + 1) - special.gammaln(np.maximum(alpha - k, 0) + 1)
    return np.asarray(found)


def _compute_pure_divergences(epsilon: float, orders: Floats) -> Floats:
    """Return the Rényi divergence of randomised response, the worst case of an ε-DP mechanism.

    It is log(cosh((α − ½)ε) / cosh(ε/2)) / (α − 1). The quotient is 1 + 2 sinh(αε/2) sinh((α − 1)ε/2) / cosh(ε/2),
    which keeps its digits where ε is tiny.
    """
    small = orders * epsilon < _LARGE
    half = np.where(small, epsilon / 2, 0.0)
    near = np.log1p(2 * np.sinh(orders * half) * np.sinh((orders - 1) * half) / np.cosh(half))
    log_p, log_q = -np.logaddexp(0, -epsilon), -np.logaddexp(0, epsilon)
    terms = [orders * log_p + (1 - orders) * log_q, orders * log_q + (1 - orders) * log_p]
    return np.where(small, near, np.logaddexp(*terms)) / (orders - 1)
