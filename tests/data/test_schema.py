"""Schema files: they survive a round trip, and errors are one line that names file, column and fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sundog.data.columns import CategoricalColumn, IntegerColumn
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.data.schema_yaml import MAX_BYTES
from sundog.errors import SchemaError

FULL = """\
sundog: 1
reviewed: true
records: 32561
unit: person_id
cap: 3
delimiter: ";"
nulls: ["", NA]
columns:
  age: {type: integer, min: 17, max: 90, edges: [18, 65], unit: years}
  hours: {type: integer, min: 0, max: 100_000, step: 5, out_of_bounds: clamp, bins: 10}
  sex: {type: categorical, values: [Female, Male]}
  smoker: {type: categorical, values: [yes, no, 01, 2020-01-01, 12:30, 1.10, 1_0, "null", "true", "1"]}
  code: {type: categorical, values: [3, 1, 2], nullable: yes}
  flag: {type: categorical, values: [true, false]}
  pain: {type: ordinal, values: [none, some, much], undeclared: other, other: none}
  alive: {type: boolean, true: ja, false: nein}
  weight: {type: continuous, min: 0, max: 200, resolution: 1e-1, bins: quantiles}
  income: {type: continuous, learn: true}
  born: {type: datetime, min: 1900-01-01, max: 2020-12-31, resolution: day, format: "%d.%m.%Y"}
  seen: {type: datetime, min: 2020-01-01T00:00:00, max: 2021-01-01, timezone: Europe/Berlin}
  face: {type: image, shape: [28, 28], levels: 16}
  load: {type: series, length: 96, min: 0, max: 5, nullable: true}
  basket: {type: set, universe: [bread, milk], max_size: 2, undeclared: drop}
"""


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "t.schema.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def catch_message(path: Path) -> str:
    with pytest.raises(SchemaError) as caught:
        Schema.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < len(str(path)) + 300
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_everything_at_once(tmp_path: Path) -> None:
    schema = Schema.load(write(tmp_path, FULL))
    assert list(schema.columns)[:3] == ["age", "hours", "sex"]
    assert (schema.records, schema.unit, schema.cap, schema.delimiter, schema.nulls) == (
        32561,
        "person_id",
        3,
        ";",
        ("", "NA"),
    )
    assert schema.columns["age"].size == 74
    assert schema.columns["hours"].max == 100_000  # type: ignore[union-attr]
    smoker = schema.columns["smoker"]
    assert isinstance(smoker, CategoricalColumn)
    assert smoker.values == ("yes", "no", "01", "2020-01-01", "12:30", "1.10", "1_0", "null", "true", "1")
    assert [type(value) for value in schema.columns["flag"].values] == [bool, bool]  # type: ignore[union-attr]
    assert schema.columns["code"].nullable
    assert not schema.complete
    assert schema.with_columns({"income": IntegerColumn(min=0, max=1)}).complete


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    schema = Schema.load(write(tmp_path, FULL))
    schema.save(tmp_path / "again.yaml")
    assert Schema.load(tmp_path / "again.yaml") == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["again.yaml", "t.schema.yaml"]
    # and PyYAML's own reader, with its other rules, reads the same categories
    again = yaml.safe_load((tmp_path / "again.yaml").read_text())["columns"]
    assert again["smoker"]["values"] == schema.to_dict()["columns"]["smoker"]["values"]


PUBLIC = FULL.replace("unit: person_id\ncap: 3\n", "").replace("nullable: true}", "nullable: true, public: true}")


def test_public_columns_come_back(tmp_path: Path) -> None:
    schema = Schema.load(write(tmp_path, PUBLIC))
    assert [name for name, column in schema.columns.items() if column.public] == ["load"]
    schema.save(tmp_path / "again.yaml")
    assert Schema.load(tmp_path / "again.yaml") == schema


def test_public_columns_and_a_unit_do_not_go_together(tmp_path: Path) -> None:
    both = PUBLIC.replace("records: 32561\n", "records: 32561\nunit: person_id\n")
    message = catch_message(write(tmp_path, both))
    assert message.startswith("column 'load' is public")
    assert message.endswith("remove public or unit")


@pytest.mark.parametrize(("cap", "fine"), [(1, True), (10_000, True), (10_001, False), (0, False)])
def test_a_cap_has_a_limit(cap: int, fine: bool, tmp_path: Path) -> None:
    path = write(tmp_path, FULL.replace("cap: 3", f"cap: {cap}"))
    if fine:
        assert Schema.load(path).cap == cap
    else:
        assert "cap" in catch_message(path)


VALUES = (
    st.lists(st.text(max_size=8), min_size=1, unique=True)
    | st.lists(
        st.sampled_from(["yes", "1e5", "1.0", "~", "null", "0x1", "1:30", "<<", "=", "- a", "a: b"]),
        min_size=1,
        unique=True,
    )
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, unique=True)
    | st.permutations([True, False])
)


@given(st.dictionaries(st.text(min_size=1), VALUES, min_size=1), st.text(min_size=1, max_size=3))
def test_any_name_and_any_value_survives_the_file(tmp_path_factory: Any, columns: dict[str, Any], null: str) -> None:
    path = tmp_path_factory.getbasetemp() / "hypothesis.yaml"
    declared = {name: {"type": "categorical", "values": values} for name, values in columns.items()}
    schema = Schema.from_dict({"nulls": [null], "columns": declared})
    schema.save(path)
    again = Schema.load(path)
    assert again == schema
    for name, values in columns.items():
        kept = again.to_dict()["columns"][name]["values"]
        assert kept == values
        assert [type(value) for value in kept] == [type(value) for value in values]


def test_a_saved_schema_reads_well(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    declared = {"age": {"type": "integer", "max": 90, "nullable": True, "min": 17}, "sex": {"type": "boolean"}}
    Schema.from_dict({"columns": declared}).save(path)
    assert path.read_text().splitlines() == [
        "sundog: 1",
        "reviewed: true",
        "columns:",
        "  age: {type: integer, min: 17, max: 90, nullable: true}",
        "  sex: {type: boolean}",
    ]


def test_a_draft_says_that_it_is_not_private(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    draft = Schema.from_dict({"reviewed": False, "columns": {"sex": {"type": "boolean"}}})
    draft.save(path)
    assert "NOT PRIVATE until someone has reviewed it" in path.read_text().splitlines()[0]
    assert Schema.load(path) == draft


def test_saving_replaces_whole_files_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema.from_dict({"columns": {"sex": {"type": "boolean"}}})
    path = write(tmp_path, "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(SchemaError, match="cannot be written: No space left on device"):
        schema.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "old"
    with pytest.raises(SchemaError, match="cannot be written: No such file or directory"):
        schema.save(tmp_path / "nowhere" / "s.yaml")


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


def test_as_many_records_as_may_be_declared(tmp_path: Path) -> None:
    """With more, a small file could keep the accountant busy for minutes."""
    assert Schema.load(write(tmp_path, f"records: {10**11}\ncolumns: {{a: {{type: boolean}}}}")).records == 10**11


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


def test_records() -> None:
    schema = Schema.from_dict(
        {"columns": {"a": {"type": "boolean"}, "s": {"type": "set", "universe": 3, "max_size": 2}}}
    )
    codes = {"a": np.array([0, 1, 1], np.uint8), "s": sparse.csr_array(np.eye(3, dtype=np.uint8))}
    records = Records(schema, codes, 3)
    assert len(records) == 3
    for index in ([2, 0], np.array([2, 0]), slice(None, None, -2)):
        taken = records.take(index)
        assert len(taken) == 2
        assert taken.codes["a"].tolist() == [1, 0]
        assert taken.codes["s"].toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert len(records.take(np.array([True, False, True]))) == 2
    with pytest.raises(ValueError, match="codes of column 'a' have shape"):
        Records(schema, codes, 4)


def test_the_timezone_of_a_machine_is_no_declaration() -> None:
    column = {"type": "datetime", "min": "2020-01-01", "max": "2021-01-01", "timezone": "localtime"}
    with pytest.raises(SchemaError, match="'localtime' differs between machines; use a name such as"):
        Schema.from_dict({"columns": {"t": column}})


@pytest.mark.parametrize("zone", ["posixrules", "Factory", "right/UTC", "Nowhere/Land", "+05:00", ""])
def test_timezones_that_arrow_does_not_know(zone: str) -> None:
    column = {"type": "datetime", "min": "2020-01-01", "max": "2021-01-01", "timezone": zone}
    with pytest.raises(SchemaError, match="is not known; use a name such as 'Europe/Berlin'"):
        Schema.from_dict({"columns": {"t": column}})
