"""Workbooks, JSON lines, databases and pipes: each record is read alone, and bad input gets a message of one line."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import sys
from collections.abc import Callable
from datetime import datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import polars
import pytest

from sundog.data.reading.database import hide_secrets
from sundog.data.reading.read import encode, read
from sundog.data.reading.source import PipedInput
from sundog.data.schema import Schema
from sundog.errors import DataError, SundogError

Row = dict[str, Any]

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "integer", "min": 0, "max": 99, "nullable": True, "out_of_bounds": "clamp"},
    "weight": {"type": "continuous", "min": 0, "max": 100, "nullable": True, "out_of_bounds": "clamp"},
    "job": {"type": "categorical", "values": ["cook", "7", "2.5", "rest"], "undeclared": "other", "other": "rest",
            "nullable": True},
    "grade": {"type": "categorical", "values": [1, 2, 3, 9], "undeclared": "other", "other": 9, "nullable": True},
    "level": {"type": "ordinal", "values": ["low", "high"], "undeclared": "other", "other": "low", "nullable": True},
    "smokes": {"type": "boolean", "nullable": True},
    "seen": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "resolution": "day", "nullable": True,
             "out_of_bounds": "clamp"},
}  # fmt: skip
SCHEMA = Schema.from_dict({"nulls": ["", "NA"], "columns": COLUMNS})
ROWS: list[Row] = [
    {"age": 31, "weight": 71.5, "job": "cook", "grade": 1, "level": "low", "smokes": "yes", "seen": "2020-03-01"},
    {"age": 47, "weight": 80, "job": 7, "grade": 2, "level": "high", "smokes": "no", "seen": "2020-04-01T12:00:00"},
    {"age": None, "weight": None, "job": None, "grade": None, "level": None, "smokes": None, "seen": None},
    {"age": "22", "weight": "1.5", "job": 2.5, "grade": "3", "level": "NA", "smokes": 1, "seen": "2020-12-31"},
]
CODES = {
    "age": [31, 47, 100, 22],
    "job": [0, 1, 4, 2],
    "grade": [0, 1, 4, 2],
    "level": [0, 1, 2, 2],
    "smokes": [1, 0, 2, 1],
    "seen": [60, 91, 366, 365],
}


def write_json_lines(rows: list[Row], folder: Path) -> Any:
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps({k: v for k, v in row.items() if v is not None}) + "\n" for row in rows))
    return path


def write_packed_json_lines(rows: list[Row], folder: Path) -> Any:
    path = folder / "t.ndjson.gz"
    path.write_bytes(gzip.compress(write_json_lines(rows, folder).read_bytes()))
    return path


def write_workbook(rows: list[Row], folder: Path) -> Any:
    book = openpyxl.Workbook()
    sheet: Any = book.active
    sheet.append(list(rows[0]))
    for row in rows:
        sheet.append([float(value) if isinstance(value, Decimal) else value for value in row.values()])
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx"


def write_database(rows: list[Row], folder: Path) -> Any:
    path = folder / "t.db"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"CREATE TABLE people ({', '.join(rows[0])})")
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO people VALUES ({marks})", [tuple(row.values()) for row in rows])  # noqa: S608
    connection.close()
    return f"sqlite:///{path}?table=people"


READERS: dict[str, Callable[[list[Row], Path], Any]] = {
    "jsonl": write_json_lines,
    "jsonl.gz": write_packed_json_lines,
    "xlsx": write_workbook,
    "sqlite": write_database,
}
every_reader = pytest.mark.parametrize("reader", READERS)


def read_codes(source: Any, schema: Schema = SCHEMA) -> dict[str, list[int]]:
    return {name: values.tolist() for name, values in encode(read(source, schema), schema).codes.items()}


@every_reader
def test_records_are_those_that_were_written(reader: str, tmp_path: Path) -> None:
    rows = [
        row for row in ROWS if reader != "xlsx" or row["age"] is not None
    ]  # an empty row of a sheet is not a record
    kept = [place for place, row in enumerate(ROWS) if row in rows]
    found = read_codes(READERS[reader](rows, tmp_path))
    assert {name: found[name] for name in CODES} == {name: [c[i] for i in kept] for name, c in CODES.items()}


# --- each record is read by itself ---

HOSTILE: list[Any] = [
    None, "", "NA", " ", "x", "7", "7.0", "007", "1e3", "nan", "true", "2020-03-01", "2020-03-01T00:00:00+05:00",
    0, 1, 7, -1, 2**53 + 1, 2**62, 2.5, 7.0, 1e300, -0.0, True, False,
]  # fmt: skip
TYPED: dict[str, list[Any]] = {
    "jsonl": [float("nan"), 10**30, [1, 2], ["a", 1], []],
    "xlsx": [datetime(2020, 3, 1), datetime(1999, 1, 1), time(12, 30)],
    "sqlite": [b"7", b"\xff\x00", b"cook"],
}


@pytest.mark.parametrize("reader", TYPED)
@pytest.mark.parametrize("name", COLUMNS)
def test_one_more_record_changes_no_other(reader: str, name: str, tmp_path: Path) -> None:
    """Any record, anywhere, is refused or leaves the codes of the others unchanged."""
    rows = [ROWS[0], ROWS[1], ROWS[3]]
    alone = read_codes(READERS[reader](rows, tmp_path))
    read_too = 0
    for number, value in enumerate([*HOSTILE, *TYPED[reader]]):
        more, place = {**ROWS[0], name: value}, len(rows) * (number % 2)
        try:
            found = read_codes(READERS[reader]([*rows[:place], more, *rows[place:]], tmp_path))
        except DataError as error:
            assert len(str(error).splitlines()) == 1  # noqa: PT017
            continue
        others = {key: values[:place] + values[place + 1 :] for key, values in found.items()}
        assert others == alone, (value, place)
        read_too += 1
    assert read_too > 3


@pytest.mark.parametrize("key", ["_extra", "Age", "age_0", "indices", ""])
def test_a_key_that_one_record_has_and_no_other_changes_nothing(key: str, tmp_path: Path) -> None:
    assert read_codes(write_json_lines([*ROWS, {key: [1, "x"]}], tmp_path))["age"][:4] == CODES["age"]


@pytest.mark.parametrize("more", [{"load_0": 9, "load_1": 9}, {"load": [3, 4]}, {"indptr": [0], "basket": ["tea"]}])
def test_no_record_says_how_others_are_put_together(more: Row, tmp_path: Path) -> None:
    columns: dict[str, dict[str, Any]] = {
        "load": {"type": "series", "length": 2, "min": 0, "max": 9, "resolution": 1, "nullable": True},
        "basket": {"type": "set", "universe": ["tea", "milk"], "max_size": 2},
    }
    schema = Schema.from_dict({"columns": columns})
    rows: list[Row] = [{"load": [1, 2], "basket": ["tea"]}, {"load": [3, None], "basket": ["milk", "tea"]}]
    found = []
    for records in (rows, [*rows, {"load": [0, 0], "basket": [], **more}]):
        codes = encode(read(write_json_lines(records, tmp_path), schema), schema).codes
        found.append((codes["load"][:2].tolist(), codes["basket"].toarray()[:2].tolist()))
    assert found[0] == found[1] == ([[1, 2], [3, 10]], [[1, 0], [1, 1]])


def test_what_is_not_declared_may_be_anything(tmp_path: Path) -> None:
    assert (
        read_codes(write_json_lines([{**ROWS[0], "address": {"city": "Ulm"}}, *ROWS[1:]], tmp_path))["age"]
        == CODES["age"]
    )


def test_sets_and_series_are_lists(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {
            "columns": {
                "basket": {"type": "set", "universe": ["tea", "milk"], "max_size": 2},
                "load": {"type": "series", "length": 2, "min": 0, "max": 9, "resolution": 1},
            }
        }
    )
    path = write_json_lines([{"basket": ["tea"], "load": [1, 2]}, {"basket": [], "load": [3, 4.0]}], tmp_path)
    found = encode(read(path, schema), schema).codes
    assert found["basket"].toarray().tolist() == [[1, 0], [0, 0]]
    assert found["load"].tolist() == [[1, 2], [3, 4]]


# --- what is refused ---


def catch_message(source: Any, schema: Schema = SCHEMA) -> str:
    with pytest.raises(SundogError) as error:
        encode(read(source, schema), schema)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"age": 1}\n{"age": 2\n{"age": 3}\n', "t.jsonl: line 2 is not a JSON object; write one object a line"),
        (b'{"age": 1}\n\n[1, 2]\n', "t.jsonl: line 3 is not a JSON object"),
        (b'{"age": 1}\n7\n', "t.jsonl: line 2 is not a JSON object"),
        (
            b'{"age": {"years": 1}}\n',
            "t.jsonl: line 1: 'age' holds an object; give each of its values a key of its own",
        ),
        (b'{"age": [[1]]}\n', "t.jsonl: line 1: 'age' holds a list of lists or objects"),
        (b'{"age": 1, "age": 2}\n', "t.jsonl: line 1: the key 'age' occurs twice; keep one"),
        (b'{"age": 1}\n{"x": {"a": 1, "a": 2}}\n', "t.jsonl: line 2: the key 'a' occurs twice"),
        (b'{"age": "\xff"}\n', "t.jsonl: line 1 is not UTF-8 text"),
        (b"[" * 100_000 + b"\n", "t.jsonl: line 1 is not a JSON object"),
        (b'{"age": ' + b"9" * 5000 + b"}\n", "t.jsonl: line 1 is not a JSON object"),
        (b"", "t.jsonl: has no records"),
        (b"\n\n", "t.jsonl: has no records"),
        (b'{"Age": 1}\n', "t.jsonl: column 'age' is missing"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_json_lines(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(content)
    schema = Schema.from_dict({"columns": {"age": COLUMNS["age"]}})
    assert catch_message(tmp_path / "t.jsonl", schema).startswith(said)


def test_json_lines_with_a_mark_at_the_start_and_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(b'\xef\xbb\xbf{"age": 1}\r\n{"age": 2, "note": "a\xe2\x80\xa8b"}\r\n')
    schema = Schema.from_dict({"columns": {"age": COLUMNS["age"]}})
    assert read_codes(tmp_path / "t.jsonl", schema) == {"age": [1, 2]}


def test_sheets(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    first: Any = book.active
    first.title = "Adults"
    first.append(["age"])
    first.append([31])
    second = book.create_sheet("The rest")
    second.append(["age", None])
    second.append([7])
    book.save(tmp_path / "t.xlsx")
    schema = Schema.from_dict({"columns": {"age": COLUMNS["age"]}})
    assert read_codes(f"{tmp_path}/t.xlsx?sheet=Adults", schema) == {"age": [31]}
    assert read_codes(Path(f"{tmp_path}/t.xlsx?sheet=The rest"), schema) == {"age": [7]}
    assert "has several sheets ('Adults', 'The rest'); name one" in catch_message(tmp_path / "t.xlsx", schema)
    assert "there is no sheet 'Adult'; did you mean 'Adults'?" in catch_message(
        f"{tmp_path}/t.xlsx?sheet=Adult", schema
    )


def test_a_cell_that_is_no_xml(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["age"], ["\ud800"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    schema = Schema.from_dict({"columns": {"age": COLUMNS["age"]}})
    assert "cannot be read as a workbook" in catch_message(tmp_path / "t.xlsx", schema)


def test_polars_types_that_arrow_does_not_have() -> None:
    schema = Schema.from_dict({"columns": {"age": COLUMNS["age"]}})
    assert "cannot be read" in catch_message(polars.DataFrame({"age": [2**70]}), schema)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "its first row is empty"),
        ([[None, None]], "its first row is empty"),
        ([["age", None, "x"], [1, 2, 3]], "column 2 has no name in the first row"),
        ([["age", "age"], [1, 2]], "column 'age' occurs twice"),
        ([["age"], [1], [2, 3]], "row 3 has a value in a column without a name"),
        ([["age"]], "has no records"),
        ([["Age"], [1]], "column 'age' is missing (did you mean 'Age'?)"),
    ],
    ids=str,
)
def test_bad_sheets(rows: list[list[Any]], said: str, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    assert said in catch_message(tmp_path / "t.xlsx", Schema.from_dict({"columns": {"age": COLUMNS["age"]}}))


@pytest.mark.parametrize("content", [b"", b"PK", b"age\n1\n", b"PK\x03\x04" + bytes(100)], ids=repr)
def test_files_that_are_no_workbooks(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").write_bytes(content)
    assert catch_message(tmp_path / "t.xlsx").startswith("t.xlsx: ")
    assert "there is no such file" in catch_message(tmp_path / "none.xlsx")


def test_queries_and_views(tmp_path: Path) -> None:
    url = write_database(ROWS, tmp_path).partition("?")[0]
    schema = Schema.from_dict({"columns": {"age": COLUMNS["age"]}})
    assert read_codes(f"{url}?query=SELECT age FROM people WHERE age > 40 AND job != ':x'", schema) == {"age": [47, 22]}  # noqa: S608
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute('CREATE VIEW "two words" AS SELECT age FROM people WHERE age = 31')
    connection.close()
    assert read_codes(f"{url}?table=two words", schema) == {"age": [31]}


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("?table=peopel", "there is no table 'peopel'; did you mean 'people'?"),
        ("", "name one table (?table=people) or one query"),
        ("?table=people&query=SELECT 1", "name one table (?table=people) or one query"),
        ("?table=people&table=x", "name one table"),
        ("?query=SELEC 1", "cannot be read"),
        ("?query=SELECT 1 AS a, 2 AS a", "column 'a' occurs twice"),
        ("?query=DELETE FROM people", "returns no records; write a SELECT"),
        ("?table=people'; DROP TABLE people; --", "there is no table"),
    ],
    ids=str,
)
def test_bad_queries(end: str, said: str, tmp_path: Path) -> None:
    url = write_database(ROWS, tmp_path)
    assert said in catch_message(url.partition("?")[0] + end)
    assert read_codes(url)["age"] == CODES["age"]  # nothing has changed there


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert "there is no such file" in catch_message(f"sqlite:///{tmp_path}/none.db?table=people")
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "t.db").write_bytes(b"age\n1\n" * 100)
    assert "cannot be read" in catch_message(f"sqlite:///{tmp_path}/t.db?table=people")
    assert "does not support the database" in catch_message("nosuchdb://host/x?table=people")
    assert "is not a database URL" in catch_message("sqlite://:x:y:z//?table=people")


@pytest.mark.parametrize("url", [
    "postgresql+nosuchdriver://ann:s3cr3t@host/db?table=people",
    "postgresql://ann:s3cr3t@host/db",
    "nosuchdb://ann:s3cr3t@host/db?table=people",
    "nosuchdb://ann:pa?s3cr3t@host/db?table=people",
    "nosuchdb://ann:p@s3cr3t@host?table=people",
    "nosuchdb://host/db?table=people&password=s3cr3t",
    "mysql://ann:s3cr3t@host:notaport/db?table=people",
])  # fmt: skip
def test_a_password_is_never_shown(url: str) -> None:
    assert "s3cr3t" not in catch_message(url)
    assert "s3cr3t" not in hide_secrets(url)


@pytest.mark.parametrize(
    ("module", "extra", "source"),
    [("openpyxl", "xlsx", "t.xlsx"), ("sqlalchemy", "sql", "sqlite:///t.db?table=people")],
)
def test_what_is_missing_says_which_extra_to_install(
    module: str, extra: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert catch_message(source) == f"{module} is not installed; install it with: pip install 'sundog[{extra}]'"


# --- drafts and pipes ---


@every_reader
def test_drafts(reader: str, tmp_path: Path) -> None:
    rows = [{"age": age, "job": job} for age, job in zip(range(30), ["cook", "nurse", None] * 10, strict=True)]
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        schema = Schema.draft(READERS[reader](rows, tmp_path))
    assert schema.to_dict()["columns"] == {
        "age": {"type": "integer", "min": 0, "max": 29},
        "job": {"type": "categorical", "values": ["cook", "nurse"], "nullable": True},
    }


def test_every_format_comes_through_a_pipe() -> None:
    frame = pd.DataFrame({"age": [31, 47], "job": ["cook", "7"]})
    schema = Schema.from_dict({"columns": {name: COLUMNS[name] for name in ("age", "job")}})
    content: dict[str, bytes] = {
        "csv": frame.to_csv(index=False).encode(),
        "csv packed": gzip.compress(frame.to_csv(index=False).encode()),
        "tsv": frame.to_csv(index=False, sep="\t").encode(),
        "jsonl": frame.to_json(orient="records", lines=True).encode(),
        "parquet": frame.to_parquet(),
    }
    for kind, save in (("arrow", frame.to_feather), ("xlsx", lambda file: frame.to_excel(file, index=False))):
        file = io.BytesIO()
        save(file)
        content[kind] = file.getvalue()
    archive = io.BytesIO()
    np.savez(archive, age=frame["age"].to_numpy(), job=frame["job"].to_numpy(str))
    content["npz"] = archive.getvalue()
    for kind, data in content.items():
        assert read_codes(PipedInput(f"stdin.{kind.split()[0]}", data), schema) == {"age": [31, 47], "job": [0, 1]}, (
            kind
        )
    assert "stdin.csv" in catch_message(PipedInput("stdin.csv", b"age,job\n1\n"), schema)
    assert "stdin.csv: is empty" in catch_message(PipedInput("stdin.csv", b""), schema)
