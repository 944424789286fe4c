"""The column types: one file each, all pure functions between values and codes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sundog.data.columns.base import Column, ScalarColumn
from sundog.data.columns.boolean import BooleanColumn
from sundog.data.columns.categorical import CategoricalColumn
from sundog.data.columns.continuous import ContinuousColumn
from sundog.data.columns.datetime import DatetimeColumn
from sundog.data.columns.image import ImageColumn
from sundog.data.columns.integer import IntegerColumn
from sundog.data.columns.listed import ListedColumn
from sundog.data.columns.ordered import OrderedColumn
from sundog.data.columns.ordinal import OrdinalColumn
from sundog.data.columns.series import SeriesColumn
from sundog.data.columns.set import SetColumn

AnyColumn = Annotated[
    CategoricalColumn
    | OrdinalColumn
    | BooleanColumn
    | IntegerColumn
    | ContinuousColumn
    | DatetimeColumn
    | ImageColumn
    | SeriesColumn
    | SetColumn,
    Field(discriminator="type"),
]

COLUMN_TYPES: dict[str, type[Column]] = {
    "categorical": CategoricalColumn,
    "ordinal": OrdinalColumn,
    "boolean": BooleanColumn,
    "integer": IntegerColumn,
    "continuous": ContinuousColumn,
    "datetime": DatetimeColumn,
    "image": ImageColumn,
    "series": SeriesColumn,
    "set": SetColumn,
}

__all__ = [
    "COLUMN_TYPES",
    "AnyColumn",
    "BooleanColumn",
    "CategoricalColumn",
    "Column",
    "ContinuousColumn",
    "DatetimeColumn",
    "ImageColumn",
    "IntegerColumn",
    "ListedColumn",
    "OrderedColumn",
    "OrdinalColumn",
    "ScalarColumn",
    "SeriesColumn",
    "SetColumn",
]
