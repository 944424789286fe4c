"""Schema files survive a round trip."""

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
from tests.data.schema_files import catch_message, write

from sundog.data.columns import CategoricalColumn, IntegerColumn
from sundog.data.records import Records
from sundog.data.schema import Schema
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


def test_as_many_records_as_may_be_declared(tmp_path: Path) -> None:
    """With more, a small file could keep the accountant busy for minutes."""
    assert Schema.load(write(tmp_path, f"records: {10**11}\ncolumns: {{a: {{type: boolean}}}}")).records == 10**11


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
