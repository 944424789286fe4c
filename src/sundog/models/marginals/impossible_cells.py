"""Cells that no record can be in, by the rules of the schema: the model gives them probability zero.

A cell is a combination of groups of values. Where only some of its records satisfy a rule, the cell is possible, and
records that break the rule are drawn again (release/rejection_sampling.py). So are all that break a rule about more
cells than are listed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sundog.data.schema import Schema
from sundog.models.marginals.axes import Axes
from sundog.models.marginals.bucket_tree import Clique, GrowingTree, eliminate
from sundog.models.marginals.inference import Floats, calibrate

_MOST_CELLS = 2**14  # of the columns of one rule
_MOST_RANGES = 2**12  # of values, of all groups of a column: rare categories are one group, however scattered
_MOST_OF_ALL = 2**17  # of the bucket tree of all rules


def find_impossible(schema: Schema, axes: Axes) -> dict[Clique, Floats]:
    """Return, for the variables of each rule's columns, −∞ where no record can be and 0 elsewhere.

    It is a function of the schema and of groups, which are in the release: a reader of it finds the same cells.

    >>> from sundog.data.columns import IntegerColumn
    >>> from sundog.models.marginals.variable import Variable
    >>> ages = {name: {"type": "integer", "min": 0, "max": 1} for name in "ab"}
    >>> schema = Schema.from_dict({"columns": ages, "rules": ["a <= b"]})
    >>> one = Variable(IntegerColumn(min=0, max=1), np.array([0, 1]), np.array([0.5, 0.5]))
    >>> find_impossible(schema, Axes({"a": one, "b": one}, {}))[0, 1].tolist()
    [[0.0, 0.0], [-inf, 0.0]]

    Args:
        schema: with rules about scalar columns that are not derived.
        axes: of the scalar columns.
    """
    rules = schema.bind_rules().rules
    if not rules:
        return {}
    scattered = {
        name for name, each in axes.coarse.items() if sum(len(cell.ranges) for cell in each.cells) > _MOST_RANGES
    }
    tree = GrowingTree(axes.sizes, [], _MOST_OF_ALL)
    found: dict[Clique, Floats] = {}
    for _, rule in rules:
        names = sorted(rule.names, key=axes.names.index)
        is_fine = next((fine for fine in (True, False) if _has_room(axes, names, tree, found, is_fine=fine)), None)
        if is_fine is None or not scattered.isdisjoint(names):
            continue
        variables, clique = axes.fine if is_fine else axes.coarse, axes.find_clique(names, coarse=not is_fine)
        possible = rule.possible({name: variables[name].cells for name in rule.names})
        with np.errstate(divide="ignore"):
            factor = np.log(possible.transpose([rule.names.index(name) for name in names]))
        found[clique] = found.get(clique, 0.0) + (
            axes.spread(factor, names, absent=-math.inf)[1] if is_fine else factor
        )
    # Rules that exclude every record are left to the sampler, which names the one that is to blame.
    subgroups = axes.weigh_subgroups()
    is_empty = math.isinf(calibrate(eliminate(axes.sizes, [*found, *subgroups]), found, subgroups).log_partition)
    return {} if is_empty else found


def _has_room(
    axes: Axes, names: Sequence[str], tree: GrowingTree, found: Mapping[Clique, Floats], *, is_fine: bool
) -> bool:
    """Return whether a rule about some columns fits by their subgroups, or by their groups, and add it to the tree."""
    variables, clique = axes.fine if is_fine else axes.coarse, axes.find_clique(names, coarse=not is_fine)
    cells = math.prod(variables[name].size for name in names)
    return cells <= _MOST_CELLS and (clique in found or tree.add(clique))
