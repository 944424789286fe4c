"""What every rule between columns promises: which columns it is about, and which records satisfy it.

A rule as it is declared (`Rule`) knows names and values; bound to columns (`BoundRule`) it knows codes, and works on
whole arrays of them. Some rules say what a column is, given others (`Derivation`): such a column is not learned by any
model, and is computed for each sampled record.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, StrictBool, StrictFloat, StrictInt, StrictStr

from sundog.data.code_set import CodeSet
from sundog.data.columns import AnyColumn, Column, Form, OrderedColumn, ScalarColumn
from sundog.data.columns.arrow import Mask
from sundog.data.validation_errors import format_value, suggest
from sundog.errors import DataError

Codes = Mapping[str, NDArray[Any]]  # the codes of each scalar column
Cells = Mapping[str, Sequence[CodeSet]]  # disjoint sets of codes of each column of a rule, such as its bins

_ROW = re.compile(r"^: row \d+:? *")  # which begins an error about one of several values
_LONG = 100  # characters of a rule that an error message has room for


def _to_plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


Value = Annotated[StrictStr | StrictBool | StrictInt | StrictFloat | None, BeforeValidator(_to_plain)]
"""A value of a column as it is written in a schema; None for a missing one."""


@dataclass(frozen=True)
class Domain:
    """The columns that rules are about.

    Args:
        columns: all columns of the schema.
        nulls: the texts that mean "missing".
    """

    columns: Mapping[str, AnyColumn]
    nulls: Sequence[str] = ("",)

    def scalar(self, name: str) -> ScalarColumn:
        """Return a column with one value a record whose values are all known; a ValueError says why it is none."""
        column = self.columns.get(name)
        if column is None:
            raise ValueError(f"there is no column {name!r}; {suggest(name, self.columns)}")
        if column.form is not Form.SCALAR:
            raise ValueError(f"column {name!r} holds {column.form.plural}; rules are about single values")
        if not column.complete:
            raise ValueError(
                f"column {name!r} is to be learned; declare it: rules are checked before anything is spent"
            )
        return column

    def numeric(self, name: str) -> OrderedColumn:
        """Return a column of numbers or times."""
        column = self.scalar(name)
        if not column.is_numeric:
            raise ValueError(f"column {name!r} is {column.type}; name a column of numbers or times")
        numeric = cast(OrderedColumn, column)
        if not numeric.is_written_exactly:
            raise ValueError(f"the format of column {name!r} is coarser than its resolution; make both the same")
        return numeric

    @staticmethod
    def check_several(names: Sequence[str]) -> None:
        """Raise ValueError unless there are two columns at least, each named once."""
        if len(names) < 2:
            raise ValueError("is about one column; name two or more")
        if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
            raise ValueError(f"names column {twice!r} twice; name each once")

    def encode(self, name: str, values: Sequence[Any]) -> NDArray[np.int64]:
        """Return the codes of declared values; None and the spellings of `nulls` are the missing value.

        >>> from sundog.data.columns import CategoricalColumn
        >>> Domain({"sex": CategoricalColumn(values=["f", "m"], nullable=True)}).encode("sex", ["m", None]).tolist()
        [1, 2]
        """
        column = self.scalar(name)
        missing = column.find_null_spellings(self.nulls)
        given = [None if isinstance(value, str) and column.nullable and value in missing else value for value in values]
        if None in given and not column.nullable:
            raise ValueError(f"column {name!r} is not nullable; leave out the missing value, or make it nullable")
        refusal = ""
        for reader in column.tighten().list_readings():  # of which one must read them all
            try:
                return reader.encode(given, where="").astype(np.int64)
            except DataError as error:
                refusal = refusal or _ROW.sub("", str(error)).partition(";")[0]
        raise ValueError(f"column {name!r}: {refusal}; use values that the column declares")


class Rule(BaseModel, ABC):
    """A rule as it is declared. Subclasses are frozen, and each is one kind of rule."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @property
    def derived(self) -> str | None:
        """The column whose values follow from those of the others, if there is one."""
        return None

    @property
    def size(self) -> int:
        """How many values it lists."""
        return 0

    @abstractmethod
    def to_dict(self) -> Any:
        """Return it as plain JSON-able data."""

    def to_yaml(self) -> Any:
        """Return it as a schema file has it, where that is not the same as JSON."""
        return self.to_dict()

    @abstractmethod
    def __str__(self) -> str:
        """Describe it in one line."""

    @property
    def short(self) -> str:
        """The description, cut short for a message."""
        text = str(self)
        return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"

    @abstractmethod
    def bind(self, domain: Domain) -> BoundRule:
        """Return the rule for the codes of these columns; raise ValueError where it does not fit them."""


class BoundRule(ABC):
    """A rule over the codes of its columns.

    Args:
        names: the columns that it is about, each once.
    """

    names: tuple[str, ...]

    @abstractmethod
    def holds(self, codes: Codes) -> Mask:
        """Return which records satisfy it."""

    def possible(self, cells: Cells) -> Mask:
        """Return for each combination of cells whether some record in it may satisfy the rule.

        The answer is conservative: a combination that is marked as possible may have no such record, but one that is
        not marked has none. So a model can give probability 0 to all cells that are not marked.

        Args:
            cells: disjoint sets of codes of each column of `names`.

        Returns:
            An array with an axis for each column, in the order of `names`.
        """
        return np.ones([len(cells[name]) for name in self.names], bool)

    def find_contradiction(self) -> str | None:
        """Return why no record can satisfy it, or why it is none that can be kept; None where it is sound."""
        return None


class Derivation(BoundRule):
    """A rule that says what a column is, given others: `names` begins with that column."""

    @property
    def derived(self) -> str:
        """The column that is computed."""
        return self.names[0]

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it is computed from."""
        return self.names[1:]

    @property
    def may_fail(self) -> bool:
        """Whether there are records for which the derived column has no value."""
        return False

    @abstractmethod
    def derive(self, codes: Codes) -> tuple[NDArray[Any], Mask]:
        """Return the codes of the derived column, and which records have one: the others are to be drawn again."""

    def translate(self, allowed: CodeSet) -> CodeSet | None:  # noqa: ARG002
        """Return the codes of the only source for which the derived code is allowed; None if that is no such set."""
        return None


def quote(name: str) -> str:
    """Return the name of a column as texts of rules have it: in quotes, unless it is a plain word.

    >>> quote("age"), quote("hours per week")
    ('age', '"hours per week"')
    """
    return name if name.isidentifier() else f'"{name}"'


def show(value: Any) -> str:
    """Return a value of a rule in few letters."""
    return "missing" if value is None else str(value) if isinstance(value, str) else format_value(value)


def split_nulls(column: Column, codes: Any) -> tuple[NDArray[Any], Mask]:
    """Return codes with some other code in place of null, and which of them are null."""
    codes = np.asarray(codes)
    if column.null_code is None:
        return codes, np.zeros(codes.shape, bool)
    null = codes == column.null_code
    return np.where(null, 0, codes), null


def whole(column: Column) -> CodeSet:
    """Return all codes of a column, that of null included."""
    return CodeSet.between(0, column.size - 1)
