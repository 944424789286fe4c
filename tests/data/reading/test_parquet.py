"""Parquet files are read in batches, which changes nothing about what is read."""

from __future__ import annotations

import io
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.data import containers as containers_of
from tests.data import one_more_record as material
from tests.data.reading.declared_sources import TABLE, catch_message, declare_columns

from sundog.data.columns.batches import Batches
from sundog.data.reading import parquet
from sundog.data.reading.read import encode, read
from sundog.data.reading.source import PipedInput
from sundog.data.schema import Schema
from sundog.data.schema_learning import prepare
from sundog.errors import DataError

WHOLE = {"type": "integer", "min": 0, "max": 99}
DECLARED: dict[str, dict[str, Any]] = {
    "whole": {**WHOLE, "nullable": True},
    "real": {"type": "continuous", "min": 0, "max": 9, "resolution": 0.01, "nullable": True},
    "decimal": {"type": "continuous", "min": 0, "max": 9, "resolution": 0.01},
    "text": {"type": "categorical", "values": ["a", "b", "c"], "nullable": True},
    "typed": {"type": "categorical", "values": ["a", "b", "c"]},
    "truth": {"type": "boolean"},
    "time": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "resolution": "day"},
    "basket": {"type": "set", "universe": ["tea", "milk"], "max_size": 2},
    "load": {"type": "series", "length": 2, "min": 0, "max": 9},
}


def make_table(count: int) -> pa.Table:
    rng = np.random.default_rng(0)
    whole, real = rng.integers(0, 100, count), rng.uniform(0, 9, count)
    texts = pa.array(rng.choice(["a", "b", "c"], count), mask=rng.random(count) < 0.1)
    return pa.table(
        {
            "whole": pa.array(whole, mask=whole < 9),
            "real": np.where(real < 1, np.nan, real),
            "decimal": pa.array([Decimal(int(100 * each)) / 100 for each in real], pa.decimal128(9, 2)),
            "text": texts,
            "typed": pa.array(rng.choice(["a", "b", "c"], count)).dictionary_encode(),
            "truth": whole < 50,
            "time": [datetime(2020, 1 + int(each) % 12, 3) for each in whole],
            "basket": [["tea"] if each < 50 else ["milk", "tea"] for each in whole],
            "load_0": real,
            "load_1": real,
            "owner": rng.integers(0, 9, count),
        }
    )


@pytest.mark.parametrize("batch", [1, 7, 64, 1000])
@pytest.mark.parametrize("group", [5, 50, 1000])
@pytest.mark.parametrize("owned", [False, True])
def test_batches_are_the_whole(
    batch: int, group: int, owned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BATCH", batch)
    table, people = make_table(203), {"unit": "owner", "cap": 3} if owned else {}
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=group)
    content = io.BytesIO((tmp_path / "t.parquet").read_bytes())
    schema = Schema.from_dict({"columns": DECLARED, **people})
    whole = encode(read(table, schema), schema)
    for source in (tmp_path / "t.parquet", PipedInput("stdin.parquet", content.getvalue())):
        raw = read(source, schema)
        assert {name for name, each in raw.columns.items() if isinstance(each, Batches)} == {*DECLARED} - {
            "basket",
            "load",
        }
        found = encode(raw, schema)
        for name, codes in whole.codes.items():
            assert codes.dtype == found.codes[name].dtype
            assert (codes != found.codes[name]).sum() == 0
        units = [each.unit for each in (whole, found) if each.unit is not None]
        assert len(units) == 2 * owned
        assert all(np.array_equal(units[0], each) for each in units)


def test_only_one_batch_of_one_column_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH", 10)
    pq.write_table(pa.table({"a": np.arange(95), "b": np.arange(95)}), tmp_path / "t.parquet", row_group_size=40)
    raw = read(tmp_path / "t.parquet", declare_columns(a=WHOLE, b=WHOLE))
    chunks = [chunk for each in raw.columns.values() if isinstance(each, Batches) for chunk in each.iterchunks()]
    assert max(map(len, chunks)) == 10
    assert sum(map(len, chunks)) == 190


def test_values_are_learned_from_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH", 7)
    schema, table = declare_columns(text={"type": "categorical", "learn": True, "nullable": True}), make_table(203)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    in_batches, at_once = (prepare(read(source, schema), schema) for source in (tmp_path / "t.parquet", table))
    assert in_batches.values == at_once.values


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (pa.array([5] * 90 + [1000]), "row 91: 1000 is above max (120)"),
        (pa.array([5] * 90 + [None]), "row 91 is empty"),
        (pa.array(["5"] * 90 + ["five"]), "row 91: 'five' is not a whole number"),
        (pa.array([5.0] * 90 + [5.5]), "row 91: 5.5 is not a whole number"),
        (pa.array([[5]] * 91), "holds list<"),
    ],
)
def test_messages_name_the_row_of_the_file(
    values: pa.Array, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BATCH", 8)
    pq.write_table(pa.table({"age": values, "sex": ["f"] * 91}), tmp_path / "t.parquet", row_group_size=20)
    assert catch_message(tmp_path / "t.parquet").startswith(f"t.parquet: column 'age': {problem}")


def test_names_with_dots_and_prefixes(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a.b": [1, 2], "a": [3, 4], "c": [{"a": 1}, {"a": 2}]}), tmp_path / "t.parquet")
    schema = Schema.from_dict({"columns": {"a": WHOLE, "a.b": WHOLE}})
    codes = encode(read(tmp_path / "t.parquet", schema), schema).codes
    assert codes["a"].tolist() == [3, 4]
    assert codes["a.b"].tolist() == [1, 2]


def test_damage_in_the_last_row_group(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"age": np.arange(1200) % 100, "sex": ["f"] * 1200})
    pq.write_table(table, path, row_group_size=100, use_dictionary=False, compression="gzip")
    place = pq.ParquetFile(path).metadata.row_group(11).column(0).data_page_offset
    broken = bytearray(path.read_bytes())
    broken[place : place + 60] = bytes(60)
    path.write_bytes(broken)
    assert catch_message(path).startswith("t.parquet: cannot be read (")


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"age": [1, 2], "sex": ["f", "m"]}), path)
    raw = read(path, TABLE)
    pq.write_table(pa.table({"age": [1, 2, 3], "sex": ["f", "m", "f"]}), path)
    with pytest.raises(DataError, match="has changed since it was opened; start again"):
        encode(raw, TABLE)
    path.unlink()
    with pytest.raises(DataError, match="there is no such file"):
        encode(raw, TABLE)


@pytest.mark.parametrize("kind", ["parquet", "pandas parquet"])
@pytest.mark.parametrize("name", [*material.SCALARS])
def test_a_record_is_encoded_alone_in_batches_of_one(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BATCH", 1)
    monkeypatch.setattr(material, "_KNOWN", {})
    case, container = material.SCALARS[name], containers_of.IN_FILES[kind]
    for number, record in enumerate(material.FOR_FILES):
        place = (number % 3) * len(case.records) // 2
        try:
            found = material.find_change_by_record(record, place, case, container, tmp_path)
        except LookupError:
            continue
        assert found is None, f"with {record!r} at {place}"
