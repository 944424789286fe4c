"""True or false."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import model_validator

from sundog.data.columns.arrow import Mask
from sundog.data.columns.containers import to_python, unwrap_one
from sundog.data.columns.forms import Scale
from sundog.data.columns.frame_dtypes import TEXT
from sundog.data.columns.number_parsing import parse_number_unless_code
from sundog.data.columns.scalar import ScalarColumn
from sundog.data.columns.time_parsing import Time
from sundog.data.columns.value_kinds import spell_number
from sundog.data.validation_errors import format_value

_SPELLINGS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), 1),
    **dict.fromkeys(("false", "f", "no", "n", "0"), 0),
}


class BooleanColumn(ScalarColumn):
    """True or false: code 1 or 0. The usual spellings are understood in text; `true` and `false` declare others.

    >>> smoker = BooleanColumn(true="ja", false="nein")
    >>> smoker.encode(pa.array(["ja", "nein", "True"]), where="survey.csv: column 'smoker'").tolist()
    [1, 0, 1]
    >>> smoker.decode([1, 0]).to_pylist()
    [True, False]
    """

    scale: ClassVar[Literal[Scale.BINARY]] = Scale.BINARY
    distinct: ClassVar[bool] = True

    type: Literal["boolean"] = "boolean"
    true: str = "true"
    false: str = "false"

    @property
    def lattice_size(self) -> int:
        """Two: false and true."""
        return 2

    @model_validator(mode="after")
    def _check_declaration(self) -> Self:
        if _normalize(self.true) == _normalize(self.false):
            raise ValueError(f"true and false are both spelled {format_value(self.true)}; spell them differently")
        if self.learn:
            raise ValueError("a boolean column has nothing to learn; remove `learn`")
        return self

    @property
    def declared_texts(self) -> Sequence[Any]:
        """Both spellings."""
        return [self.true, self.false]

    @property
    def possible_dtypes(self) -> tuple[str, ...]:
        """Booleans, categories and text."""
        return ("bool", "boolean", "category", *TEXT)

    @property
    def is_respelled(self) -> bool:
        """Whether the schema declares spellings: the data holds text then, and text is written."""
        return (self.true, self.false) != ("true", "false")

    def spell(self, values: Any) -> Any:
        """Return decoded values as text that `encode` maps back to the same codes."""
        return pc.if_else(values, self.true, self.false)

    @cached_property
    def _code_of(self) -> Mapping[str, int]:
        return {**_SPELLINGS, _normalize(self.true): 1, _normalize(self.false): 0}

    def _encode_array(self, values: Any) -> tuple[NDArray[Any], Mask]:
        codes = np.array([self._find(value) for value in to_python(values)], np.int64)
        return codes, codes < 0

    def _find(self, value: Any) -> int:
        """Return the code of one value, or -1.

        Among numbers a boolean becomes 1, among texts "True", so it is refused if these have another meaning.
        """
        if value is None or isinstance(value, Time):
            return -1
        texts = [value] if isinstance(value, str) else [spell_number(value)]
        if isinstance(value, bool):
            texts.append(str(value))
        codes = {self._code_of.get(_normalize(text), -1) for text in texts}
        return -1 if isinstance(value, bool) and codes != {int(value)} else codes.pop()

    def _decode_array(self, codes: NDArray[Any], null: Mask | None) -> Any:
        return pa.array(codes == 1, mask=null)

    def _explain_refusal(self, one: Any) -> str:
        value = unwrap_one(one)
        if isinstance(value, bool):
            return f"{value} is ambiguous with the declared spellings {self.true} and {self.false}; give those instead"
        fix = "fix it, or declare the spellings `true` and `false`"
        return f"{format_value(value)} is neither {self.true} nor {self.false}; {fix}"


def _normalize(text: str) -> str:
    """Return a text in the form that is compared: lower case, numbers in their canonical spelling (1.0 is 1)."""
    number = parse_number_unless_code(text.strip())
    return text.strip().casefold() if number is None else spell_number(number)
