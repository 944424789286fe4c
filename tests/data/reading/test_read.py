"""Reading: every source of a table gives the same records, and units keep their first records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.reading.declared_sources import FILES, FRAME, TABLE, catch_message, declare_columns, read_codes

from sundog.data.reading.read import Raw, encode, find_first_of_each, read
from sundog.data.schema import Schema

# --- the same records from every source ---


EXPECTED = {"age": [31, 47, 5], "sex": [0, 1, 0]}


@pytest.mark.parametrize("name", FILES)
def test_every_table_file_gives_the_same_records(tmp_path: Path, name: str) -> None:
    FILES[name](tmp_path / name)
    raw = read(tmp_path / name, TABLE)
    assert (raw.name, raw.count, raw.ignored) == (name, 3, ("extra",))
    assert read_codes(str(tmp_path / name), TABLE) == EXPECTED


def test_an_arrow_stream_file(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(FRAME)
    with pa.ipc.new_stream(tmp_path / "t.arrow", table.schema) as stream:
        stream.write_table(table)
    assert read_codes(tmp_path / "t.arrow", TABLE) == EXPECTED


@pytest.mark.parametrize(
    "source",
    [
        FRAME,
        FRAME.set_index(pd.Index([9, 9, -1])),
        FRAME.astype({"age": "Int64", "sex": "category"}),
        FRAME.astype({"age": "float64", "sex": object}),
        FRAME.convert_dtypes(),
        FRAME.assign(sex=pd.Categorical(FRAME["sex"], categories=["m", "x", "f"])),
        FRAME.assign(age=pd.Categorical(FRAME["age"])),
        FRAME.convert_dtypes(dtype_backend="pyarrow"),
        FRAME.to_dict("list"),
        pa.Table.from_pandas(FRAME),
        pa.RecordBatch.from_pandas(FRAME),
        {"age": np.array([31, 47, 5]), "sex": pd.Series(["f", "m", "f"], index=[5, 6, 7])},
    ],
    ids=lambda source: type(source).__name__,
)
def test_every_table_in_memory_gives_the_same_records(source: Any) -> None:
    assert read_codes(source, TABLE) == EXPECTED


def test_one_row_works(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,sex\n7,m")
    assert read_codes(tmp_path / "t.csv", TABLE) == {"age": [7], "sex": [1]}


def test_a_byte_order_mark_quotes_and_line_ends_in_cells(tmp_path: Path) -> None:
    schema = declare_columns(
        a={"type": "categorical", "values": ['x, "y"\nz', "w"]}, b={"type": "integer", "min": 0, "max": 9}
    )
    (tmp_path / "t.csv").write_bytes(b'\xef\xbb\xbf"a",b\r\n"x, ""y""\nz",1\r\nw,2\r\n')
    assert read_codes(tmp_path / "t.csv", schema) == {"a": [0, 1], "b": [1, 2]}


def test_text_is_never_guessed_at(tmp_path: Path) -> None:
    schema = declare_columns(zip={"type": "categorical", "values": ["01234", "1e3", "1000", "true", "NaN"]})
    (tmp_path / "t.csv").write_text("zip\n01234\nNaN\n1e3\ntrue\n1000\n")
    assert read_codes(tmp_path / "t.csv", schema) == {"zip": [0, 4, 1, 3, 2]}


def test_a_declared_category_wins_over_a_null_spelling(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {
            "nulls": ["", "NA"],
            "columns": {
                "country": {"type": "categorical", "values": ["NA", "DE"], "nullable": True},
                "n": {"type": "integer", "min": 0, "max": 9, "nullable": True},
            },
        }
    )
    (tmp_path / "t.csv").write_text("country,n\nNA,NA\n,1\nDE,\n")
    assert read_codes(tmp_path / "t.csv", schema) == {"country": [0, 2, 1], "n": [10, 1, 10]}


def test_order_is_that_of_the_file_across_blocks(tmp_path: Path) -> None:
    schema = declare_columns(
        n={"type": "integer", "min": 0, "max": 10**6}, s={"type": "categorical", "values": ["a", "b" * 60]}
    )
    n = np.random.default_rng(1).integers(0, 10**6, 300_000)
    pd.DataFrame({"n": n, "s": np.where(n % 2, "a", "b" * 60)}).to_csv(tmp_path / "t.csv", index=False)
    assert (tmp_path / "t.csv").stat().st_size > 1 << 23  # more than one block
    records = encode(read(tmp_path / "t.csv", schema), schema)
    np.testing.assert_array_equal(records.codes["n"], n)
    np.testing.assert_array_equal(records.codes["s"], n % 2 == 0)


def test_missing_values_of_every_kind_are_missing() -> None:
    schema = declare_columns(
        n={"type": "integer", "min": 0, "max": 9, "nullable": True},
        x={"type": "continuous", "min": 0, "max": 1, "resolution": 0.5, "nullable": True},
        t={"type": "datetime", "min": "2020-01-01", "max": "2020-01-31", "resolution": "day", "nullable": True},
        c={"type": "categorical", "values": ["a"], "nullable": True},
        b={"type": "boolean", "nullable": True},
    )
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None], "Int64"),
            "x": [0.5, np.nan],
            "t": pd.Series([pd.Timestamp("2020-01-03"), pd.NaT]),
            "c": pd.Categorical(["a", None]),
            "b": pd.array([True, None], "boolean"),
        }
    )
    expected = {"n": [1, 10], "x": [1, 3], "t": [2, 31], "c": [0, 1], "b": [1, 2]}
    assert read_codes(frame, schema) == expected
    assert read_codes(frame.astype(object).where(frame.notna(), None), schema) == expected


def test_times_with_a_timezone() -> None:
    schema = declare_columns(
        t={
            "type": "datetime",
            "min": "2020-01-01",
            "max": "2020-01-02",
            "resolution": "hour",
            "timezone": "Europe/Zurich",
        }
    )
    local = pd.to_datetime(["2020-01-01 05:00"]).tz_localize("Europe/Zurich")
    assert read_codes(pd.DataFrame({"t": local}), schema) == {"t": [5]}
    assert read_codes(pd.DataFrame({"t": local.tz_convert("UTC")}), schema) == {"t": [5]}


# --- units ---


def test_the_cap_keeps_the_first_records_of_each_unit(tmp_path: Path) -> None:
    schema = Schema.from_dict({"unit": "who", "cap": 2, "columns": {"n": {"type": "integer", "min": 0, "max": 9}}})
    (tmp_path / "t.csv").write_text("who,n\nb,1\na,2\nb,3\nb,99\na,5\nc,6\n")
    records = encode(read(tmp_path / "t.csv", schema), schema)  # the third record of b is out of bounds, and dropped
    assert records.codes["n"].tolist() == [1, 2, 3, 5, 6]
    assert read(tmp_path / "t.csv", schema).count == 6


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30), st.integers(1, 4))
@settings(max_examples=60)
def test_the_cap_agrees_with_a_slow_loop_and_units_do_not_touch_each_other(ids: list[str], cap: int) -> None:
    chunks = pa.chunked_array([ids[: len(ids) // 2], ids[len(ids) // 2 :]], pa.string())
    seen: dict[str, int] = {}
    slow = []
    for place, who in enumerate(ids):
        seen[who] = seen.get(who, 0) + 1
        if seen[who] <= cap:
            slow.append(place)
    kept = find_first_of_each(chunks, cap).tolist()
    assert kept == slow
    # Without unit "a", the same records of the others are kept.
    rest = [place for place, who in enumerate(ids) if who != "a"]
    if rest:
        again = find_first_of_each(pa.chunked_array([[ids[place] for place in rest]]), cap)
        assert [rest[place] for place in again] == [place for place in kept if ids[place] != "a"]


def test_one_person_has_one_id_however_it_is_stored() -> None:
    schema = Schema.from_dict({"unit": "who", "columns": {"n": {"type": "integer", "min": 0, "max": 9}}})
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", "a", "b"]))
    assert read_codes(pa.table({"who": twice, "n": [1, 2, 3]}), schema) == {"n": [1, 3]}
    assert read_codes({"who": ["a", " a", "b"], "n": [1, 2, 3]}, schema) == {"n": [1, 3]}
    none = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    assert "row 2" in catch_message(pa.table({"who": none, "n": [1, 2]}), schema)


def test_capping_twice_is_capping_once() -> None:
    raw = Raw("t", 3, {"x": np.arange(3)}, unit=pa.chunked_array([[1, 1, 1]]))
    assert raw.bound_contributions(2).bound_contributions(2).count == 2
    assert Raw("t", 3, {"x": np.arange(3)}).bound_contributions(1).count == 3


def test_a_record_of_nobody_is_refused(tmp_path: Path) -> None:
    schema = Schema.from_dict({"unit": "who", "columns": {"n": {"type": "integer", "min": 0, "max": 9}}})
    (tmp_path / "t.csv").write_text("who,n\na,1\n,2\n")
    assert "t.csv: column 'who': row 2" in catch_message(tmp_path / "t.csv", schema)
    assert "'who' is missing" in catch_message(pd.DataFrame({"n": [1]}), schema)
    assert "row 1" in catch_message(pd.DataFrame({"n": [1], "who": [np.nan]}), schema)


def test_a_bad_row_after_the_cap_says_which_rows_are_counted() -> None:
    schema = Schema.from_dict({"unit": "who", "columns": {"n": {"type": "integer", "min": 0, "max": 9}}})
    frame = pd.DataFrame({"who": ["a", "a", "b"], "n": [1, 2, 99]})
    assert "(first 1 of each 'who'): column 'n': row 2" in catch_message(frame, schema)
