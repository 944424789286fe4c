"""What categorical and ordinal columns share: a declared list of values with their spelling and type."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import (
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    field_validator,
    model_validator,
)

from sundog.data.columns.arrow import Mask
from sundog.data.columns.containers import ROUNDED, spell_values, to_python, unwrap_one
from sundog.data.columns.forms import Unknown
from sundog.data.columns.frame_dtypes import NUMBERS, REALS, TEXT, find_number_problem
from sundog.data.columns.number_parsing import (
    EXACT,
    INT64_MAX,
    INT64_MIN,
    parse_integer,
    parse_number,
    parse_number_unless_code,
)
from sundog.data.columns.scalar import ScalarColumn
from sundog.data.columns.time_parsing import Time, parse_iso
from sundog.data.columns.value_kinds import spell_value
from sundog.data.validation_errors import describe_value, format_value, suggest


def _check_value(value: Any) -> Any:
    if value is None:
        raise ValueError(
            "an empty value is not a category; remove it and declare `nullable: true`, or put it in quotes"
        )
    if not isinstance(value, (str, bool, int, float)):
        raise ValueError(
            f"a category must be text, a number or a boolean, got {describe_value(value)}; write it as one"
        )
    return value


UNDECLARED = "(not declared)"  # the category of values that are not declared, in data of another tool
Value = Annotated[StrictStr | StrictBool | StrictInt | StrictFloat, BeforeValidator(_check_value)]


class ListedColumn(ScalarColumn):
    """One of a declared list of values."""

    unknown: ClassVar[Literal[Unknown.VALUES]] = Unknown.VALUES
    distinct: ClassVar[bool] = True

    values: Annotated[tuple[Value, ...], Field(fail_fast=True)] | None = None
    undeclared: Literal["error", "other"] = "error"
    other: Value | None = None

    @property
    def complete(self) -> bool:
        """Whether the values are known."""
        return self.values is not None

    @property
    def lattice_size(self) -> int:
        """The number of values."""
        return len(self._known)

    def declare_learned(self) -> Self:
        """Return the column without `learn`; values that were not learned still become `other`, if it is declared."""
        policy = {} if self.other is None else {"undeclared": "other"}
        return self.replace(learn=False, **policy)

    # --- learning ---

    def to_learning_input(self, values: Any, *, where: str) -> Counter[str]:
        """Return the count of each spelling.

        The spelling of a value does not depend on other records, so it may be published.
        """
        counts: Counter[str] = Counter()
        for chunk in self._iter_chunks(values, where):
            for pair in spell_values(chunk, where=where).drop_null().value_counts().to_pylist():
                counts[pair["values"]] += pair["counts"]
        return counts

    def complete_with(self, answer: Any) -> Self:
        """Return the column with the values that were found and a catch-all category."""
        other = "other" if self.other is None else self.other
        values = [str(value) if isinstance(other, str) else value for value in answer]  # one column, one type
        return self.replace(values=[*values, *([] if other in values else [other])], other=other)

    @property
    def has_nothing_learned(self) -> bool:
        """Whether values were learned but none was found: all records are in the catch-all category."""
        return self.learn and self.values == (self.other,)

    # --- sources, dtypes ---

    @property
    def declared_texts(self) -> Sequence[Any]:
        """The values."""
        return self.values or ()

    @property
    def reads_text(self) -> bool:
        """Whether the values are text, as learned values always are."""
        return self.values is None or isinstance(self.values[0], str)

    def misreads_text(self, nulls: Sequence[str]) -> bool:  # noqa: ARG002
        """Return True: a number may have several spellings, and numpy writes only one."""
        return True

    def tighten(self) -> Self:
        """Return the column without a catch-all category: values that are not listed are refused."""
        return self.model_copy(update={"learn": False, "undeclared": "error", "other": None})

    def _list_relaxed_keys(self) -> dict[str, Any]:
        if self.values is None or self.undeclared != "error":
            return {}
        values = tuple(str(value) for value in self.values)
        other = UNDECLARED
        while other in values:
            other += "*"
        return {"values": (*values, other), "undeclared": "other", "other": other}

    @property
    def possible_dtypes(self) -> tuple[str, ...]:
        """Categories, text, and the type of the values."""
        kind = type((self.values or ("",))[0])
        typed: dict[type, tuple[str, ...]] = {int: tuple(NUMBERS), float: REALS, bool: ("bool", "boolean")}
        return (*typed.get(kind, ()), "category", *TEXT)

    @property
    def unlearned_dtype(self) -> str | None:
        """Text, as learned values are."""
        return "str"

    def _find_limit_problem(self, name: str) -> str | None:
        return find_number_problem(name, self.values or ()) if name in NUMBERS else None

    # --- declaration ---

    @field_validator("values")
    @classmethod
    def _check_values(cls, values: tuple[Value, ...] | None) -> tuple[Value, ...] | None:
        if values is None:
            return None
        if not values:
            raise ValueError("values is empty; list the categories, or say `learn: true` and leave values out")
        kinds = {type(value) for value in values}
        if int in kinds and not all(INT64_MIN <= value <= INT64_MAX for value in values if isinstance(value, int)):
            raise ValueError("values holds a number beyond 64 bits; quote them all to make them text")
        if kinds == {int, float}:
            values, kinds = tuple(float(value) for value in values), {float}
        if len(kinds) > 1:
            raise ValueError("values mixes types; quote them all to make them text")
        seen: set[Value] = set()
        for value in values:
            if value in seen:
                raise ValueError(f"values lists {format_value(value)} twice; keep one")
            seen.add(value)
        return values

    @model_validator(mode="after")
    def _check_declaration(self) -> Self:
        if self.values is None and not self.learn:
            raise ValueError(
                "values is missing; list the categories, or say `learn: true` to learn them within the budget"
            )
        if self.learn and self.other is not None and not isinstance(self.other, str):
            raise ValueError("`other` of a column that is learned must be text; quote it")
        if self.undeclared == "other" and self.other is None and not self.learn:
            raise ValueError("undeclared is other, but `other` does not name the category to use; name it")
        if self.other is not None and self.undeclared != "other" and not self.learn:
            raise ValueError("`other` is named, but undeclared values are errors; say `undeclared: other`")
        if self.other is not None and self.values is not None and self.other not in self.values:
            raise ValueError(f"other ({format_value(self.other)}) is not one of the values; add it to them")
        return self

    @property
    def _known(self) -> tuple[Value, ...]:
        if self.values is None:
            raise ValueError("the values of this column must be learned first")
        return self.values

    @cached_property
    def _code_of(self) -> Mapping[Value, int]:
        return {value: code for code, value in enumerate(self._known)}

    @cached_property
    def _code_of_number(self) -> Mapping[float, int]:
        """The code of the declared text for each number: its canonical spelling first, then any other (0.50, True)."""
        found: dict[float, int] = {}
        for text, code in self._code_of.items():
            if (number := parse_number_unless_code(str(text))) is not None and (
                number not in found or spell_value(number) == text
            ):
                found[number] = code
        for text, number in (("True", 1), ("true", 1), ("False", 0), ("false", 0)):
            if text in self._code_of:
                found.setdefault(number, self._code_of[text])
        return found

    @property
    def respells(self) -> bool:
        """Whether whole numbers stand for declared texts that spell them differently: 1 for "1.0" or "true"."""
        if self.values is None or not isinstance(self.values[0], str):
            return False
        found = self._code_of_number.items()
        return any(number % 1 == 0 and spell_value(number) != self.values[code] for number, code in found)

    @cached_property
    def _code_of_time(self) -> Mapping[Time, int]:
        """The code of the declared text for each time."""
        micros, aware, bad = parse_iso(pa.array([str(text) for text in self._code_of], pa.string()))
        times = zip(micros.tolist(), aware.tolist(), strict=True)
        return {Time(*time): code for code, time in reversed(list(enumerate(times))) if not bad[code]}

    def _encode_array(self, values: Any) -> tuple[NDArray[Any], Mask]:
        fallback = -1 if self.other is None else self._code_of[self.other]
        found = (self._find(value) for value in to_python(values))
        codes = np.array([fallback if code is None else code for code in found], np.int64)
        return codes, codes < 0

    def _find(self, value: Any) -> int | None:
        """Return the code of one value; None if it is not declared, -1 if it is a float too large to be exact."""
        kind = type(self._known[0])
        if isinstance(value, str):
            return self._code_of.get(_parse_as(value, kind))
        if isinstance(value, Time):
            return self._code_of_time.get(value) if kind is str else None
        if value is None:
            return None
        if isinstance(value, float) and EXACT <= abs(value) < math.inf and kind is not float:
            return -1
        number = float(value) if kind is float else value
        return (self._code_of_number if kind is str else self._code_of).get(number)

    def _decode_array(self, codes: NDArray[Any], null: Mask | None) -> Any:
        index = pa.array(codes.astype(np.int64), mask=null)
        return pa.array(list(self._known)).take(index)

    def _explain_refusal(self, one: Any) -> str:
        value = unwrap_one(one)
        if self._find(value) == -1:
            return f"{format_value(value)}: {ROUNDED}"
        plain = {str(known).strip().casefold(): known for known in self._known}
        near = plain.get(str(value).strip().casefold())
        if near is not None:
            differs = "stray whitespace" if str(value).strip() == str(near).strip() else "upper and lower case"
            return f"{format_value(value)} is not a declared value, but {format_value(near)} is; check {differs}"
        near = suggest(value, [known for known in self._known[:10] if isinstance(known, str)])
        fix = "add it to values, fix the row or declare `undeclared: other`"
        return f"{format_value(value)} is not a declared value; {near if near.startswith('did') else fix}"


def _parse_as(text: str, kind: type) -> Any:
    """Parse a text as the type of the declared values; None if it is not one."""
    if kind is str:
        return text
    if kind is bool:
        return {"true": True, "false": False}.get(text.strip().lower())
    return parse_integer(text) if kind is int else parse_number(text)
