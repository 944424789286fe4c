"""How rare records are: minus the logarithm of their probability if all columns were independent.

Rare records are those that a model may remember. Rarity is measured among the candidates, members or not, so that it
says nothing about membership.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.auditing.array_components import ArrayComponents
from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.evaluation.tables.table_pair import choose_bins

Floats = npt.NDArray[np.float64]

RAREST = 500  # records of a fold that attacks on rare records guess about
_LARGEST_SHARE = 0.2  # of the candidates
_LEAST = 1e-6  # the share of an item that no set holds


def compute_rarity(records: Records) -> Floats:
    """Return the rarity of each record among all.

    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}})
    >>> compute_rarity(Records(schema, {"sex": np.array([0, 0, 0, 1])}, 4)).round(2).tolist()
    [0.29, 0.29, 0.29, 1.39]
    """
    total = np.zeros(len(records))
    for name, column in records.schema.scalars.items():
        bins = choose_bins(column).to_bins(records.codes[name])
        total -= np.log(np.bincount(bins)[bins] / len(records))
    for name in [name for name, column in records.schema.columns.items() if column.shape]:
        is_set = records.schema.columns[name].form is Form.SET
        total += _measure_sets(records.codes[name]) if is_set else _measure_arrays(name, records)
    return total


def find_rarest(records: Records) -> npt.NDArray[np.int64]:
    """Return the places of the rarest records: at most `RAREST`, and at most a fifth of all."""
    count = min(RAREST, max(1, int(_LARGEST_SHARE * len(records))))
    return np.sort(np.argsort(-compute_rarity(records), kind="stable")[:count])


def _measure_sets(sets: Any) -> Floats:
    """Return the rarity of sets whose items are independent."""
    from scipy import sparse

    matrix = sparse.csr_array(sets).astype(np.float64)
    shares = np.clip(np.asarray(matrix.mean(axis=0)).ravel(), _LEAST, 1 - _LEAST)
    return np.asarray(-np.log1p(-shares).sum() - matrix @ (np.log(shares) - np.log1p(-shares)))


def _measure_arrays(name: str, records: Records) -> Floats:
    """Return the rarity of arrays under a normal distribution of their principal components."""
    components = ArrayComponents(name, records).encode(records).astype(np.float64)
    variances = components.var(axis=0)
    kept = variances > variances.max(initial=0.0) * 1e-9
    centred = components[:, kept] - components[:, kept].mean(axis=0)
    return np.asarray((centred**2 / variances[kept]).sum(axis=1) / 2)
