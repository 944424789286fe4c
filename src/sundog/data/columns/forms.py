"""The properties of column types that models, measures and plots dispatch on."""

from __future__ import annotations

from enum import StrEnum


class Form(StrEnum):
    """The form of the value that a record holds in a column."""

    SCALAR = "scalar"  # one value
    IMAGE = "image"  # a grid of pixels
    SERIES = "series"  # numbers in order of time
    SET = "set"  # a subset of a universe of items

    @property
    def plural(self) -> str:
        """The name of several such values.

        >>> Form.IMAGE.plural, Form.SERIES.plural
        ('images', 'series')
        """
        return self.value if self is Form.SERIES else f"{self.value}s"


class Scale(StrEnum):
    """The level of measurement of a scalar column (Stevens 1946): what may be done with its codes."""

    NOMINAL = "nominal"  # compare for equality
    BINARY = "binary"  # compare for equality, between two values
    ORDINAL = "ordinal"  # sort
    INTERVAL = "interval"  # subtract


class Unknown(StrEnum):
    """What must be measured, within the budget, for a column with `learn: true`."""

    VALUES = "values"  # which values occur
    RANGE = "range"  # min and max of numbers
    EXTENT = "extent"  # the first and the last of a declared number of intervals
