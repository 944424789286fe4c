"""Drafts of schemas: guesses and warnings."""

from __future__ import annotations

import warnings
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.data.drafting.drafts import draft_columns, draft_quietly

from sundog.data.drafting.draft import draft
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema

CSV = """\
age,zip,smokes,price,when,day,town,score,note
31,01234,Yes,1.50,2020-01-01 10:00,2020-01-01,Bern,1e-3,
47,99999,No,2.25,2020-01-01 11:30,2020-02-29,Genf,2,
NA,01234,Yes,,2020-01-01 12:00,2020-03-01,Bern,0.5,
"""


def test_guesses_from_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CSV)
    schema = draft_quietly(tmp_path / "t.csv")
    assert schema.to_dict() == {
        "sundog": 1,
        "reviewed": False,
        "nulls": ["", "NA"],
        "columns": {
            "age": {"type": "integer", "min": 31, "max": 47, "nullable": True},
            "zip": {"type": "categorical", "values": ["01234", "99999"]},
            "smokes": {"type": "boolean", "true": "Yes", "false": "No"},
            "price": {
                "type": "continuous",
                "format": "12.50",
                "min": 1.5,
                "max": 2.25,
                "resolution": 0.01,
                "nullable": True,
            },
            "when": {
                "type": "datetime",
                "min": "2020-01-01T10:00:00",
                "max": "2020-01-01T12:00:00",
                "resolution": "minute",
                "format": "%Y-%m-%d %H:%M",
            },
            "day": {"type": "datetime", "min": "2020-01-01", "max": "2020-03-01", "resolution": "day"},
            "town": {"type": "categorical", "values": ["Bern", "Genf"]},
            "score": {"type": "continuous", "min": 0.001, "max": 2.0, "resolution": 0.001},
        },
    }
    assert len(encode(read(tmp_path / "t.csv", schema), schema)) == 3


def test_guesses_from_types() -> None:
    frame = pd.DataFrame(
        {
            "n": [1, 5],
            "maybe": [1.0, None],
            "x": [0.25, 0.5],
            "b": [True, False],
            "level": pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True),
            "t": pd.to_datetime(["2020-01-01 10:00", "2020-01-02 12:00"]).tz_localize("Europe/Zurich"),
            "words": [["a", "b"], ["c"]],
        }
    )
    schema = draft_quietly(frame)
    found = schema.to_dict()["columns"]
    assert found["n"] == {"type": "integer", "min": 1, "max": 5}
    assert found["maybe"] == {"type": "integer", "min": 1, "max": 1, "nullable": True, "dtype": "float64"}
    assert found["x"] == {"type": "continuous", "min": 0.25, "max": 0.5, "resolution": 0.01}
    assert found["b"] == {"type": "boolean"}
    assert found["level"] == {"type": "ordinal", "values": ["low", "mid", "high"], "dtype": "category"}
    assert found["t"]["timezone"] == "Europe/Zurich"
    assert found["words"] == {"type": "set", "universe": ["a", "b", "c"], "max_size": 2}
    assert len(encode(read(frame, schema), schema)) == 2


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e-3, 1.0, 1e3, 1e6, 1e12, 1e15, 1e30])
def test_drafted_bounds_spell_out_nobodys_value(scale: float) -> None:
    values = np.random.default_rng(0).normal(0, 1, 500) * scale
    frame = pd.DataFrame({"x": values})
    schema = draft_quietly(frame)
    found = schema.to_dict()["columns"]["x"]
    assert found["type"] == "continuous"
    assert found["min"] < values.min()
    assert found["max"] > values.max()
    span = max(values.max() - values.min(), 1e-9)
    assert values.min() - found["min"] <= 1e-5 * span  # outward, and not by much
    assert found["max"] - values.max() <= 1e-5 * span
    if scale <= 1e6:
        for bound in ("min", "max"):
            assert len(Decimal(str(found[bound])).normalize().as_tuple().digits) <= 8
    schema.columns["x"].encode(values, where="x")  # all are within


def test_guesses_from_arrays(tmp_path: Path) -> None:
    assert draft_columns(np.full((5, 4, 4), 200, np.uint8)) == {"image": {"type": "image", "shape": [4, 4]}}
    series = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], np.float32)
    found = draft_quietly(series)
    assert found.columns["series"].shape == (3,)
    assert len(encode(read(series, found), found)) == 2  # bounds hold although float32 is a little off
    assert draft_columns(sparse.csr_array(np.eye(3))) == {"items": {"type": "set", "universe": 3, "max_size": 1}}
    np.savez(tmp_path / "t.npz", x=series, label=[1, 0], names=np.array(["a", "b", "c"]))
    assert list(draft_quietly(tmp_path / "t.npz").columns) == ["x", "label"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "t.csv").write_text(CSV.replace(",", delimiter))
    schema = draft_quietly(tmp_path / "t.csv")
    assert schema.delimiter == delimiter
    assert len(encode(read(tmp_path / "t.csv", schema), schema)) == 3


def test_a_draft_warns_and_says_so_in_its_file(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        schema = Schema.draft(pd.DataFrame({"a": ["no", "yes", "on", "1", "1e3", "null", "x: y", "2020-01-01"]}))
    schema.save(tmp_path / "s.yaml")
    assert "NOT PRIVATE" in (tmp_path / "s.yaml").read_text().splitlines()[0]
    assert Schema.load(tmp_path / "s.yaml") == schema


def test_identifiers_are_left_out_loudly() -> None:
    names = [f"name{i}" for i in range(30)]
    frame = pd.DataFrame({"name": names, "patient_id": range(30), "user": [i // 2 for i in range(30)], "age": 4})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schema = draft(frame, name="people")
    assert list(schema.columns) == ["user", "age"]
    messages = [str(warning.message) for warning in caught]
    assert sum(message.startswith("people: column ") for message in messages) == 2
    assert not any("name7" in message for message in messages)


def test_numbers_of_rows_are_pointed_out() -> None:
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        text = str(draft(pd.DataFrame({"stay": [*range(7, 307)], "age": [i % 90 for i in range(300)]})))
    assert text.count("all 300 values differ, with few gaps: does it number the rows?") == 1


def test_a_warning_points_to_who_asked_for_the_draft() -> None:
    with pytest.warns(UserWarning, match="NOT PRIVATE") as caught:
        Schema.draft(pd.DataFrame({"age": [31, 47]}))
    assert caught[0].filename == __file__


def test_edges_have_no_negative_zero() -> None:
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        text = str(draft(pd.DataFrame({"x": np.linspace(-3, 2.97, 200).round(3)})))
    assert "edges: [" in text
    assert " -0.0," not in text


def test_very_many_frequent_categories_are_to_be_learned() -> None:
    frame = pd.DataFrame({"word": [f"w{i % 2000}" for i in range(30_000)]})
    assert draft_columns(frame) == {"word": {"type": "categorical", "learn": True}}


# --- the shipped schemas


def test_nested_columns_are_left_out(tmp_path: Path) -> None:
    columns = {
        "age": pa.array([31, 47]),
        "address": pa.array([{"zip": "01234"}, {"zip": "1"}]),
        "tags": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "path": pa.array([[[1, 2]], [[3]]]),
        "visits": pa.array([[{"day": 1}], []]),
        "nothing": pa.array([[], []], pa.list_(pa.null())),
        "days": pa.array([[date(2020, 1, 1)], []]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with warnings.catch_warnings(record=True, action="always") as caught:
        schema = Schema.draft(tmp_path / "t.parquet")
    assert set(schema.columns) == {"age", "days"}
    said = [str(warning.message) for warning in caught]
    for name in ("address", "tags", "path", "visits"):
        assert sum(f"column {name!r} holds" in line and "left out" in line for line in said) == 1


def test_values_of_several_types_are_drafted_as_text() -> None:
    schema = draft_quietly(pd.DataFrame({"x": pd.Series([1, "b", 2.0, None], dtype=object)}))
    found = schema.to_dict()["columns"]["x"]
    assert (found["type"], found["values"], found["nullable"]) == ("categorical", ["1", "2", "b"], True)
