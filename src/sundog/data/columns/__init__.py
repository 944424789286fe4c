"""The column types, one file each: pure functions between values and codes, and all else that depends on the type.

To add a type of your own, derive a class from `ScalarColumn`, `OrderedColumn` or another base class, and pass it to
`register_column_type`. The types of this package are listed in `AnyColumn`.
"""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, TypeVar, get_args

from pydantic import Field, TypeAdapter, ValidatorFunctionWrapHandler, WrapValidator

from sundog.data.columns.boolean import BooleanColumn
from sundog.data.columns.categorical import CategoricalColumn
from sundog.data.columns.column import Column
from sundog.data.columns.continuous import ContinuousColumn
from sundog.data.columns.datetime import DatetimeColumn
from sundog.data.columns.forms import Form, Scale, Unknown
from sundog.data.columns.image import ImageColumn
from sundog.data.columns.integer import IntegerColumn
from sundog.data.columns.listed import ListedColumn
from sundog.data.columns.ordered import OrderedColumn
from sundog.data.columns.ordinal import OrdinalColumn
from sundog.data.columns.scalar import ScalarColumn
from sundog.data.columns.series import SeriesColumn
from sundog.data.columns.set import SetColumn

_Column = TypeVar("_Column", bound=Column)


def _validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Return a column of a built-in or a registered type."""
    return _build_adapter(tuple(list_column_types().values())).validate_python(value) if _REGISTERED else handler(value)


@cache
def _build_adapter(kinds: tuple[type[Column], ...]) -> TypeAdapter[Column]:
    union: Any = reduce(or_, kinds)
    return TypeAdapter(Annotated[union, Field(discriminator="type")])


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
    WrapValidator(_validate),
]

_REGISTERED: dict[str, type[Column]] = {}
_BUILT_IN: dict[str, type[Column]] = {
    kind.model_fields["type"].default: kind for kind in get_args(get_args(AnyColumn)[0])
}


def list_column_types() -> dict[str, type[Column]]:
    """Return all column types by the names that schemas give them."""
    return {**_BUILT_IN, **_REGISTERED}


def register_column_type(kind: type[_Column]) -> type[_Column]:
    """Make schemas accept a column type, named by the default of its `type`; also usable as a class decorator."""
    name = kind.model_fields["type"].default
    if not isinstance(name, str) or name in _BUILT_IN:
        raise ValueError(f"a column type needs a new name as the default of `type`, got {name!r}")
    _REGISTERED[name] = kind
    return kind


__all__ = [
    "AnyColumn",
    "BooleanColumn",
    "CategoricalColumn",
    "Column",
    "ContinuousColumn",
    "DatetimeColumn",
    "Form",
    "ImageColumn",
    "IntegerColumn",
    "ListedColumn",
    "OrderedColumn",
    "OrdinalColumn",
    "ScalarColumn",
    "Scale",
    "SeriesColumn",
    "SetColumn",
    "Unknown",
    "list_column_types",
    "register_column_type",
]
