"""Mechanisms: each is one call that charges the ledger and then draws the noise, in this order.

`contribution` is how many records one unit may own (1 unless the schema names a privacy unit with a larger cap).
"""

from sundog.privacy.mechanisms.counts import (
    Histogram,
    compute_histogram_charge,
    noisy_count,
    noisy_histogram,
    noisy_histograms,
)
from sundog.privacy.mechanisms.quantiles import noisy_bounds, noisy_extent, noisy_quantiles
from sundog.privacy.mechanisms.selection import exponential_mechanism, noisy_max, stable_set
from sundog.privacy.mechanisms.sums import compute_count_deviation, gaussian_group_sums, gaussian_moments, gaussian_sum
from sundog.privacy.mechanisms.tree import Partition, compute_tree_charge, count_tree_levels, noisy_tree

__all__ = [
    "Histogram",
    "Partition",
    "compute_count_deviation",
    "compute_histogram_charge",
    "compute_tree_charge",
    "count_tree_levels",
    "exponential_mechanism",
    "gaussian_group_sums",
    "gaussian_moments",
    "gaussian_sum",
    "noisy_bounds",
    "noisy_count",
    "noisy_extent",
    "noisy_histogram",
    "noisy_histograms",
    "noisy_max",
    "noisy_quantiles",
    "noisy_tree",
    "stable_set",
]
