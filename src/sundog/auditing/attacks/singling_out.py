"""Singling out (after Giomi et al. 2023): pairs of values that only one candidate has, and that the release shows.

Two values, or two items of a set, that single out a rare candidate among all candidates are looked for in the synthetic
records. If the model remembers records, the values of members are found more often than those of non-members.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.rarity import find_rarest
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.data.schema import Schema

Integers = npt.NDArray[np.int64]

_MOST_PAIRS = 300  # of columns
_MOST_ITEMS = 2000  # of a set


class SinglingOut(Attack):
    """How many pairs of values that single out a rare candidate stand in the synthetic records."""

    name: ClassVar[str] = "singling-out"
    description: ClassVar[str] = (
        "how many pairs of values or items that only this candidate has are in the synthetic records, for the rarest"
    )
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC})

    def find_obstacle(self, threat: ThreatModel, schema: Schema) -> str | None:  # noqa: ARG002
        """Return that there are no pairs of columns or items, if so."""
        if len(schema.scalars) > 1 or _list_sets(schema):
            return None
        return "there are no two columns of single values, and no sets"

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:
        """Return the number of pairs; NaN for all but the rarest candidates."""
        rarest = find_rarest(candidates)
        found = _count_value_pairs(candidates, threat.synthetic, rarest, rng)
        for name in _list_sets(candidates.schema):
            found += _count_item_pairs(candidates.codes[name], threat.synthetic.codes[name], rarest)
        scores = np.full(len(candidates), np.nan)
        scores[rarest] = found
        return scores


def _list_sets(schema: Schema) -> list[str]:
    return [name for name, column in schema.columns.items() if column.form is Form.SET]


def _count_value_pairs(candidates: Records, synthetic: Records, rarest: Integers, rng: np.random.Generator) -> Floats:
    """Return how many pairs of values of each rare candidate no other candidate has, but a synthetic record."""
    found = np.zeros(len(rarest))
    pairs = list(combinations(candidates.schema.scalars, 2))
    chosen = rng.choice(len(pairs), min(_MOST_PAIRS, len(pairs)), replace=False) if pairs else np.empty(0, np.int64)
    for first, second in (pairs[place] for place in chosen.tolist()):
        size = np.int64(candidates.schema.columns[second].size)
        if candidates.schema.columns[first].size > np.iinfo(np.int64).max // size:
            continue  # a pair of values has no number
        ours, theirs = (_number_pairs(records, first, second, size) for records in (candidates, synthetic))
        _, inverse, counts = np.unique(ours, return_inverse=True, return_counts=True)
        single = counts[inverse][rarest] == 1
        found += single & np.isin(ours[rarest], theirs)
    return found


def _number_pairs(records: Records, first: str, second: str, size: np.int64) -> Integers:
    """Return a number for each pair of values."""
    return np.asarray(records.codes[first], np.int64) * size + np.asarray(records.codes[second], np.int64)


def _count_item_pairs(candidates: Any, synthetic: Any, rarest: Integers) -> Floats:
    """Return the same for pairs of items of sets; of many items, the least common are used."""
    usual = np.asarray(candidates.sum(axis=0)).ravel()
    held = np.flatnonzero(np.asarray(candidates[rarest].sum(axis=0)).ravel())
    items = held[np.argsort(usual[held], kind="stable")[:_MOST_ITEMS]]
    ours, theirs = (each[:, items].astype(np.float32) for each in (candidates, synthetic))
    single = (ours.T @ ours).toarray() == 1
    np.fill_diagonal(single, False)  # an item is no pair
    shown = (single & ((theirs.T @ theirs).toarray() > 0)).astype(np.float32)
    rare = ours[rarest].toarray()
    return np.asarray(((rare @ shown) * rare).sum(axis=1) / 2, np.float64)
