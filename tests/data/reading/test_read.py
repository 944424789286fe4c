"""Readers: every source gives the same records, and every bad one a message of one line with a fix."""

from __future__ import annotations

import gzip
import os
import struct
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sundog.data.reading.read import Raw, encode, find_first_of_each, read
from sundog.data.schema import Schema
from sundog.errors import DataError, SundogError

TABLE = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 120},
            "sex": {"type": "categorical", "values": ["f", "m"]},
        }
    }
)
IMAGES = Schema.from_dict(
    {"columns": {"image": {"type": "image", "shape": [2, 3]}, "label": {"type": "categorical", "values": [0, 1, 2]}}}
)
SETS = Schema.from_dict({"columns": {"basket": {"type": "set", "universe": ["bread", "milk", "tea"], "max_size": 3}}})
NUMBERED = Schema.from_dict({"columns": {"items": {"type": "set", "universe": 4, "max_size": 4}}})
PIXELS = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)


def declare_columns(**columns: Any) -> Schema:
    return Schema.from_dict({"columns": columns})


def read_codes(source: Any, schema: Schema, **options: Any) -> dict[str, Any]:
    records = encode(read(source, schema, **options), schema)
    return {name: c.toarray().tolist() if sparse.issparse(c) else c.tolist() for name, c in records.codes.items()}


def to_idx(array: np.ndarray[Any, Any]) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.astype("u1").tobytes()


def catch_message(source: Any, schema: Schema = TABLE, **options: Any) -> str:
    with pytest.raises(SundogError) as caught:
        encode(read(source, schema, **options), schema)
    message = str(caught.value)
    assert "\n" not in message
    assert "\r" not in message
    assert ";" in message, "a message ends in a fix"
    return message


# --- the same records from every source


EXPECTED = {"age": [31, 47, 5], "sex": [0, 1, 0]}
FRAME = pd.DataFrame({"age": [31, 47, 5], "sex": ["f", "m", "f"], "extra": [0.5, 1.5, 2.5]})


def write_csv(path: Path) -> None:
    FRAME.to_csv(path, index=False)


FILES: dict[str, Callable[[Path], Any]] = {
    "t.csv": write_csv,
    "t.csv.gz": write_csv,
    "T.CSV": write_csv,
    "t.tsv": lambda path: FRAME.to_csv(path, index=False, sep="\t"),
    "t.parquet": FRAME.to_parquet,
    "t.arrow": lambda path: pyarrow.feather.write_feather(FRAME, path),
    "t.feather": lambda path: pyarrow.feather.write_feather(FRAME, path),
    "t.npz": lambda path: np.savez(path, age=[31, 47, 5], sex=["f", "m", "f"], extra=[0.5, 1.5, 2.5]),
}


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


# --- images, series


def test_images_from_every_source(tmp_path: Path) -> None:
    labels = np.array([0, 2, 1, 1])
    expected = {"image": PIXELS.tolist(), "label": labels.tolist()}
    (tmp_path / "x-idx3-ubyte.gz").write_bytes(gzip.compress(to_idx(PIXELS)))
    (tmp_path / "y.idx").write_bytes(to_idx(labels))
    np.savez(tmp_path / "named.npz", image=PIXELS, label=labels)
    np.savez(tmp_path / "x.npz", other=np.zeros((4, 6)), x=PIXELS, label=labels)
    np.savez_compressed(tmp_path / "flat.npz", pixels=PIXELS.reshape(4, 6), label=labels)
    np.savez(tmp_path / "y.npz", labels=labels)
    pd.DataFrame({"label": labels}).to_csv(tmp_path / "y.csv", index=False)
    for name in ("named.npz", "x.npz", "flat.npz"):
        assert read_codes(tmp_path / name, IMAGES) == expected, name
    for target in (
        tmp_path / "y.idx",
        tmp_path / "y.npz",
        tmp_path / "y.csv",
        labels,
        labels.tolist(),
        pd.Series(labels),
    ):
        assert read_codes(tmp_path / "x-idx3-ubyte.gz", IMAGES, labels=target) == expected
        assert read_codes(PIXELS, IMAGES, labels=target) == expected
    assert read_codes({"image": PIXELS.tolist(), "label": labels}, IMAGES) == expected


def test_idx_of_wider_types(tmp_path: Path) -> None:
    schema = declare_columns(n={"type": "integer", "min": -500, "max": 500})
    (tmp_path / "n.idx").write_bytes(bytes([0, 0, 0x0B, 1, 0, 0, 0, 2]) + np.array([-300, 300], ">i2").tobytes())
    assert read_codes(tmp_path / "n.idx", schema) == {"n": [200, 800]}


def test_series_as_columns_lists_and_arrays(tmp_path: Path) -> None:
    schema = declare_columns(
        load={"type": "series", "length": 2, "min": 0, "max": 9, "resolution": 1, "nullable": True}
    )
    values = np.array([[1.0, 2.0], [3.0, np.nan]])
    expected = {"load": [[1, 2], [3, 10]]}
    pd.DataFrame(values, columns=["load_0", "load_1"]).to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.table({"load": values.tolist()}), tmp_path / "t.parquet")
    for source in (
        tmp_path / "t.csv",
        tmp_path / "t.parquet",
        values,
        {"load": values},
        pd.DataFrame({"load": list(values)}),
    ):
        assert read_codes(source, schema) == expected


# --- sets


def test_sets_from_every_source(tmp_path: Path) -> None:
    matrix = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 1]], np.uint8)
    csr = sparse.csr_array(matrix)
    lists = [["milk", "bread"], [], ["tea", "milk"]]
    (tmp_path / "t.txt").write_text("milk bread\n\ntea  milk\n")
    (tmp_path / "t.dat.gz").write_bytes(gzip.compress(b"milk bread\r\n\r\ntea milk"))
    pd.DataFrame({"basket": ["milk bread", "", "tea milk"], "n": 1}).to_csv(tmp_path / "t.csv", index=False)
    pq.write_table(pa.table({"basket": lists}), tmp_path / "t.parquet")
    parts = {"indices": csr.indices.astype(np.uint16), "indptr": csr.indptr, "shape": np.array(csr.shape)}
    np.savez(tmp_path / "t.npz", item_names=np.array(["bread", "milk", "tea"]), **parts)
    files = [tmp_path / name for name in ("t.txt", "t.dat.gz", "t.csv", "t.parquet", "t.npz")]
    for source in (*files, matrix, csr, sparse.coo_matrix(matrix), lists, [set(x) for x in lists], {"basket": lists}):
        assert read_codes(source, SETS) == {"basket": matrix.tolist()}, source


def test_items_with_spaces_stand_apart_by_bars(tmp_path: Path) -> None:
    schema = declare_columns(basket={"type": "set", "universe": ["whole milk", "tea"], "max_size": 2})
    (tmp_path / "t.csv").write_text("basket\nwhole milk|tea\ntea\n\n")
    assert read_codes(tmp_path / "t.csv", schema) == {"basket": [[1, 1], [0, 1], [0, 0]]}


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"indices": [0, 7], "indptr": [0, 1, 2], "shape": [2, 8]}, "item 7"),
        ({"indices": [0, 9], "indptr": [0, 1, 2], "shape": [2, 4]}, "item 9"),
        ({"indices": [0, -1], "indptr": [0, 1, 2], "shape": [2, 4]}, "item -1"),
        ({"indices": [0, 1], "indptr": [0, 2, 1], "shape": [2, 4]}, "indptr"),
        ({"indices": [0, 1], "indptr": [0, 1, 9], "shape": [2, 4]}, "indptr"),
        ({"indices": [0, 1], "indptr": [0, 1, 2], "shape": [5, 4]}, "do not fit together"),
        ({"indices": [0.5, 1], "indptr": [0, 1, 2], "shape": [2, 4]}, "do not fit together"),
        ({"indices": [0, 1], "indptr": [0, 1, 2], "shape": [-1, 4]}, "do not fit together"),
    ],
)
def test_a_sparse_matrix_is_not_trusted(tmp_path: Path, parts: dict[str, Any], says: str) -> None:
    np.savez(tmp_path / "t.npz", **parts)
    message = catch_message(tmp_path / "t.npz", NUMBERED)
    assert says in message
    assert message.startswith("t.npz")


def test_items_in_turn_make_sets(tmp_path: Path) -> None:
    visits: dict[str, Any] = {"basket": np.array([2, 1, 1, 2, 0], np.uint8), "indptr": np.array([0, 4, 4, 5], np.int32)}
    np.savez(tmp_path / "t.npz", names=np.array(["bread", "milk", "tea"]), **visits)
    for source in (tmp_path / "t.npz", visits):
        assert read_codes(source, SETS) == {"basket": [[0, 1, 1], [0, 0, 0], [1, 0, 0]]}
    dropping = declare_columns(basket={"type": "set", "universe": 2, "max_size": 1, "undeclared": "drop"})
    assert read_codes(tmp_path / "t.npz", dropping) == {"basket": [[0, 1], [0, 0], [1, 0]]}
    whole = {"basket": np.eye(3, dtype=np.uint8), "indptr": np.arange(4)}  # a matrix is a matrix, whatever is beside it
    assert read_codes(whole, SETS) == {"basket": np.eye(3).tolist()}


def test_a_table_may_have_a_column_of_any_name(tmp_path: Path) -> None:
    """A table may have a column with the name of the record starts in an archive."""
    frame = pd.DataFrame({"basket": ["milk bread", "", "tea milk"], "indptr": [0, 1, 2]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    texts: dict[str, Any] = {"basket": frame["basket"].to_numpy(str), "indptr": frame["indptr"].to_numpy()}
    np.savez(tmp_path / "t.npz", **texts)
    both = declare_columns(
        **{"basket": SETS.to_dict()["columns"]["basket"], "indptr": {"type": "integer", "min": 0, "max": 9}}
    )
    baskets = [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    files = [tmp_path / f"t.{kind}" for kind in ("csv", "parquet", "npz")]
    for source in (*files, frame, pa.Table.from_pandas(frame), texts):
        assert read_codes(source, SETS) == {"basket": baskets}, source
        assert read_codes(source, both) == {"basket": baskets, "indptr": [0, 1, 2]}, source
    whole = {"basket": np.array([0, 1, 2]), "indptr": np.array([0, 2, 3])}
    assert read_codes(whole, SETS) == {"basket": [[1, 1, 0], [0, 0, 1]]}  # as many items as numbers of another kind
    assert "give it lists of items" in catch_message(whole, both)  # what is declared is a column


@pytest.mark.parametrize(
    ("items", "indptr", "says"),
    [
        ([0, 3], [0, 1, 2], "item 3"),
        ([0, 2**62], [0, 1, 2], f"item {2**62}"),
        ([0, -1], [0, 1, 2], "item -1"),
        ([0, 1], [0, 2, 1], "indptr"),
        ([0, 1], [1, 2], "indptr"),
        ([0, 1], [0, 1, 9], "indptr"),
        ([0, 1], [[0, 1, 2]], "do not fit together"),
        ([0, 1], np.empty(0, int), "do not fit together"),
        ([0.5, 1], [0, 1, 2], "do not fit together"),
        (["tea", "milk"], [0, 1, 2], "do not fit together"),
    ],
)
def test_items_in_turn_are_not_trusted(tmp_path: Path, items: Any, indptr: Any, says: str) -> None:
    np.savez(tmp_path / "t.npz", basket=np.array(items), indptr=np.array(indptr))
    message = catch_message(tmp_path / "t.npz", SETS)
    assert says in message
    assert message.startswith("t.npz")


# --- units


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


# --- bad input, one line each

GOOD = b"age,sex\n31,f\n47,m\n"

BAD_CSV: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "only line ends": (b"\n\n\n", "is empty"),
    "header only": (b"age,sex\n", "has no records"),
    "missing column": (b"Age,sex\n31,f\n", "column 'age' is missing (did you mean 'Age'?)"),
    "missing column, no likeness": (b"x,sex\n31,f\n", "column 'age' is missing (there are: 'x', 'sex')"),
    "duplicate header": (b"age,sex,age\n1,f,2\n", "the header: column 'age' occurs twice"),
    "semicolons": (b"age;sex\n31;f\n", "declare `delimiter: ';'`"),
    "tabs": (b"age\tsex\n31\tf\n", "declare `delimiter: '\\t'`"),
    "short row": (b"age,sex\n31,f\n47\n5,f\n", "row 2 has 1 fields, the header has 2"),
    "long row": (b"age,sex\n31,f,x\n", "row 1 has 3 fields, the header has 2"),
    "latin-1": (b"age,sex\n31,\xe9\n", "is not UTF-8 text"),
    "latin-1 header": (b"\xe9ge,sex\n31,f\n", "is not UTF-8 text"),
    "utf-16": ("age,sex\n31,f\n".encode("utf-16"), "save it as csv in UTF-8"),
    "garbage": (bytes(range(256)) * 40, "is not a text file"),
    "undeclared": (b"age,sex\n31,f\n47,x\n", "column 'sex': row 2: 'x' is not a declared value"),
    "out of bounds": (b"age,sex\n31,f\n470,m\n", "column 'age': row 2: '470' is above max (120)"),
    "not a number": (b"age,sex\nold,f\n", "column 'age': row 1: 'old' is not a whole number"),
    "missing value": (b"age,sex\n31,f\n,m\n", "column 'age': row 2 is empty but the column is not nullable"),
    "truncated gzip": (gzip.compress(os.urandom(9000))[:4000], ""),
    "damaged gzip": (gzip.compress(GOOD)[:12] + b"\xff" * 9, "is damaged"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_a_bad_csv_gives_one_line(tmp_path: Path, case: str) -> None:
    content, says = BAD_CSV[case]
    (tmp_path / "t.csv").write_bytes(content)
    message = catch_message(tmp_path / "t.csv")
    assert message.startswith("t.csv: ")
    assert says in message


def test_a_gzip_cut_short_far_from_its_start(tmp_path: Path) -> None:
    lines = b"".join(b"%d,f\n" % n for n in np.random.default_rng(0).integers(0, 120, 2_000_000))
    packed = gzip.compress(b"age,sex\n" + lines, 1)
    (tmp_path / "t.csv.gz").write_bytes(packed[:-9])
    assert catch_message(tmp_path / "t.csv.gz").startswith("t.csv.gz: is damaged or cut short")


def test_a_row_that_never_ends(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b'age,sex\n31,"' + b"x" * (20 << 20))
    assert catch_message(tmp_path / "t.csv").startswith("t.csv: ")


def test_bad_bytes_in_a_later_block_name_the_column(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"age,sex\n" + b"31,f\n" * 2_000_000 + b"31,\xe9\n")
    assert "column 'sex'" in catch_message(tmp_path / "t.csv")


def test_no_private_row_is_quoted_in_the_message(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"age,sex\n31,f\n47,m,my secret\n")
    assert "secret" not in catch_message(tmp_path / "t.csv")


def test_missing_files_directories_and_odd_names(tmp_path: Path) -> None:
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "t.ods").write_bytes(b"PK")
    for suffix in (".csv", ".parquet", ".arrow", ".npz", ".idx", ".txt", ".xyz"):
        assert "there is no such file" in catch_message(tmp_path / f"none{suffix}")
    for suffix in (".csv", ".parquet", ".arrow", ".npz", ".idx", ".txt", ".xyz", ""):
        (tmp_path / f"d{suffix}").mkdir(exist_ok=True)
        assert "is a directory" in catch_message(tmp_path / f"d{suffix}")
    assert "has an unknown format" in catch_message(tmp_path / "t.ods")
    assert "nothing that can be read" in catch_message(object())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(GOOD)
    (tmp_path / "t.csv").chmod(0)
    assert "cannot be read without permission" in catch_message(tmp_path / "t.csv")


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "npz"])
@pytest.mark.parametrize("cut", [0, 3, 10, 200, -1, -30])
def test_truncated_binary_files(tmp_path: Path, suffix: str, cut: int) -> None:
    path = tmp_path / f"t.{suffix}"
    FILES[f"t.{suffix}"](path)
    path.write_bytes(path.read_bytes()[:cut])
    assert catch_message(path).startswith(f"t.{suffix}: ")


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "npz", "idx", "csv", "csv.gz"])
def test_garbage_of_every_name(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(5)
    for start in (b"", b"PAR1", b"ARROW1\0\0", b"PK\x03\x04", b"\0\0\x08\x03", b"\x1f\x8b\x08\0"):
        (tmp_path / f"t.{suffix}").write_bytes(start + rng.bytes(500))
        assert catch_message(tmp_path / f"t.{suffix}").startswith(f"t.{suffix}: ")


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "npz", "csv.gz"])
def test_flipped_bits_never_escape_as_other_errors(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    FILES[path.name](path)
    whole = path.read_bytes()
    messages = []
    for place in range(0, len(whole), max(1, len(whole) // 150)):
        broken = bytearray(whole)
        broken[place] ^= 0x55
        path.write_bytes(broken)
        try:
            encode(read(path, TABLE), TABLE)
        except DataError as error:
            messages.append(str(error))
    assert messages
    assert not any("\n" in message for message in messages)


def test_npz_problems(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, image=PIXELS, label=np.array([0, 1, {}, 2], dtype=object))
    assert "array 'label' holds pickled objects" in catch_message(path, IMAGES)
    np.savez(path, image=PIXELS)
    assert "column 'label' is missing" in catch_message(path, IMAGES)
    np.savez(path, label=np.zeros(4, int), a=np.zeros((4, 5)))
    assert "column 'image' is missing" in catch_message(path, IMAGES)
    np.savez(path, image=PIXELS, label=np.zeros(3, int))
    assert "'label' has 3 records, 'image' has 4" in catch_message(path, IMAGES)
    np.savez(path, image=PIXELS[:, :1], label=np.zeros(4, int))
    assert "column 'image'" in catch_message(path, IMAGES)
    np.savez(path, image=PIXELS, label=np.zeros((4, 2), int))
    assert "one value a record is needed" in catch_message(path, IMAGES)
    np.savez(path, image=PIXELS, label=np.int64(3))
    assert "one value a record is needed" in catch_message(path, IMAGES)
    np.savez(path, image=PIXELS[:0], label=np.zeros(0, int))
    assert "has no records" in catch_message(path, IMAGES)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert "holds no arrays" in catch_message(path, IMAGES)


def test_an_archive_that_claims_to_be_huge(tmp_path: Path) -> None:
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776, 2, 3), }\n"
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("image.npy", b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header)
        archive.writestr("label.npy", b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header)
    assert "more than this machine's memory" in catch_message(tmp_path / "t.npz", IMAGES)


def test_idx_problems(tmp_path: Path) -> None:
    path = tmp_path / "x.idx"
    whole = to_idx(PIXELS)
    for content, says in (
        (b"\0\0\x07\x03" + whole[4:], "wrong magic number"),
        (b"\x01" + whole[1:], "wrong magic number"),
        (b"", "wrong magic number"),
        (whole[:9], "cut short"),
        (whole[:-1], "cut short"),
        (whole + b"\0", "longer than its header says"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "more than this machine's memory"),
        (gzip.compress(whole)[:-10], "damaged or cut short"),
    ):
        path.write_bytes(content)
        message = catch_message(path, IMAGES, labels=[0, 1, 2, 0])
        assert message.startswith("x.idx: ")
        assert says in message


def test_label_problems(tmp_path: Path) -> None:
    (tmp_path / "y.idx").write_bytes(to_idx(np.zeros(3)))
    assert catch_message(PIXELS, IMAGES, labels=tmp_path / "y.idx").startswith("y.idx: 3 labels for 4 records")
    assert "3 labels for 4 records" in catch_message(PIXELS, IMAGES, labels=[0, 1, 2])
    assert "column 'label' is missing" in catch_message(PIXELS, IMAGES)
    assert "leave out the labels" in catch_message(
        {"image": PIXELS, "label": [0, 1, 2, 0]}, IMAGES, labels=[0, 1, 2, 0]
    )
    assert "column 'label'" in catch_message(PIXELS, IMAGES, labels=[0, 1, 2, 5])
    pd.DataFrame({"a": [0] * 4, "b": [0] * 4}).to_csv(tmp_path / "y.csv", index=False)
    assert "'label' is missing" in catch_message(PIXELS, IMAGES, labels=tmp_path / "y.csv")


def test_frame_problems() -> None:
    twice = pd.DataFrame([[1, "f", 2]], columns=["age", "sex", "age"])
    assert "column 'age' occurs twice" in catch_message(twice)
    assert "has no records" in catch_message(pd.DataFrame({"age": [], "sex": []}))
    assert "column 'age' is missing" in catch_message(pd.DataFrame())
    assert "column 'age': row 2 is empty" in catch_message(pd.DataFrame({"age": [1, None], "sex": ["f", "m"]}))
    assert "column 'age'" in catch_message(pd.DataFrame({"age": [[1], [2]], "sex": ["f", "m"]}))
    assert "column 'age'" in catch_message(pd.DataFrame({"age": [1, "old"], "sex": ["f", "m"]}))
    assert "column 'sex'" in catch_message(pd.DataFrame({"age": [1], "sex": [object()]}))


def test_set_problems(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("milk\nbeer\n")
    assert catch_message(tmp_path / "t.txt", SETS).startswith("t.txt: column 'basket': row 2: item 'beer'")
    (tmp_path / "t.txt").write_bytes(b"milk\n\xff\n")
    assert "is not UTF-8" in catch_message(tmp_path / "t.txt", SETS)
    (tmp_path / "t.txt").write_text("")
    assert "has no records" in catch_message(tmp_path / "t.txt", SETS)
    assert "item 3" in catch_message(sparse.csr_array(np.eye(4)), SETS)


SERIES = {"type": "series", "length": 2, "min": 0, "max": 9, "nullable": True}
HIDDEN = np.ma.MaskedArray([[1, 2], [3, 4], [5, 6]], [[False, False], [False, True], [False, False]])


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (SERIES, HIDDEN),
        (SERIES, list(HIDDEN)),
        ({"type": "image", "shape": [1, 2]}, HIDDEN[:, None]),
        ({"type": "set", "universe": 2, "max_size": 2}, np.ma.MaskedArray(np.eye(3, 2), HIDDEN.mask)),
    ],
    ids=["series", "list of series", "images", "sets"],
)
def test_what_is_masked_in_arrays_of_several_axes_is_refused(column: dict[str, Any], values: Any) -> None:
    said = catch_message({"x": values}, declare_columns(x=column))
    assert said == "dict: column 'x': row 2 has masked values; fill them, or make them NaN: `.filled(np.nan)`"
    shown = [row for row in values if not np.ma.is_masked(row)]
    whole = values[[0, 2]] if isinstance(values, np.ndarray) else shown
    assert len(read_codes({"x": whole}, declare_columns(x=column))["x"]) == 2


def test_a_masked_value_is_a_missing_one() -> None:
    age = declare_columns(age={"type": "integer", "min": 0, "max": 9, "nullable": True})
    for values in ([1, np.ma.masked, 2], np.ma.MaskedArray([1, 7, 2], [False, True, False])):
        assert read_codes({"age": values}, age) == {"age": [1, 10, 2]}


def test_series_problems(tmp_path: Path) -> None:
    schema = declare_columns(load={"type": "series", "length": 3, "min": 0, "max": 9})
    (tmp_path / "t.csv").write_text("load_0,load_1\n1,2\n")
    assert "column 'load_2' is missing" in catch_message(tmp_path / "t.csv", schema)
    (tmp_path / "t.csv").write_text("load_0,load_1,load_2\n1,2,3\n1,x,3\n")
    assert "column 'load', step 1: row 2: 'x' is not a number" in catch_message(tmp_path / "t.csv", schema)
    (tmp_path / "t.csv").write_text("load_0,load_1,load_2\n1,,3\n")
    assert "column 'load'" in catch_message(tmp_path / "t.csv", schema)
    assert "column 'load'" in catch_message({"load": [[1, 2, 3], [1, 2]]}, schema)


def test_records_of_several_types_are_capped_and_counted() -> None:
    schema = Schema.from_dict(
        {
            "unit": "who",
            "cap": 2,
            "columns": {"x": {"type": "categorical", "values": ["1", "b", "2.5"], "nullable": True}},
        }
    )
    source = {"who": [1, 1.0, "1", 2, Decimal("2.0"), "c"], "x": [1, "b", 2.5, None, 2.5, True]}
    records = encode(read(source, schema), schema)
    assert records.codes["x"].tolist() == [0, 1, 3, 2, 0]
    assert records.unit is not None
    assert records.unit.tolist() == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("matrix", [np.array([[1, 0], [0, None]], object), np.array([["1", "0"]]), np.zeros((2, 2, 2))])
def test_a_matrix_of_anything_but_numbers_is_no_set(matrix: Any) -> None:
    assert "give it a matrix of 0 and 1, or lists of items" in catch_message({"items": matrix}, NUMBERED)


def test_arrays_that_a_text_among_them_would_spell_otherwise() -> None:
    column = {"type": "categorical", "values": ["1", "o"], "undeclared": "other", "other": "o"}
    assert "is an array of float64, but is read as text" in catch_message(
        {"x": np.array([1.0])}, declare_columns(x=column)
    )
    assert read_codes({"x": np.array([1])}, declare_columns(x=column)) == {"x": [0]}
    assert read_codes({"x": np.array([1.0])}, declare_columns(x=column), private=False) == {"x": [0]}
    number = {"type": "continuous", "min": 0, "max": 9}
    assert "is an array of text; save it as numbers" in catch_message(
        {"x": np.array(["1.5"])}, declare_columns(x=number)
    )
    written = declare_columns(x={**number, "format": "1.234,5"})
    assert "is an array of float64, but is read as text" in catch_message({"x": np.array([1.5])}, written)
    assert read_codes({"x": np.array(["1,5"])}, written) == read_codes(
        {"x": np.array([1.5])}, declare_columns(x=number)
    )


def test_null_spellings_are_numbers_too(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {"nulls": ["-1"], "columns": {"n": {"type": "integer", "min": -9, "max": 9, "nullable": True}}}
    )
    for values in ([3, -1], [3.0, -1.0]):
        np.savez(tmp_path / "t.npz", n=np.array(values))
        assert read_codes(tmp_path / "t.npz", schema) == {"n": [12, 19]}
