"""Writers: written records have the same codes when read, and a file is complete or absent."""

from __future__ import annotations

import errno
import gzip
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from sundog import files
from sundog.data.columns import Column, SetColumn
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.data.writing.write import open_writer, to_frame, to_table
from sundog.errors import DataError

SCALARS: dict[str, dict[str, Any]] = {
    "plain": {"type": "categorical", "values": ["a", "b"]},
    'odd, "name"': {
        "type": "categorical",
        "values": ["x, y", 'say "hi"', "two\nlines", " edge ", "é", "NA", "?", "a;b|c\td"],
    },
    "ints": {"type": "ordinal", "values": [3, 1, 2]},
    "floats": {"type": "categorical", "values": [0.5, 1.0, 1e-9]},
    "bools": {"type": "categorical", "values": [True, False]},
    "flag": {"type": "boolean"},
    "ja": {"type": "boolean", "true": "ja, doch", "false": "nein"},
    "n": {"type": "integer", "min": -3, "max": 90},
    "step": {"type": "integer", "min": 0, "max": 10**6, "step": 7},
    "big": {"type": "integer", "min": 2**62, "max": 2**62 + 5},
    "x": {"type": "continuous", "min": -1, "max": 1, "resolution": 0.001},
    "wide": {"type": "continuous", "min": 0, "max": 1e12, "resolution": 0.01},
    "tiny": {"type": "continuous", "min": 0, "max": 1e-7, "resolution": 1e-13},
    "day": {"type": "datetime", "min": "1950-01-01", "max": "2050-12-31", "resolution": "day"},
    "second": {"type": "datetime", "min": "1999-12-31", "max": "2001-01-01"},
    "micro": {"type": "datetime", "min": "2020-01-01", "max": "2020-01-02", "resolution": "microsecond"},
    "german": {"type": "datetime", "min": "2020-01-01", "max": "2021-01-01", "resolution": "day", "format": "%d.%m.%Y"},
    "comma": {
        "type": "datetime",
        "min": "2020-01-01",
        "max": "2020-02-01",
        "resolution": "minute",
        "format": "%b %d, %Y %H:%M",
    },
    "zurich": {
        "type": "datetime",
        "min": "2020-10-24",
        "max": "2020-10-27",
        "resolution": "hour",
        "timezone": "Europe/Zurich",
    },
    "local day": {
        "type": "datetime",
        "min": "2020-03-01",
        "max": "2020-11-01",
        "resolution": "day",
        "timezone": "America/Lima",
    },
}
WITH_NULLS = {f"{name} or null": {**column, "nullable": True} for name, column in SCALARS.items()}
SERIES: dict[str, dict[str, Any]] = {
    "load": {"type": "series", "length": 3, "min": 0, "max": 2, "resolution": 0.01},
    "gaps": {"type": "series", "length": 2, "min": 0, "max": 2, "resolution": 0.5, "nullable": True},
}
SETS: dict[str, dict[str, Any]] = {
    "words": {"type": "set", "universe": ["tea", "a,b", 'q"'], "max_size": 3},
    "phrases": {"type": "set", "universe": ["whole milk", "tea"], "max_size": 2},
    "numbers": {"type": "set", "universe": 5, "max_size": 5},
}
IMAGES: dict[str, dict[str, Any]] = {
    "image": {"type": "image", "shape": [2, 3]},
    "deep": {"type": "image", "shape": [2, 2, 3], "levels": 1000},
}
FLAT: dict[str, dict[str, Any]] = SCALARS | WITH_NULLS | SERIES | SETS
EVERYTHING: dict[str, dict[str, Any]] = FLAT | IMAGES


def make_schema(columns: dict[str, dict[str, Any]], **head: Any) -> Schema:
    return Schema.from_dict({**head, "columns": columns})


def draw_codes(column: Column, count: int, rng: np.random.Generator) -> Any:
    if isinstance(column, SetColumn):
        return sparse.csr_array(rng.random((count, *column.shape)) < 0.4, dtype=np.uint8)
    codes = rng.integers(0, column.size, (count, *column.shape), np.uint64)
    codes[:1], codes[-1:] = 0, column.size - 1  # both ends, and so null where there is one
    return codes.astype(column.dtype)


def draw_records(schema: Schema, count: int, seed: int = 0) -> Records:
    rng = np.random.default_rng(seed)
    return Records(schema, {name: draw_codes(c, count, rng) for name, c in schema.columns.items()}, count)


def assert_same(one: Records, other: Records) -> None:
    assert len(one) == len(other)
    for name, codes in one.codes.items():
        again = other.codes[name]
        same = (codes != again).nnz == 0 if sparse.issparse(codes) else np.array_equal(codes, again)
        assert same, name


def round_trip(records: Records, path: Path) -> Records:
    with open_writer(path, records.schema) as writer:
        half = len(records) // 2
        writer.write(records.take(slice(half)))
        writer.write(records.take(slice(half, None)))
    return encode(read(path, records.schema), records.schema)


@pytest.mark.parametrize("name", list(SCALARS) + list(WITH_NULLS) + list(SERIES) + list(SETS) + list(IMAGES))
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_each_column_alone_survives(tmp_path: Path, name: str, suffix: str) -> None:
    if name in IMAGES and suffix == "csv":
        pytest.skip("images do not fit a csv")
    records = draw_records(make_schema({name: EVERYTHING[name]}), 200)
    assert_same(records, round_trip(records, tmp_path / f"t.{suffix}"))


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "tsv.gz", "parquet", "npz"])
@pytest.mark.parametrize("count", [1, 2, 500])
def test_all_columns_together_survive(tmp_path: Path, suffix: str, count: int) -> None:
    schema = make_schema(EVERYTHING if suffix in ("parquet", "npz") else FLAT)
    records = draw_records(schema, count)
    assert_same(records, round_trip(records, tmp_path / f"t.{suffix}"))


@pytest.mark.parametrize("delimiter", [";", "\t", "|", "^", "."])
@pytest.mark.parametrize("null", ["NA", "", "n/a; no", "-"])
def test_any_delimiter_and_null_spelling(tmp_path: Path, delimiter: str, null: str) -> None:
    columns = {name: column for name, column in FLAT.items() if not name.startswith("odd") or null != "NA"}
    records = draw_records(make_schema(columns, delimiter=delimiter, nulls=[null]), 50)
    assert_same(records, round_trip(records, tmp_path / "t.csv"))


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_a_value_spelled_like_null_is_not_null(tmp_path: Path, suffix: str) -> None:
    column = {"type": "categorical", "values": ["", "NA", "x"], "nullable": True}
    records = draw_records(make_schema({"a": column, "n": SCALARS["n"]}, nulls=["", "NA", "-"]), 50)
    assert_same(records, round_trip(records, tmp_path / f"t.{suffix}"))
    ambiguous = draw_records(make_schema({"a": column}, nulls=["", "NA"]), 5)
    with pytest.raises(DataError, match=r"^u\.\w+: column 'a': .*add another to `nulls`"):
        round_trip(ambiguous, tmp_path / f"u.{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"t.{suffix}"]


# Line breaks in a csv are tested by "two\nlines" above and in test_csv_line_checks.py: not all can be read back.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=5)


@given(values=st.lists(TEXT, min_size=1, max_size=6, unique=True), columns=st.integers(1, 2))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_spelling_survives(tmp_path: Path, values: list[str], columns: int) -> None:
    column = {"type": "categorical", "values": values}
    schema = make_schema({f"c{i}": column for i in range(columns)})
    codes = np.arange(len(values), dtype=np.uint8)
    records = Records(schema, dict.fromkeys(schema.columns, codes), len(values))
    for suffix in ("csv", "parquet"):
        assert_same(records, round_trip(records, tmp_path / f"t.{suffix}"))


def test_the_same_bytes_as_pandas_writes_and_reads(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x", "y, z", 'q"'], "n, m": [1, 2, 3], "x": [0.5, 1.25, 2.0]})
    frame.to_csv(tmp_path / "pandas.csv", index=False)
    schema = make_schema(
        {
            "a": {"type": "categorical", "values": ["x", "y, z", 'q"']},
            "n, m": {"type": "integer", "min": 0, "max": 9},
            "x": {"type": "continuous", "min": 0, "max": 9, "resolution": 0.25},
        }
    )
    round_trip(encode(read(frame, schema), schema), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == (tmp_path / "pandas.csv").read_text().replace("2.0", "2")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "t.csv"), frame)


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    records = draw_records(make_schema(FLAT), 50)
    for suffix in ("csv", "csv.gz", "parquet", "npz"):
        round_trip(records, tmp_path / f"one.{suffix}")
        round_trip(records, tmp_path / f"two.{suffix}")
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "npz"])
def test_no_records_give_a_file_without_records(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    with open_writer(path, make_schema(FLAT)):
        pass
    with pytest.raises(DataError, match="has no records"):
        read(path, make_schema(FLAT))


def test_typed_files_are_what_others_expect(tmp_path: Path) -> None:
    records = draw_records(make_schema(EVERYTHING), 20)
    round_trip(records, tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds["plain"] == "string"
    assert (kinds["ints"], kinds["floats"], kinds["bools"]) == ("int64", "double", "bool")
    assert (kinds["n"], kinds["x"], kinds["flag"]) == ("int64", "double", "bool")
    assert kinds["zurich"] == "timestamp[us, tz=Europe/Zurich]"
    assert kinds["words"].startswith("list<")
    assert kinds["load"].startswith("fixed_size_list<")
    assert table.num_rows == 20
    round_trip(records, tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz", allow_pickle=False) as arrays:
        assert arrays["image"].shape == (20, 2, 3)
        assert arrays["image"].dtype == np.uint8
        assert arrays["plain"].dtype.kind == "U"
        assert arrays["n or null"].dtype.kind == "f"
        assert {"words_indices", "words_indptr", "words_shape"} <= set(arrays)
    one_set = draw_records(make_schema({"words": SETS["words"], "n": SCALARS["n"]}), 5)
    round_trip(one_set, tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz") as arrays:
        assert set(arrays) == {"indices", "indptr", "shape", "n"}


def test_frames_have_the_types_of_pandas() -> None:
    records = draw_records(make_schema(FLAT), 30)
    frame = to_frame(records)
    assert len(frame) == 30
    assert frame["n"].dtype == np.int64
    assert frame["n or null"].dtype == pd.Int64Dtype()
    assert frame["flag"].dtype == bool
    assert frame["flag or null"].dtype == pd.BooleanDtype()
    assert frame["plain"].dtype == pd.Series(["a"]).dtype
    assert frame["zurich"].dtype == pd.DatetimeTZDtype("us", "Europe/Zurich")
    assert list(frame.filter(like="load_")) == ["load_0", "load_1", "load_2"]
    assert_same(records, encode(read(frame, records.schema), records.schema))
    with pytest.raises(DataError, match="column 'image'"):
        to_frame(draw_records(make_schema(IMAGES), 1))


def test_tables_read_back() -> None:
    records = draw_records(make_schema(EVERYTHING), 30)
    table = to_table(records)
    assert isinstance(table, pa.Table)
    assert_same(records, encode(read(table, records.schema), records.schema))


def test_many_small_pieces_are_one_file(tmp_path: Path) -> None:
    records = draw_records(make_schema(FLAT), 20)
    for suffix in ("csv", "parquet", "npz"):
        with open_writer(tmp_path / f"t.{suffix}", records.schema) as writer:
            for row in range(20):
                writer.write(records.take([row]))
        assert_same(records, encode(read(tmp_path / f"t.{suffix}", records.schema), records.schema))


# --- all or nothing

SMALL = make_schema(
    {"n": {"type": "integer", "min": 0, "max": 10**6}, "s": {"type": "categorical", "values": ["a", "b"]}}
)
SUFFIXES = ["csv", "csv.gz", "parquet", "npz"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(2), OSError("elsewhere")])
def test_an_interrupted_write_leaves_nothing(tmp_path: Path, suffix: str, error: BaseException) -> None:
    path = tmp_path / f"t.{suffix}"
    path.write_text("what was there before")

    def interrupted() -> None:
        with open_writer(path, SMALL) as writer:
            writer.write(draw_records(SMALL, 1000))
            raise error

    with pytest.raises(type(error)) as caught:
        interrupted()
    assert caught.value is error
    assert path.read_text() == "what was there before"
    assert list(tmp_path.iterdir()) == [path]


class FullDisk(io.FileIO):
    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > 2000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(files, "open", lambda path, mode, **_: io.BufferedWriter(FullDisk(path, mode)), raising=False)
    records = draw_records(SMALL, 60_000)
    with pytest.raises(DataError) as caught, open_writer(tmp_path / f"t.{suffix}", SMALL) as writer:
        writer.write(records)
    message = str(caught.value)
    assert message.startswith(f"t.{suffix}: cannot be written (the disk is full)")
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_at_the_very_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="the disk is full"), open_writer(tmp_path / "t.csv", SMALL) as writer:
        writer.write(draw_records(SMALL, 10))
    assert list(tmp_path.iterdir()) == []


def test_bad_targets_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "d.csv").mkdir()
    for name, schema, says in (
        ("none/t.csv", SMALL, "none/t.csv: its folder does not exist"),
        ("d.csv", SMALL, "d.csv: is a directory"),
        ("t.xlsx", SMALL, "t.xlsx: has an unknown format"),
        ("t.csv", make_schema(IMAGES), "t.csv: column 'image': images do not fit a csv"),
        ("t.csv", make_schema({"s": {"type": "set", "universe": ["a b", "c|d"], "max_size": 2}}), "column 's'"),
    ):
        with pytest.raises(DataError) as caught, open_writer(tmp_path / name, schema):
            pass
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["d.csv"]


def test_what_is_written_is_plain(tmp_path: Path) -> None:
    round_trip(draw_records(SMALL, 10), tmp_path / "t.csv.gz")
    packed = (tmp_path / "t.csv.gz").read_bytes()
    assert packed[4:8] == b"\0\0\0\0"  # no time stamp
    assert gzip.decompress(packed).startswith(b"n,s\n")
    round_trip(draw_records(SMALL, 10), tmp_path / "t.npz")
    with zipfile.ZipFile(tmp_path / "t.npz") as archive:
        assert archive.namelist() == ["n.npy", "s.npy"]
        assert archive.testzip() is None
