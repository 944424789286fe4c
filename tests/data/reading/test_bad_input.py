"""Bad input: every problem is a message of one line with a fix."""

from __future__ import annotations

import gzip
import os
import struct
import weakref
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.csv as pacsv
import pytest
from scipy import sparse
from tests.data.reading.declared_sources import (
    FILES,
    IMAGES,
    NUMBERED,
    PIXELS,
    SETS,
    TABLE,
    catch_message,
    declare_columns,
    read_codes,
    to_idx,
)

from sundog.data.reading import csv_file
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.errors import DataError

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
    assert "cannot be read; give" in catch_message(object())


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


def test_the_handle_of_a_csv_file_is_kept(tmp_path: Path) -> None:
    """Freed on a thread of pyarrow while the interpreter ends, it aborted commands that had only a message to give."""
    (tmp_path / "t.csv").write_bytes(GOOD)
    read_csv = pacsv.read_csv
    handles: list[weakref.ref[Any]] = []

    def watch(handle: Any, **options: Any) -> Any:
        handles.append(weakref.ref(handle))
        return read_csv(handle, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pacsv, "read_csv", watch)
        csv_file.open_csv(tmp_path / "t.csv").load(["age"])
    assert handles[0]() is not None
