"""Records from a calibrated bucket tree, by systematic sampling.

Variables are drawn in the reverse order of their elimination, each given its separator. Records that agree on the
separator form a group; within a group each value is drawn as often as its probability says, up to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.data.columns.arrow import find_smallest_dtype
from sundog.models.marginals.inference import Calibrated, Floats

Integers = npt.NDArray[np.int64]

_RADIX = 2**16  # numpy sorts 16 bits by radix, about ten times as fast as more bits


def draw_records(model: Calibrated, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return n records, one row a variable: (variables, n), in the smallest type that holds all values.

    >>> from sundog.models.marginals.bucket_tree import eliminate
    >>> from sundog.models.marginals.inference import calibrate
    >>> model = calibrate(eliminate((2,), []), {(0,): np.log([0.25, 0.75])})
    >>> int(draw_records(model, 8, np.random.default_rng(0)).sum())
    6
    """
    tree = model.tree
    drawn = np.zeros((len(tree.sizes), n), find_smallest_dtype(max(tree.sizes, default=1)))
    for variable in reversed(tree.order):
        group = np.zeros(n, np.int64)
        for axis in tree.separators[variable]:
            group *= tree.sizes[axis]
            group += drawn[axis]
        conditional = model.conditionals[variable].reshape(tree.sizes[variable], -1)
        drawn[variable] = _draw_in_groups(conditional, group, rng)
    return drawn


def _draw_in_groups(conditional: Floats, group: Integers, rng: np.random.Generator) -> Integers:
    """Return a value for each record, given p(value | group).

    The records of a group have one point each, evenly spaced between 0 and 1 from a random start; the values of a
    group divide the same interval by their probabilities.
    """
    n = len(group)
    shuffled = rng.permutation(n)
    order = shuffled[_sort_stably(group[shuffled], conditional.shape[1])]
    in_order = group[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=-1))
    counts = np.diff(starts, append=n)
    number = np.repeat(np.arange(len(starts)), counts)
    points = (np.arange(n) - starts[number] + rng.random(len(starts))[number]) / counts[number]
    shares = np.cumsum(conditional[:, in_order[starts]], axis=0).T  # (groups, values)
    shares /= shares[:, -1:]
    last = (shares < 1.0).sum(axis=1)  # the last value that is possible
    # All groups end to end: group g lies between g and g + 1.
    ends = (shares + np.arange(len(starts))[:, None]).ravel()
    found = np.searchsorted(ends, number + points, side="right") - number * conditional.shape[0]
    values = np.empty(n, np.int64)
    values[order] = np.minimum(found, last[number])  # where a point was rounded up to the end of its group
    return values


def _sort_stably(keys: Integers, size: int) -> npt.NDArray[np.intp]:
    """Return the stable order of keys below a size, 16 bits at a time."""
    order = np.argsort((keys % _RADIX).astype(np.uint16), kind="stable")
    while size > _RADIX:
        keys, size = keys // _RADIX, -(-size // _RADIX)
        order = order[np.argsort((keys[order] % _RADIX).astype(np.uint16), kind="stable")]
    return order
