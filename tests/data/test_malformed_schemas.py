"""Errors about schemas are one line that names file, column and fix."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.schema_files import catch_message, write

from sundog.data.columns import IntegerColumn
from sundog.data.schema import Schema
from sundog.data.schema_yaml import MAX_BYTES
from sundog.errors import SchemaError


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ("{type: intger, min: 0, max: 1}", "column 'age': unknown type 'intger'; did you mean 'integer'?"),
        ("{type: zzz}", "column 'age': unknown type 'zzz'; choose from categorical, ordinal, boolean, integer"),
        ("{min: 0, max: 1}", "column 'age': type is missing; choose from categorical"),
        ("{type: [a]}", "column 'age': unknown type a list"),
        ("5", "column 'age': must be a mapping such as {type: boolean}, got 5"),
        ("", "column 'age': must be a mapping such as {type: boolean}, got nothing"),
        ("[integer]", "column 'age': must be a mapping"),
        (
            "{type: integer, min: 0, max: 1, nulable: true}",
            "column 'age': unknown key 'nulable'; did you mean 'nullable'?",
        ),
        ("{type: boolean, zzz: 1}", "column 'age': unknown key 'zzz'; choose from type, nullable"),
        ("{type: boolean, 5: 1}", "column 'age': unknown key 5; remove it"),
        ("{type: boolean, <<: {a: 1}}", "column 'age': unknown key '<<'"),
        ("{type: integer, min: 17, max: 10}", "column 'age': max (10) is below min (17); swap them"),
        ("{type: integer, max: 10}", "column 'age': min is missing; declare it, or say `learn: true`"),
        ("{type: integer, min: a, max: 10}", "column 'age': min must be a whole number, got 'a'"),
        ("{type: integer, min: 1.5, max: 10}", "column 'age': min must be a whole number, got 1.5"),
        ("{type: integer, min: true, max: 10}", "column 'age': min must be a number, got True"),
        (
            "{type: integer, min: -9223372036854775808, max: 9223372036854775807}",
            "column 'age': 18446744073709551616 codes",
        ),
        ("{type: integer, min: 0, max: 9, step: 0}", "column 'age': step must be at least 1, got 0"),
        ("{type: integer, min: 0, max: 9, edges: [5, 3]}", "column 'age': edges must be in ascending order"),
        ("{type: integer, min: 0, max: 9, edges: [5, 30]}", "column 'age': edge 30 is outside min (0) and max (9)"),
        ("{type: integer, min: 0, max: 9, edges: x}", "column 'age': edges must be a list"),
        ("{type: integer, min: 0, max: 9, edges: []}", "column 'age': edges must be a list of at least one"),
        ("{type: integer, min: 0, max: 9, edges: [5], bins: 3}", "column 'age': edges and bins are both given"),
        ("{type: integer, min: 0, max: 9, bins: quantile}", "column 'age': bins must be a whole number or 'quantiles'"),
        (
            "{type: integer, min: 0, max: 9, out_of_bounds: clip}",
            "out_of_bounds must be 'error' or 'clamp', got 'clip'",
        ),
        ("{type: continuous, min: 0, max: .inf}", "column 'age': max must be a number, got '.inf'"),
        ("{type: continuous, min: 0, max: 1e400}", "column 'age': max must be a finite number, got inf"),
        ("{type: continuous, min: 0, max: 1, resolution: 0}", "column 'age': resolution must be above 0"),
        ("{type: continuous, min: 0, max: 1e9, resolution: 1e-9}", "column 'age': resolution (1e-09) is too fine"),
        ("{type: continuous, min: -1e308, max: 1e308}", "column 'age': the range from -1e+308 to 1e+308 is too wide"),
        ("{type: categorical}", "column 'age': values is missing; list the categories"),
        ("{type: categorical, values: []}", "column 'age': values is empty; list the categories"),
        ("{type: categorical, values: a}", "column 'age': values must be a list such as [a, b], got 'a'"),
        ("{type: categorical, values: [a, b, a]}", "column 'age': values lists 'a' twice; keep one"),
        ("{type: categorical, values: [a, 1]}", "column 'age': values mixes types; quote them all"),
        (
            "{type: categorical, values: [1, 99999999999999999999]}",
            "column 'age': values holds a number beyond 64 bits",
        ),
        (
            "{type: datetime, min: 2020-01-01, max: 2020-01-02, format: '%Y%z'}",
            "format has an offset (%z) but no timezone",
        ),
        ("{type: categorical, values: [a, null]}", "column 'age': an empty value is not a category"),
        (
            "{type: categorical, values: [a, [b]]}",
            "column 'age': a category must be text, a number or a boolean, got a list",
        ),
        ("{type: categorical, values: [a], undeclared: other}", "column 'age': undeclared is other, but `other`"),
        (
            "{type: categorical, values: [a], undeclared: other, other: b}",
            "column 'age': other ('b') is not one of the values",
        ),
        (
            "{type: categorical, values: [a], other: a}",
            "column 'age': `other` is named, but undeclared values are errors",
        ),
        ("{type: boolean, true: x, false: X}", "column 'age': true and false are both spelled 'x'"),
        ("{type: boolean, learn: true}", "column 'age': a boolean column has nothing to learn"),
        ("{type: boolean, nullable: maybe}", "column 'age': nullable must be true or false, got 'maybe'"),
        (
            "{type: datetime, min: 2020-01-02, max: 2020-01-01}",
            "column 'age': max (2020-01-01) is below min (2020-01-02)",
        ),
        ("{type: datetime, min: soon, max: 2020-01-01}", "column 'age': 'soon' is not a time; write it as 2020-12-31"),
        ("{type: datetime, min: 2020-01-01Z, max: 2020-01-02}", "column 'age': '2020-01-01Z' is not a time"),
        ("{type: datetime, min: 2020-01-01T00:00Z, max: 2020-01-02}", "has an offset but no timezone is declared"),
        ("{type: datetime, min: 2020, max: 2021}", "column 'age': min must be text"),
        (
            "{type: datetime, min: 2020-01-01, max: 2020-01-02, timezone: Mars}",
            "column 'age': timezone 'Mars' is not known",
        ),
        (
            "{type: datetime, min: 2020-01-01, max: 2020-01-02, timezone: ../x}",
            "column 'age': timezone '../x' is not known",
        ),
        (
            "{type: datetime, min: 2020-01-01, max: 2020-01-02, format: iso}",
            "column 'age': format 'iso' is not a time format",
        ),
        (
            "{type: datetime, min: 2020-01-01, max: 2020-01-02, resolution: week}",
            "column 'age': resolution must be 'day'",
        ),
        ("{type: image}", "column 'age': shape is missing; add it"),
        ("{type: image, shape: [28]}", "column 'age': shape has 1 numbers; write [height, width]"),
        ("{type: image, shape: [28, 0]}", "column 'age': shape must be at least 1, got 0"),
        ("{type: image, shape: [2, 2], levels: 1}", "column 'age': levels must be at least 2, got 1"),
        ("{type: image, shape: [2, 2], nullable: true}", "column 'age': an image column cannot be `nullable`"),
        ("{type: series, min: 0, max: 1}", "column 'age': length is missing; add it"),
        ("{type: series, length: 3, min: 2, max: 1}", "column 'age': max (1.0) is below min (2.0); swap them"),
        ("{type: set, universe: 5}", "column 'age': max_size is missing; add it"),
        ("{type: set, universe: [], max_size: 1}", "column 'age': universe is empty"),
        ("{type: set, universe: [a, a], max_size: 1}", "column 'age': universe lists 'a' twice"),
        ("{type: set, universe: few, max_size: 1}", "column 'age': universe must be a whole number or a list"),
        ("{type: set, universe: 5, max_size: 9}", "column 'age': max_size (9) is above the number of items (5)"),
        ("{type: set, universe: 5, max_size: 2, nullable: true}", "column 'age': a set column cannot be `nullable`"),
        ("{type: boolean}\n  age: {type: boolean}", "at line 3, column 3: 'age' is given twice"),
        ("{type: integer, min: 1, max: 2, min: 3}", "'min' is given twice"),
    ],
)
def test_malformed_columns(tmp_path: Path, column: str, says: str) -> None:
    message = catch_message(write(tmp_path, f"columns:\n  age: {column}\n"))
    assert says in message
    assert says.startswith("column") <= message.startswith("column")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty; declare `columns`"),
        ("# nothing\n", "is empty"),
        ("hello", "must be a mapping with `columns`, got 'hello'"),
        ("[1, 2]", "must be a mapping with `columns`, got a list"),
        ("a: [", "not a valid schema file at line 2"),
        ("\t- x", "not a valid schema file at line 1, column 1"),
        ("a: *b", "found undefined alias"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("[" * 5000, "not a valid schema file"),
        ("a: " + "[" * 900 + "]" * 900, "nested too deeply"),
        ("\x00", "not a valid schema file"),
        ("[1]: 2", "a key must be a name"),
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        ("reviewed: true", "columns is missing; add it"),
        ("columns:", "columns must be a mapping of names to columns, got nothing"),
        ("columns: [age]", "columns must be a mapping of names to columns, got a list"),
        ("columns: {}", "columns is empty; declare at least one column"),
        ("columns: {2020: {type: boolean}}", "the column name 2020 is not text; put it in quotes"),
        ("columns: {true: {type: boolean}}", "the column name True is not text; put it in quotes"),
        ("columns: {'': {type: boolean}}", "a column has an empty name"),
        ("sundog: 2\ncolumns: {a: {type: boolean}}", "sundog must be 1, got 2"),
        ("reviewd: true\ncolumns: {a: {type: boolean}}", "unknown key 'reviewd'; did you mean 'reviewed'?"),
        ("records: many\ncolumns: {a: {type: boolean}}", "records must be a whole number, got 'many'"),
        ("records: 0\ncolumns: {a: {type: boolean}}", "records must be at least 1, got 0"),
        (
            f"records: {10**18}\ncolumns: {{a: {{type: boolean}}}}",
            f"records must be at most {10**11}, got {10**18}",
        ),
        (f"records: {10**11 + 1}\ncolumns: {{a: {{type: boolean}}}}", f"records must be at most {10**11}"),
        ("unit: a\ncolumns: {a: {type: boolean}}", "column 'a' is the privacy unit and is not synthesised; remove it"),
        ("cap: 3\ncolumns: {a: {type: boolean}}", "cap is given without unit; name the column"),
        ("unit: p\ncap: 0\ncolumns: {a: {type: boolean}}", "cap must be at least 1, got 0"),
        ("nulls: [NA, 9]\ncolumns: {a: {type: boolean}}", "nulls must be text (put it in quotes), got 9"),
        ("nulls: []\ncolumns: {a: {type: boolean}}", "nulls must be a list of at least one"),
        ("delimiter: ab\ncolumns: {a: {type: boolean}}", "delimiter must be one character, got 'ab'"),
        ("columns: {a: {type: zz}, b: {type: yy}}", "column 'a': unknown type 'zz'"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str | bytes, says: str) -> None:
    assert says in catch_message(write(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no such file; check the path" in catch_message(tmp_path / "nothing.yaml")
    assert "is a folder" in catch_message(tmp_path)
    assert "is larger than 16 MiB; is it the data?" in catch_message(write(tmp_path, b"#" * (MAX_BYTES + 1)))


def test_several_problems_are_counted(tmp_path: Path) -> None:
    assert catch_message(write(tmp_path, "columns: {a: {type: zz}, b: {type: yy}}")).endswith("(and 1 more)")


@pytest.mark.timeout(120)
def test_bombs_are_harmless(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 20)]
    assert "columns is missing" in catch_message(write(tmp_path, "\n".join(levels)))
    assert "got a list" in catch_message(
        write(tmp_path, "\n".join([*levels, "columns: {a: {type: categorical, values: *a19}}"]))
    )
    merges = ["a0: &a0 {k0: x}"]
    merges += [f"a{i}: &a{i} {{k{i}: x, <<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 20)]
    assert "columns is missing" in catch_message(write(tmp_path, "\n".join(merges)))


def test_errors_from_python_are_one_line_too() -> None:
    with pytest.raises(SchemaError, match=r"^release: column 'a': max \(1\) is below min \(2\); swap them$"):
        Schema.from_dict({"columns": {"a": {"type": "integer", "min": 2, "max": 1}}}, where="release")
    with pytest.raises(SchemaError, match=r"^schema: must be a mapping"):
        Schema.from_dict([1])
    schema = Schema.from_dict({"unit": "p", "columns": {"a": {"type": "boolean"}}})
    with pytest.raises(SchemaError, match="is the privacy unit"):
        schema.with_columns({"p": IntegerColumn(min=0, max=1)})
