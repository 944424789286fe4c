"""What an audit refuses, in one line that names the file and the fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.auditing.copied_records import TABLE, make_material, make_table

from sundog.auditing import audit_inputs
from sundog.auditing.auditor import audit
from sundog.data.schema import Schema
from sundog.errors import DataError, SchemaError


def call(**changed: Any) -> Any:
    members, nonmembers, synthetic = (make_table(np.random.default_rng(seed), 100) for seed in range(3))
    given = {"members": members, "nonmembers": nonmembers, "schema": TABLE, "attack": "exact-match", **changed}
    return audit(given.pop("synthetic", synthetic), **given)


def write(folder: Path, table: pd.DataFrame) -> Path:
    path = folder / "people.csv"
    table.to_csv(path, index=False)
    return path


def test_members_that_are_also_nonmembers_are_refused(tmp_path: Path) -> None:
    members = make_table(np.random.default_rng(0), 100)
    path = write(tmp_path, members)
    with pytest.raises(DataError, match=r"people.csv: 100% of its records are in DataFrame too; give records that"):
        call(nonmembers=path)
    half = write(tmp_path, pd.concat([members[:50], make_table(np.random.default_rng(7), 50)]))
    with pytest.raises(DataError, match=r"people.csv: 5\d% of its records"):
        call(nonmembers=half)


@pytest.mark.parametrize(("what", "noun"), [("members", "members"), ("nonmembers", "non-members")])
def test_one_row_is_refused(what: str, noun: str, tmp_path: Path) -> None:
    path = write(tmp_path, make_table(np.random.default_rng(5), 1))
    with pytest.raises(DataError, match=rf"people.csv: too few {noun} for an audit: 1; give at least 20"):
        call(**{what: path})


def test_few_synthetic_records_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, make_table(np.random.default_rng(5), 3))
    with pytest.raises(DataError, match=r"people.csv: 3 synthetic records are too few to attack; give at least 20"):
        call(synthetic=path)


def test_a_missing_column_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, make_table(np.random.default_rng(5), 50).drop(columns="income"))
    with pytest.raises(DataError, match=r"people.csv.*'income'"):
        call(members=path)
    path = write(tmp_path, make_table(np.random.default_rng(5), 0))
    with pytest.raises(DataError, match=r"people.csv: has no records"):
        call(nonmembers=path)


def test_undeclared_values_are_refused_in_real_data_and_allowed_in_others(tmp_path: Path) -> None:
    strange = make_table(np.random.default_rng(5), 100).assign(job="astronaut")
    with pytest.raises(DataError, match=r"people.csv: column 'job'.*astronaut"):
        call(members=write(tmp_path, strange))
    assert call(synthetic=write(tmp_path, strange)).findings[0].bound == 0


@pytest.mark.filterwarnings("ignore:.*drafted schema is NOT PRIVATE")
def test_a_draft_from_a_table_in_memory_says_how_to_edit_it(tmp_path: Path) -> None:
    path = write(tmp_path, make_table(np.random.default_rng(5), 100).drop(columns="income"))
    with pytest.raises(
        DataError, match=r"people.csv: column 'income' is missing.*; the schema was drafted from the real"
    ):
        call(nonmembers=path, schema=None)


def test_a_release_has_its_own_schema(tmp_path: Path) -> None:
    from tests.auditing.released_table import make_release

    make_release().save(tmp_path / "r.sundog")
    with pytest.raises(SchemaError, match="a release has its own schema"):
        call(synthetic=tmp_path / "r.sundog")


def test_of_many_records_some_are_used_and_the_audit_says_so() -> None:
    found = call(members=make_table(np.random.default_rng(0), 300), rows=100)
    assert found.about["members"] == 100
    assert "100 of 300 members were used, chosen at random." in found.notes
    assert all(1 <= record.row <= 300 for record in found.worst)
    with pytest.raises(DataError, match="5 records of each kind are too few for an audit; use at least 20"):
        call(rows=5)


@pytest.mark.parametrize("seed", range(5))
def test_the_fewest_records_can_be_audited(seed: int) -> None:
    members, nonmembers = (make_table(np.random.default_rng(part + 10 * seed), 20) for part in (1, 2))
    found = call(members=members, nonmembers=nonmembers, seed=seed)
    assert found.findings[0].bound == 0
    assert found.to_text()
    assert found.to_html()


def make_people(people: int, records: int, seed: int) -> pd.DataFrame:
    table = make_table(np.random.default_rng(seed), people * records)
    return table.assign(id=[f"{seed}/{number}" for number in np.resize(np.arange(people), len(table))])


def test_of_many_people_some_are_used_with_all_their_records() -> None:
    """Members have more people than are used, others have not: nobody's number of records may tell which is which."""
    schema = Schema.from_dict({**TABLE.to_dict(), "unit": "id", "cap": 3})
    found = call(members=make_people(300, 4, 0), nonmembers=make_people(60, 4, 1), schema=schema, rows=60)
    assert (found.about["members"], found.about["non-members"]) == (180, 180)
    assert found.membership.random.scored == 120
    assert max(record.row for record in found.worst) > 300 - 60  # rows are those of the file


def test_few_people_with_many_records_are_refused() -> None:
    schema = Schema.from_dict({**TABLE.to_dict(), "unit": "id", "cap": 30})
    with pytest.raises(DataError, match="too few members for an audit: 2; give at least 20"):
        call(members=make_people(2, 30, 0), nonmembers=make_people(60, 4, 1), schema=schema)


def test_fewer_large_arrays_are_used_unless_a_number_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, *parts = make_material("images", rows=100)
    monkeypatch.setattr(audit_inputs, "_BYTES", 30 * 64)
    given = dict(zip(("members", "nonmembers", "synthetic"), parts, strict=True), schema=schema)
    assert "30 of 100 members were used, chosen at random." in call(**given).notes
    assert "50 of 100 members were used, chosen at random." in call(**given, rows=50).notes
    assert not call().notes
