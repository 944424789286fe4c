"""Formats of numbers: texts are read by value, refused in another format, and written in the same one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundog.data.columns import ContinuousColumn, IntegerColumn
from sundog.data.columns.number_format import NumberFormat
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.data.schema_learning import prepare
from sundog.data.writing.frames import to_frame
from sundog.errors import DataError, SchemaError
from sundog.privacy.ledger import Ledger

EXAMPLES = [
    "1,234.50",
    "1234.000",
    "12.0",
    "1,234.5",
    "1.234,5",
    "1 234,5",
    "1'234.5",
    "$1,234.5",
    "1.234,5 €",
    "12.5%",
    "12,5",
    "USD 12.5",
    "12.5 kg",
]


@pytest.mark.parametrize(
    ("example", "texts", "values"),
    [
        ("1,234", ["1,234,567", "-12", "+7", "1234", " 5 "], [1_234_567, -12, 7, 1234, 5]),
        ("1.234", ["1.234.567", "12"], [1_234_567, 12]),
        ("1 234", ["1 234", "1\u00a0234", "1\u202f234 "], [1234, 1234, 1234]),
        ("$1,234", ["$1,234", "-$5", "$-5", "1,234", "$ 7"], [1234, -5, -5, 1234, 7]),
        ("12%", ["12%", "7 %", "5"], [12, 7, 5]),
    ],
)
def test_texts_are_read_as_the_example_shows(example: str, texts: list[str], values: list[int]) -> None:
    column = IntegerColumn(min=-(10**9), max=10**9, format=example)
    assert column.decode(column.encode(pa.array(texts), where="x")).to_pylist() == values
    typed = pa.array(values)
    assert column.decode(column.encode(typed, where="x")).to_pylist() == values


@pytest.mark.parametrize(
    ("example", "text"),
    [
        ("1,234", "1,23"),
        ("1,234", "12,34,567"),
        ("1.234,5", "1.5"),
        ("1,234.5", "1.234,5"),
        ("$1,234", "€5"),
        ("12%", "x"),
    ],
)
def test_what_is_written_otherwise_is_refused(example: str, text: str) -> None:
    for kind in (IntegerColumn, ContinuousColumn):
        column = kind(min=0, max=10**6, format=example)
        with pytest.raises(DataError) as caught:
            column.encode(pa.array(["1", text]), where="t.csv: column 'x'")
        assert f"row 2: {text!r} is not a" in str(caught.value)
        assert f"written as {example}" in str(caught.value)


def test_a_number_beyond_the_bounds_is_said_to_be() -> None:
    with pytest.raises(DataError, match=r"'1,234' is above max \(999\)"):
        IntegerColumn(min=0, max=999, format="1,234").encode(pa.array(["1,234"]), where="x")


@pytest.mark.parametrize("example", ["", "abc", "%d", "1,2,3", "1-2", "-5", "1;234", "1 2"])
def test_what_is_no_example_is_refused(example: str) -> None:
    with pytest.raises(SchemaError, match="is not an example of a number"):
        Schema.from_dict({"columns": {"x": {"type": "integer", "min": 0, "max": 9, "format": example}}})


@given(st.integers(-(10**12), 10**12), st.sampled_from(EXAMPLES))
def test_what_is_written_is_read_again(number: int, example: str) -> None:
    column = ContinuousColumn(min=-(10**10), max=10**10, resolution=0.01, format=example)
    value = pa.array([number / 100])
    text = column.spell(value)
    assert column.encode(text, where="x").tolist() == column.encode(value, where="x").tolist()
    form = NumberFormat.of(example)
    assert NumberFormat.of(form.make_example(whole=False)) == form


@pytest.mark.parametrize(
    ("example", "written"),
    [
        ("1,234.50", ["12,379.00", "0.10", "-7.25"]),
        ("1,234.5", ["12,379", "0.1", "-7.25"]),
        ("12.0", ["12379.0", "0.1", "-7.25"]),
        ("$1234.500", ["$12379.000", "$0.100", "-$7.250"]),
    ],
)
def test_as_many_decimals_are_written_as_an_example_with_zeros_shows(example: str, written: list[str]) -> None:
    column = ContinuousColumn(min=-10, max=99_999, resolution=0.01, format=example)
    assert column.spell(pa.array([12379.0, 0.1, -7.25])).to_pylist() == written


def test_a_draft_keeps_the_decimals_of_the_source() -> None:
    texts = [f"{value / 4:,.2f}" for value in range(0, 90_000, 1000)]
    plain = [text.replace(",", "") for text in texts]
    with warnings.catch_warnings(action="ignore"):
        schema = Schema.draft(pd.DataFrame({"grouped": texts, "plain": plain}))
    assert [column["format"] for column in schema.to_dict()["columns"].values()] == ["1,234.50", "12.50"]
    frame = to_frame(encode(read({"grouped": texts, "plain": [float(text) for text in plain]}, schema), schema))
    assert frame["grouped"].tolist() == texts
    assert frame["plain"].tolist() == plain


def test_a_range_is_learned_from_formatted_numbers() -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "continuous", "learn": True, "format": "1,234.5"}}})
    raw = read({"x": [f"{value:,}" for value in np.linspace(1000, 5000, 2000).round(2)]}, schema)
    found = prepare(raw, schema).learn(epsilon=8.0, delta=1e-7, ledger=Ledger(epsilon=9.0, delta=1e-6))
    column: Any = found.columns["x"]
    assert (column.min, column.max) == (512.0, 8192.0)
    assert len(encode(raw, found)) == 2000


def test_texts_of_a_frame_are_written_so_too() -> None:
    column = ContinuousColumn(min=0, max=9999, resolution=0.5, format="1.234,5")
    for values in (pd.Series(["1.234,5", "2"]), pa.array(["1.234,5", "2"], pa.large_string())):
        assert column.encode(values, where="t").tolist() == [2469, 4]
