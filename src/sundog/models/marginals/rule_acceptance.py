"""Rules that only some records of a cell satisfy: how often records are drawn again, and what that does to the rest.

A cell is a combination of groups of values. Where rejection keeps a share of a cell's records (release/
rejection_sampling.py), the records that are kept have p(cell) ∝ exp(Σ θ) · share. The potentials θ are fitted with the
shares as fixed factors, so that it is the kept records that have the measured marginals. Within a group rejection also
prefers some values to others; raking turns their probabilities until those of the kept records are the measured ones.

Both are integrals over the model, and are computed by simulation. They see no private record.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sundog.data.schema import Schema
from sundog.models.marginals.axes import Axes
from sundog.models.marginals.bucket_tree import Clique
from sundog.models.marginals.inference import Calibrated, Factors, Floats
from sundog.models.marginals.tree_sampling import draw_records
from sundog.models.marginals.variable import Variable

_DRAWN = 2**18  # records, of all cells of a rule or of the model
_FEWEST, _MOST = 16, 2**12  # records drawn in a cell
_CAUTION = 10.0  # records that each bin is taken to have beside those that were drawn
_LARGEST = 2.0  # factor by which raking may change a probability; with more, ever fewer records are kept


def estimate_acceptance(schema: Schema, axes: Axes, possible: Factors) -> dict[Clique, Floats]:
    """Return the logarithm of the share of each cell's records that satisfy the rules about its columns.

    Args:
        schema: with rules about scalar columns that are not derived.
        axes: of the scalar columns.
        possible: by the variables of each rule's columns, 0 for cells that are possible and −∞ for others.
    """
    rng = np.random.default_rng(0)  # the same integral has the same value each time
    found = {}
    for clique, factor in possible.items():
        columns = axes.list_columns(clique)
        each = min(max(_DRAWN // factor.size, _FEWEST), _MOST)
        cells = np.unravel_index(np.repeat(np.arange(factor.size), each), factor.shape)
        drawn = dict(zip(clique, cells, strict=True))
        codes = {name: axes.decode(name, drawn, rng) for name in columns}
        rules = [rule for _, rule in schema.bind_rules().rules if set(rule.names) == set(columns)]
        kept = np.logical_and.reduce([rule.holds(codes) for rule in rules]).reshape(-1, each).sum(axis=1)
        found[clique] = factor + np.log(np.maximum(kept, 0.5) / each).reshape(factor.shape)
    return found


def is_partial(accepted: Factors) -> bool:
    """Return whether some cells have records that satisfy a rule and records that do not.

    >>> is_partial({(0,): np.array([0.0, -np.inf])}), is_partial({(0,): np.array([0.0, -0.5])})
    (False, True)
    """
    return any(bool((np.isfinite(factor) & (factor < 0)).any()) for factor in accepted.values())


def rake_shares(schema: Schema, axes: Axes, model: Calibrated, marginals: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return probabilities of bins, with which more of the kept records have the bins that they should have.

    Args:
        schema: with rules about scalar columns that are not derived.
        axes: of the scalar columns, with the probabilities used so far.
        model: of the variables, before records are rejected.
        marginals: the probabilities that the kept records should have, by column.
    """
    rng = np.random.default_rng(0)
    rules = schema.bind_rules()
    drawn = dict(enumerate(draw_records(model, _DRAWN, rng)))
    names = {name for _, rule in rules.rules for name in rule.names}
    codes = {name: axes.decode(name, drawn, rng) for name in axes.names if name in names}
    kept = rules.holds(codes)
    found = {name: variable.shares for name, variable in axes.fine.items()}
    for name in codes:
        variable = axes.fine[name]
        bins = variable.bins.to_bins(codes[name][kept]).astype(np.int64)
        counts = np.bincount(bins, minlength=len(variable.shares)).astype(np.float64)
        found[name] = _turn(variable, counts, marginals[name])
    return found


def _turn(variable: Variable, counts: Floats, wanted: Floats) -> Floats:
    """Return the probabilities of bins, changed within each group by what is wanted for each that was counted."""
    within = _share_groups(variable, wanted)
    factor = (within * variable.sum_groups(counts)[variable.groups] + _CAUTION) / (counts + _CAUTION)
    turned = _share_groups(variable, variable.shares * factor)
    bounded = _share_groups(variable, np.clip(turned, within / _LARGEST, within * _LARGEST))
    return bounded * variable.sum_groups(wanted)[variable.groups]


def _share_groups(variable: Variable, weights: Floats) -> Floats:
    """Return weights of bins divided by the weight of their group; equal shares where a group has none."""
    sums = variable.sum_groups(weights)[variable.groups]
    equal = 1.0 / variable.bins_per_group[variable.groups]
    return np.divide(weights, sums, out=np.asarray(equal), where=sums > 0)
