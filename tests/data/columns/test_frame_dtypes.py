"""DataFrames of synthetic records have the dtypes and spellings that the schema declares."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.data.writing.frames import to_frame, to_table
from sundog.errors import SchemaError
from sundog.fit.synthesizer import Synthesizer

N = 60
DAYS = pd.to_datetime([f"2020-01-{day:02}" for day in range(1, 31)] * 2)
FRAME = pd.DataFrame(
    {
        "small": np.arange(N, dtype="int16"),
        "unsigned": np.arange(N, dtype="uint8"),
        "gaps": pd.array([None, *range(N - 1)], dtype="Int16"),
        "nan": [np.nan, *map(float, range(N - 1))],
        "single": np.linspace(0, 0.3, N).round(2).astype("float32"),
        "answer": ["Yes", "No"] * (N // 2),
        "answer_category": pd.Categorical(["Yes", "No"] * (N // 2)),
        "flag": [True, False] * (N // 2),
        "maybe": pd.array([True, None] * (N // 2), dtype="boolean"),
        "colour": ["red", "green", "blue"] * (N // 3),
        "category": pd.Categorical(["red", "green", None] * (N // 3), categories=["green", "red"]),
        "level": pd.Categorical(["low", "high", "mid"] * (N // 3), categories=["low", "mid", "high"], ordered=True),
        "string": pd.array(["a", None, "b"] * (N // 3), dtype="string"),
        "object": pd.Series(["a", None, "b"] * (N // 3), dtype=object),
        "spelled": ["17", "18", "19"] * (N // 3),
        "day": DAYS,
        "nanoseconds": DAYS.astype("datetime64[ns]"),
        "zoned": DAYS.tz_localize("UTC"),
        "text_day": DAYS.strftime("%Y-%m-%d"),
        "date": pd.Series([day.date() for day in DAYS], dtype=object),
    }
)


def draft_quietly(data: Any) -> Schema:
    with warnings.catch_warnings(action="ignore"):
        return Schema.draft(data)


@pytest.fixture(scope="module")
def schema() -> Schema:
    return draft_quietly(FRAME)


def test_a_frame_comes_back_with_its_own_dtypes_and_spellings(schema: Schema) -> None:
    with warnings.catch_warnings(action="ignore"):
        release = Synthesizer("independent", epsilon=50.0, delta=1e-6).fit(FRAME, schema).release_
    back = release.sample(300, seed=1)
    assert release.sample(0).dtypes.to_dict() == back.dtypes.to_dict()
    assert back.dtypes.astype(str).to_dict() == FRAME.dtypes.astype(str).to_dict()
    for name in ("answer", "answer_category", "colour", "level", "string", "object"):
        assert set(back[name].dropna()) == set(FRAME[name].dropna()), name
    assert set(back["spelled"]) <= {"17", "18", "19"}
    assert back["text_day"].str.fullmatch(r"2020-01-\d\d").all()
    assert {type(day) for day in back["date"]} == {datetime.date}
    assert list(back["level"].cat.categories) == ["low", "mid", "high"]
    assert encode(read(back, schema), schema).count == 300


def test_the_dtypes_are_those_of_the_schema_whatever_the_private_frame_has(schema: Schema) -> None:
    """One blank turns int64 into float64: dtypes of the private frame would reveal it."""
    column = {"type": "integer", "min": 0, "max": 99, "nullable": True, "dtype": "Int8"}
    one = Schema.from_dict({"columns": {"n": column}})
    synthesizer = Synthesizer("independent", epsilon=1.0, delta=1e-6)
    for values in ([1, 2, 3], [1.0, 2.0, np.nan], ["1", "2", "3"]):
        frame = synthesizer.fit(pd.DataFrame({"n": values}), one).release_.sample(5)
        assert str(frame["n"].dtype) == "Int8"


def test_codes_survive_every_dtype(schema: Schema) -> None:
    records = encode(read(FRAME, schema), schema)
    for table in (to_frame(records), to_table(records), pl.from_arrow(to_table(records))):
        again = encode(read(table, schema), schema)
        for name in schema.columns:
            assert again.codes[name].tolist() == records.codes[name].tolist(), name


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.3), (0.3, 0.7), (-0.7, -0.3), (1e-9, 0.1), (0.1, 3e38)])
def test_float32_stays_within_bounds_that_it_does_not_have(low: float, high: float) -> None:
    declared = {"type": "continuous", "min": low, "max": high, "resolution": (high - low) / 10, "dtype": "float32"}
    schema = Schema.from_dict({"columns": {"x": {**declared, "nullable": True}}})
    column: Any = schema.columns["x"]
    records = encode(read({"x": column.decode(np.arange(column.size))}, schema), schema)
    back = to_frame(records)
    assert back["x"].dtype == np.float32
    assert back["x"].astype(float).dropna().between(low, high).all()
    assert back["x"].isna().tolist() == [False] * column.lattice_size + [True]
    assert encode(read(back, schema), schema).count == len(records)


def test_arrow_and_polars_tables_are_drafted_with_their_types() -> None:
    table = pa.table(
        {
            "n": pa.array([1, 2, None], pa.int16()),
            "x": pa.array([0.5, 1.5, 2.5], pa.float32()),
            "c": pa.array(["a", "b", "a"]).dictionary_encode(),
            "s": pa.array(["a", "b", "a"]),
        }
    )
    for data in (table, pl.from_arrow(table)):
        columns = draft_quietly(data).to_dict()["columns"]
        assert {name: column.get("dtype") for name, column in columns.items()} == {
            "n": "Int16",
            "x": "float32",
            "c": "category",
            "s": None,
        }


def test_polars_in_and_out() -> None:
    frame = pl.DataFrame({"n": pl.Series([1, 2, 3] * 20, dtype=pl.Int16), "c": ["x", "y", None] * 20})
    schema = Schema.from_dict({**draft_quietly(frame).to_dict(), "reviewed": True})
    back = Synthesizer("independent", epsilon=5.0, delta=1e-6).fit(frame, schema).release_.sample(60, as_="polars")
    assert isinstance(back, pl.DataFrame)
    assert back.schema["n"] == pl.Int16
    assert set(back["c"].to_list()) == {"x", "y", None}


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"type": "integer", "min": 0, "max": 300, "dtype": "int8"}, "dtype int8 does not hold 300"),
        ({"type": "integer", "min": -1, "max": 3, "dtype": "uint8"}, "dtype uint8 does not hold -1"),
        ({"type": "integer", "min": 0, "max": 3, "dtype": "int8", "nullable": True}, "cannot hold missing values"),
        ({"type": "integer", "min": 0, "max": 2**25, "dtype": "float32"}, "does not hold 33554432 exactly; use Int64"),
        ({"type": "integer", "learn": True, "dtype": "int8"}, "may not hold the bounds that are learned"),
        ({"type": "integer", "min": 0, "max": 3, "dtype": "int61"}, "unknown dtype 'int61'; did you mean 'int"),
        ({"type": "integer", "min": 0, "max": 3, "dtype": "category"}, "does not hold the values of a column of this"),
        ({"type": "continuous", "min": 0, "max": 1, "dtype": "int8"}, "does not hold the values of a column of this"),
        ({"type": "continuous", "min": 0, "max": 1e39, "dtype": "float32"}, "dtype float32 does not hold 1e+39"),
        ({"type": "continuous", "min": 0.1, "max": 0.1, "dtype": "float32"}, "holds no value from 0.1 to 0.1"),
        ({"type": "boolean", "nullable": True, "dtype": "bool"}, "use boolean"),
        ({"type": "categorical", "values": ["a"], "dtype": "int8"}, "does not hold the values of a column of this"),
        ({"type": "categorical", "values": [1, 300], "dtype": "int8"}, "dtype int8 does not hold 300"),
        ({"type": "categorical", "learn": True, "dtype": "int8"}, "does not hold the values of a column of this"),
        (
            {"type": "datetime", "min": "1500-01-01", "max": "2020-01-01", "dtype": "datetime64[ns]"},
            "does not hold all times from min to max",
        ),
        (
            {"type": "datetime", "min": "2020-01-01", "max": "2020-01-02", "resolution": "millisecond",
             "dtype": "datetime64[s]"},
            "does not hold milliseconds; use a finer one",
        ),
        (
            {"type": "datetime", "min": "2020-01-01", "max": "2020-01-02", "resolution": "hour", "dtype": "date"},
            "does not hold the values of a column of this type",
        ),
        ({"type": "integer", "min": 0, "max": 3, "dtype": 7}, "dtype must be text"),
        ({"type": "image", "shape": [2, 2], "dtype": "int8"}, "unknown key 'dtype'"),
        ({"type": "integer", "min": 0, "max": 3, "dtpye": "int8"}, "unknown key 'dtpye'; did you mean 'dtype'?"),
    ],
    ids=lambda value: str(value)[:70],
)  # fmt: skip
def test_a_dtype_that_cannot_hold_what_is_declared_is_refused(column: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError) as error:
        Schema.from_dict({"columns": {"x": column}})
    assert said in str(error.value)
    assert "column 'x'" in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_declared_dtype_is_kept_with_the_schema(schema: Schema, tmp_path: Any) -> None:
    schema.save(tmp_path / "a.yaml")
    assert Schema.load(tmp_path / "a.yaml") == schema
    assert Schema.from_dict(schema.to_dict()) == schema
