"""Principal components of images and series: few numbers, in which records are compared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sundog.data.columns import Form
from sundog.data.records import Records, concatenate

Singles = npt.NDArray[np.float32]

COMPONENTS = 64
_LEARNED_FROM = 5000  # records
_ROWS = 1024  # at a time
_WINDOW = 20  # series are averaged over this part of their length, so that small shifts in time matter little


def scale_levels(name: str, records: Records) -> Singles:
    """Return the values of an image or series column from 0 to 1; a missing value counts as one half.

    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {"x": {"type": "image", "shape": [1, 2]}}})
    >>> scale_levels("x", Records(schema, {"x": np.array([[[0, 255]]])}, 1)).tolist()
    [[[0.0, 1.0]]]
    """
    column, codes = records.schema.columns[name], records.codes[name]
    levels = codes / np.float32(max(1, column.lattice_size - 1))
    return np.asarray(np.where(codes >= column.lattice_size, np.float32(0.5), levels), np.float32)


def thin_out(*parts: Records) -> Records:
    """Return at most 5,000 records of all parts, evenly spaced: some of each kind where kinds follow one another.

    The parts are not joined as a whole, which might be large.
    """
    step = -(-sum(map(len, parts)) // _LEARNED_FROM) or 1
    starts = np.cumsum([0, *map(len, parts[:-1])]).tolist()
    return concatenate([part.take(slice(-start % step, None, step)) for part, start in zip(parts, starts, strict=True)])


class ArrayComponents:
    """The components of one column.

    Args:
        name: of the column.
        known: records to learn the components from; of many, at most 5,000 are used, evenly spaced.
    """

    def __init__(self, name: str, known: Records) -> None:
        from sklearn.decomposition import PCA

        self.name, self.column = name, known.schema.columns[name]
        values = self._flatten(thin_out(known))
        self._fitted = PCA(min(COMPONENTS, *values.shape), random_state=0).fit(values)
        self._scale = float(np.sqrt(self._fitted.transform(values).var(axis=0).sum())) or 1.0

    def encode(self, records: Records) -> Singles:
        """Return the components of each record, with a total variance of 1 on the known records."""
        starts = range(0, max(1, len(records)), _ROWS)
        parts = [self._fitted.transform(self._flatten(records.take(slice(s, s + _ROWS)))) for s in starts]
        return np.ascontiguousarray(np.concatenate(parts) / self._scale, np.float32)

    def _flatten(self, records: Records) -> Singles:
        """Return one row of values for each record; those of series are smoothed."""
        levels = scale_levels(self.name, records).reshape(len(records), -1)
        if self.column.form is Form.SERIES:
            from scipy.ndimage import uniform_filter1d

            levels = uniform_filter1d(levels, max(1, levels.shape[1] // _WINDOW), axis=1, mode="nearest")
        return np.asarray(levels, np.float32)
