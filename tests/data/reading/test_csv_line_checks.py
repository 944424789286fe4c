"""A record of a csv is one line: no line changes how another is read, or how many there are."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sundog.data.reading import csv_file
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.errors import DataError, SchemaError

TABLE = Schema.from_dict(
    {
        "columns": {
            "n": {"type": "integer", "min": 0, "max": 999},
            "s": {"type": "categorical", "values": ["a", "o"], "undeclared": "other", "other": "o"},
        }
    }
)


def catch_message(path: Path, schema: Schema = TABLE) -> str:
    with pytest.raises(DataError) as caught:
        encode(read(path, schema), schema)
    message = str(caught.value)
    assert "\n" not in message
    assert ";" in message
    return message


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_an_open_quote_swallows_nothing(tmp_path: Path, name: str) -> None:
    rows = [f"{n},a" for n in range(1000)]
    rows[500] = '500,"a'
    text = "n,s\n" + "\n".join(rows) + "\n"
    (tmp_path / name).write_bytes(text.encode() if name == "t.csv" else gzip.compress(text.encode()))
    assert f"{name}: line 502 leaves a quote open;" in catch_message(tmp_path / name)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'2,"a', "line 3 leaves a quote open"),
        (b'"2,a', "line 3 leaves a quote open"),
        (b'2,"a"b', "line 3 has a quote that neither begins nor ends its field"),
        (b'2,"a" ', "line 3 has a quote that"),
        (b'2,"a\nb"', "line 3 leaves a quote open"),
        (b'2,"a\r\nb"', "line 3 leaves a quote open"),
        (b"2,a\rb", "line 3 contains a carriage return"),
        (b"2,a\r3,a", "line 3 contains a carriage return"),
        (b"2,a\0", "zero byte"),
        (b"2", "row 2 has 1 fields, the header has 2"),
        (b"2,a,", "row 2 has 3 fields, the header has 2"),
    ],
)
def test_a_spoiled_line_is_named(tmp_path: Path, line: bytes, says: str) -> None:
    (tmp_path / "t.csv").write_bytes(b"n,s\n1,a\n" + line + b"\n3,a\n")
    assert says in catch_message(tmp_path / "t.csv")


def test_a_zero_byte_far_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "BLOCK", 64)
    (tmp_path / "t.csv").write_bytes(b"n,s\n" + b"1,a\n" * 50 + b"1,a\0\n")
    assert "line 52 contains a zero byte" in catch_message(tmp_path / "t.csv")


@pytest.mark.parametrize("line", ['1,"a"', '1,5" pipe', '"1","a, ""b"""', "1,a\ufeff", "1,\u2028a\f\x1a", "1,a\r"])
def test_what_stays_within_its_line_is_read(tmp_path: Path, line: str) -> None:
    (tmp_path / "t.csv").write_bytes(f"n,s\n{line}\n2,a\n".encode())
    codes = encode(read(tmp_path / "t.csv", TABLE), TABLE).codes
    assert codes["n"].tolist() == [1, 2]


LINE = st.text(st.sampled_from('ab", \r\n"'), max_size=9)
FIELD = st.text(st.sampled_from('ab" '), max_size=4)


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINE | st.builds("{},{}".format, FIELD, FIELD), max_size=8), block=st.sampled_from([64, 1 << 20]))
@example(lines=['"",",",', 'a,""""'], block=64)
def test_the_lines_of_a_file_are_its_records(tmp_path: Path, lines: list[str], block: int) -> None:
    """An accepted file has one record a line, which is the same when its line is read alone."""
    text = "x,y\n" + "".join(f"{line}\n" for line in lines)
    (tmp_path / "t.csv").write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "BLOCK", block)
        try:
            loaded: Any = csv_file.open_csv(tmp_path / "t.csv").load(["x", "y"])
        except DataError:
            return
    alone = [next(csv.reader([line])) for line in text.replace("\r\n", "\n").split("\n")[1:] if line]
    assert [list(row) for row in zip(*(loaded[name].to_pylist() for name in "xy"), strict=True)] == alone


# --- values that the schema declares with a line break ---------------------------------------------------------------


def declare_values(*values: str) -> Schema:
    column = {"type": "categorical", "values": [*values, "o"], "undeclared": "other", "other": "o"}
    return Schema.from_dict({"columns": {"n": {"type": "integer", "min": 0, "max": 9}, "s": column}})


def test_a_declared_value_may_have_a_line_break(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b'n,s\n1,"a ""b""\nc"\n2,"d, e"\n3,"a ""b""\nc"\n')
    schema = declare_values('a "b"\nc', "d, e")
    codes = encode(read(tmp_path / "t.csv", schema), schema).codes
    assert (codes["n"].tolist(), codes["s"].tolist()) == ([1, 2, 3], [0, 1, 0])


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        (["a\nb"], [b'1,"a', b"2,o", b'b",3']),  # not the declared value
        (["a\nb"], [b'1,"a', b'b",3']),  # it is, but the second line would be a record of its own
        (["a\nb"], [b'1,"x', b'y"']),
        (["a\n"], [b'1,"a', b'",",3']),
        (["a\nb,"], [b'1,"a', b'b,",",3']),
        (["a\nb"], [b"1,o", b'b",3']),
        (["a\nb"], [b'1,5" pipe']),  # only fields in quotes and fields without any
    ],
)
def test_an_open_quote_beside_a_declared_line_break(tmp_path: Path, values: list[str], lines: list[bytes]) -> None:
    schema = declare_values(*values)
    (tmp_path / "t.csv").write_bytes(b"\n".join([b"n,s", *lines, b""]))
    catch_message(tmp_path / "t.csv", schema)


BREAKS = st.text(st.sampled_from('a,"\n'), min_size=1, max_size=3)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(BREAKS, min_size=1, max_size=3, unique=True),
    rows=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    extra=st.text(st.sampled_from('1a,"\n'), max_size=7),
    place=st.integers(0, 4),
)
def test_no_line_completes_another(tmp_path: Path, values: list[str], rows: list[int], extra: str, place: int) -> None:
    schema = declare_values(*values)
    known = [*values, "o"]
    fields = [known[row % len(known)].replace('"', '""') for row in rows]
    lines = [f'{row},"{field}"' for row, field in enumerate(fields)]

    def codes(text: list[str]) -> Any:
        (tmp_path / "t.csv").write_bytes("\n".join(["n,s", *text, ""]).encode())
        found = encode(read(tmp_path / "t.csv", schema), schema).codes
        return list(zip(found["n"].tolist(), found["s"].tolist(), strict=True))

    try:
        before = codes(lines)
        after = codes([*lines[:place], extra, *lines[place:]])
    except DataError:
        return
    at = min(place, len(lines))
    assert after[:at] == before[:at]
    assert len(before) == at or after[at - len(before) :] == before[at:]


@pytest.mark.parametrize("mark", ['"', "\n", "\r", "§", "\0"])
def test_delimiters_that_cannot_be(mark: str) -> None:
    with pytest.raises(SchemaError, match="cannot separate fields"):
        Schema.from_dict({"delimiter": mark, "columns": {"b": {"type": "boolean"}}})


def test_a_carriage_return_in_transactions(tmp_path: Path) -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "set", "universe": 4, "max_size": 3}}})
    (tmp_path / "t.txt").write_bytes(b"1 2\r\n3\r1\n")
    assert "t.txt: line 2 contains a carriage return" in catch_message(tmp_path / "t.txt", schema)
