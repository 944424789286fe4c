"""Where the features of a schema are, by arithmetic alone: nothing is allocated, whatever a schema declares."""

from __future__ import annotations

from sundog.data.columns import Form
from sundog.data.schema import Schema


class Layout:
    """The order of features: cells of scalars, items of sets, intensities of arrays, and marks of missing ones.

    >>> schema = Schema.from_dict({"columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}})
    >>> Layout(schema).width
    2
    """

    def __init__(self, schema: Schema) -> None:
        columns = schema.columns
        sets = {name: column for name, column in columns.items() if column.form is Form.SET}
        arrays = {name: column for name, column in columns.items() if column.form in (Form.IMAGE, Form.SERIES)}
        # Those with gaps come first, so that intensity i may be missing if there is a gap i.
        arrays = dict(sorted(arrays.items(), key=lambda item: not item[1].nullable))
        self.cells = {name: column.feature_count for name, column in schema.scalars.items()}
        self.items = {name: column.feature_count for name, column in sets.items()}
        self.levels = {name: column.feature_count for name, column in arrays.items()}
        missing = {name: size for name, size in self.levels.items() if arrays[name].nullable}
        self.places = _cut_slices(0, {**self.cells, **self.items, **self.levels})
        self.first_level = sum(self.cells.values()) + sum(self.items.values())
        self.first_gap = self.first_level + sum(self.levels.values())
        self.gaps = _cut_slices(self.first_gap, missing)
        self.width = self.first_gap + sum(missing.values())

    def at(self, name: str | None) -> slice:
        """Return the features of a column; an empty slice for None."""
        return slice(0, 0) if name is None else self.places[name]

    def count(self, name: str | None) -> int:
        """Return the number of features of a column; 0 for None."""
        at = self.at(name)
        return int(at.stop - at.start)


def _cut_slices(start: int, sizes: dict[str, int]) -> dict[str, slice]:
    found = {}
    for name, size in sizes.items():
        found[name] = slice(start, start + size)
        start += size
    return found
