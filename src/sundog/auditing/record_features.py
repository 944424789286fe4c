"""Records of any columns as a matrix for trees: a column for each scalar, components for sets, images and series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.auditing.array_components import ArrayComponents
from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.evaluation.prediction.design_matrix import encode_ordinal

COMPONENTS = 32  # of sets


@dataclass(frozen=True)
class RecordFeatures:
    """Features whose components were learned from records that the attacker holds."""

    encoders: Sequence[Callable[[Records], npt.NDArray[Any]]]

    @classmethod
    def fit(cls, known: Records) -> RecordFeatures:
        """Learn the components of all columns that are not scalar.

        >>> from sundog.data.schema import Schema
        >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 9}}})
        >>> known = Records(schema, {"age": np.array([3, 1])}, 2)
        >>> RecordFeatures.fit(known).encode(known).tolist()
        [[3.0], [1.0]]
        """
        names = list(known.schema.scalars)
        encoders: list[Callable[[Records], npt.NDArray[Any]]] = []
        if names:
            encoders.append(lambda records: encode_ordinal(records, names))
        for name, column in known.schema.columns.items():
            if column.form is Form.SET:
                encoders.append(_fit_sets(name, known))
            elif column.shape:
                encoders.append(ArrayComponents(name, known).encode)
        return cls(encoders)

    def encode(self, records: Records) -> npt.NDArray[Any]:
        """Return one row for each record."""
        return np.concatenate([encoder(records) for encoder in self.encoders], axis=1)


def _fit_sets(name: str, known: Records) -> Callable[[Records], npt.NDArray[Any]]:
    """Return an encoder of sets: their sizes, and components of their items."""
    from sklearn.decomposition import TruncatedSVD

    def to_matrix(records: Records) -> Any:
        return records.codes[name].tocsr().astype(np.float32)

    items = to_matrix(known)
    if items.shape[1] <= COMPONENTS:
        return lambda records: np.asarray(to_matrix(records).toarray())
    fitted = TruncatedSVD(COMPONENTS, random_state=0).fit(items)

    def encode(records: Records) -> npt.NDArray[Any]:
        matrix = to_matrix(records)
        return np.column_stack([np.asarray(matrix.sum(axis=1)).ravel(), fitted.transform(matrix)])

    return encode
