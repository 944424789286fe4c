"""Cells that no record can be in, by the rules of the schema: the model gives them probability zero.

A cell is a combination of groups of values. Where only some of its records satisfy a rule, the cell is possible, and
records that break the rule are drawn again (release/rejection_sampling.py). So are all that break a rule about more
cells than are listed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sundog.data.schema import Schema
from sundog.models.marginals.bucket_tree import Clique, GrowingTree, eliminate
from sundog.models.marginals.inference import Floats, calibrate
from sundog.models.marginals.variable import Variable

_MOST_CELLS = 2**14  # of the columns of one rule
_MOST_RANGES = 2**12  # of values, of all groups of a column: rare categories are one group, however scattered
_MOST_OF_ALL = 2**17  # of the bucket tree of all rules


def find_impossible(schema: Schema, variables: Mapping[str, Variable]) -> dict[Clique, Floats]:
    """Return, for the columns of each rule, −∞ where no record can be and 0 elsewhere.

    It is a function of the schema and of groups, which are in the release: a reader of it finds the same cells.

    >>> from sundog.data.columns import IntegerColumn
    >>> ages = {name: {"type": "integer", "min": 0, "max": 1} for name in "ab"}
    >>> schema = Schema.from_dict({"columns": ages, "rules": ["a <= b"]})
    >>> one = Variable(IntegerColumn(min=0, max=1), np.array([0, 1]), np.array([0.5, 0.5]))
    >>> find_impossible(schema, {"a": one, "b": one})[0, 1].tolist()
    [[0.0, 0.0], [-inf, 0.0]]

    Args:
        schema: with rules about scalar columns that are not derived.
        variables: the scalar columns.
    """
    rules = schema.bind_rules().rules
    if not rules:
        return {}
    places = {name: place for place, name in enumerate(variables)}
    sizes = [variable.size for variable in variables.values()]
    scattered = {
        name for name, each in variables.items() if sum(len(cell.ranges) for cell in each.cells) > _MOST_RANGES
    }
    tree = GrowingTree(sizes, [], _MOST_OF_ALL)
    found: dict[Clique, Floats] = {}
    for _, rule in rules:
        clique = tuple(sorted(places[name] for name in rule.names))
        if math.prod(sizes[v] for v in clique) > _MOST_CELLS or any(name in scattered for name in rule.names):
            continue
        if clique not in found and not tree.add(clique):
            continue
        possible = rule.possible({name: variables[name].cells for name in rule.names})
        with np.errstate(divide="ignore"):
            factor = np.log(possible.transpose(np.argsort([places[name] for name in rule.names])))
        found[clique] = found.get(clique, 0.0) + factor
    # Rules that exclude every record are left to the sampler, which names the one that is to blame.
    return {} if math.isinf(calibrate(eliminate(sizes, found), found).log_partition) else found
