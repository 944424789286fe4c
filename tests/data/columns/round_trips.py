"""Round trips through one column, and the messages of refused values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from sundog.data.columns import Column
from sundog.errors import DataError

WHERE = "t.csv: column 'c'"
INT64 = st.integers(-(2**63), 2**63 - 1)
FLOAT = st.floats(-1e9, 1e9)


def encode(column: Column, values: Any) -> Any:
    return column.encode(values, where=WHERE)


def round_trip(column: Column, values: Any) -> list[Any]:
    codes = encode(column, values)
    assert codes.dtype == column.dtype
    result: list[Any] = column.decode(codes).to_pylist()
    return result


def catch_message(column: Column, values: Any) -> str:
    with pytest.raises(DataError) as caught:
        encode(column, values)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{WHERE}: ")
    return message.removeprefix(f"{WHERE}: ")


def with_nulls(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | strategy, min_size=1, max_size=20)
