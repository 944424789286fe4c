"""Potentials from noisy marginals: maximum a posteriori by L-BFGS.

A clique C was measured as y_C = N μ_C + noise of variance v_C. The potentials minimise

    N log Z(θ) − Σ θ_C · y_C + ½ Σ λ_C v_C |θ_C|²

whose gradient is N μ_C(θ) − y_C + λ_C v_C θ_C. At the minimum the model's marginals differ from what was measured by
λ_C v_C θ_C: little where the noise was small, and more where it was large. It is the model of largest entropy among
those that explain the measurements as well. λ is smaller for single columns: the potential of a pair is drawn towards
independence, which is where most pairs are, but that of a column towards equal shares, where few columns are.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import optimize
from threadpoolctl import ThreadpoolController

from sundog.models.marginals.bucket_tree import BucketTree, Clique
from sundog.models.marginals.inference import CliqueLayout, Factors, Floats, calibrate, compute_marginals

COLUMN_PRIOR, PAIR_PRIOR = 0.001, 0.02  # λ: how far the model stays from what was measured, in units of its variance
_MEMORY = 30  # of L-BFGS, in steps: more take fewer steps

# Finding the libraries takes milliseconds, as long as a small estimate.
_find_libraries = functools.cache(ThreadpoolController)


@dataclass(frozen=True)
class Measurement:
    """Noisy counts of a clique's cells, and the variance of their noise: one for all cells, or one for each."""

    counts: Floats
    variance: Floats

    def combine(self, other: Measurement) -> Measurement:
        """Return the average of two measurements of the same cells, weighted by precision."""
        precision = 1 / self.variance + 1 / other.variance
        counts = (self.counts / self.variance + other.counts / other.variance) / precision
        return Measurement(counts, 1 / precision)

    @property
    def cell_variances(self) -> Floats:
        """The variance of each cell."""
        return np.broadcast_to(self.variance, self.counts.shape)


def estimate_potentials(
    tree: BucketTree,
    measured: Mapping[Clique, Measurement],
    total: float,
    *,
    fixed: Factors,
    start: Factors,
    iterations: int,
    tolerance: float,
    columns: Collection[Clique] | None = None,
    column_prior: float = COLUMN_PRIOR,
) -> dict[Clique, Floats]:
    """Return the potentials of the measured cliques.

    Args:
        tree: has a bucket for every measured clique, and every fixed one.
        measured: noisy counts by clique.
        total: the number of records.
        fixed: factors that are not estimated, such as −∞ for what is impossible.
        start: potentials to start from.
        iterations: of L-BFGS, at the most.
        tolerance: the largest gradient to stop at, in standard deviations of a count, or of its prior.
        columns: the cliques of one column; by default those of one variable.
        column_prior: λ of single columns.
    """
    if not measured:
        return {}
    layout = CliqueLayout(tree, measured)
    counts = layout.join({clique: each.counts for clique, each in measured.items()})
    columns = [clique for clique in measured if len(clique) == 1] if columns is None else columns
    strength = dict.fromkeys(measured, PAIR_PRIOR) | dict.fromkeys(columns, column_prior)
    prior = layout.join({clique: strength[clique] * each.cell_variances for clique, each in measured.items()})
    # The Hessian's diagonal is about N μ + λ v; in its scale all potentials move about equally fast.
    scale = np.sqrt(np.maximum(counts, 1.0) + prior)

    def objective(scaled: Floats) -> tuple[float, Floats]:
        theta = scaled / scale
        model = calibrate(tree, layout.split(theta), fixed)
        penalty = prior * theta
        gradient = total * compute_marginals(model, layout) - counts + penalty
        return float(total * model.log_partition - theta @ counts + 0.5 * penalty @ theta), gradient / scale

    options = {"maxiter": iterations, "maxcor": _MEMORY, "ftol": 0.0, "gtol": tolerance}
    begin = layout.join(start) * scale
    with _find_libraries().limit(limits=1):  # products of vectors: more threads would only wait for each other
        found = optimize.minimize(objective, begin, jac=True, method="L-BFGS-B", options=options)
    return {clique: part.copy() for clique, part in layout.split(found.x / scale).items()}
