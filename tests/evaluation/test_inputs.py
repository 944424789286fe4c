"""From what was given to records that can be compared."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.small_tables import COLUMNS, SCHEMA, make_frame, make_wide_frame

from sundog.data.columns.listed import UNDECLARED
from sundog.data.schema import Schema
from sundog.errors import DataError, SchemaError
from sundog.evaluation.evaluator import Report, evaluate
from sundog.evaluation.inputs import EvaluationRequest, read_inputs
from sundog.evaluation.side_by_side import SideBySide, compare
from sundog.fit.synthesizer import Synthesizer

pytestmark = pytest.mark.usefixtures("fast_reports")


def test_what_another_tool_made_up_is_counted_and_not_refused() -> None:
    strange = pd.DataFrame({"age": [-5, 200, None] * 10, "sex": ["f", "x", None] * 10})
    inputs = read_inputs(EvaluationRequest(strange, real=make_frame(100), schema=SCHEMA))
    synthetic = inputs.comparison.synthetic
    found = {name: list(column.decode(synthetic.codes[name])[:3]) for name, column in synthetic.schema.columns.items()}
    assert [str(value) for value in found["age"]] == ["0", "99", "None"]
    assert [str(value) for value in found["sex"]] == ["f", UNDECLARED, "None"]


def test_without_a_holdout_a_quarter_of_the_real_records_stands_in() -> None:
    inputs = read_inputs(EvaluationRequest(make_frame(50, 1), real=make_frame(100), schema=SCHEMA))
    assert len(inputs.comparison.train) == 75
    assert len(inputs.comparison.test) == 25
    assert len(inputs.comparison.real) == 100
    assert any("a random quarter" in note for note in inputs.notes)


def test_with_a_holdout_models_learn_from_all_real_records() -> None:
    inputs = read_inputs(
        EvaluationRequest(make_frame(50, 1), real=make_frame(100), holdout=make_frame(40, 2), schema=SCHEMA)
    )
    assert len(inputs.comparison.train) == 100
    assert len(inputs.comparison.test) == 40
    assert not inputs.notes


def test_of_many_rows_some_are_chosen_and_the_report_says_so() -> None:
    inputs = read_inputs(EvaluationRequest(make_frame(5000, 1), real=make_frame(3000), schema=SCHEMA, rows=1000))
    assert len(inputs.comparison.synthetic) == len(inputs.comparison.real) == 1000
    assert inputs.counts["synthetic"] == 5000
    assert sum("1,000 of" in note for note in inputs.notes) == 2
    whole = read_inputs(
        EvaluationRequest(make_frame(50, 1), real=make_frame(300), holdout=make_frame(300, 2), schema=SCHEMA, rows=100),
        whole_holdout=True,
    )
    assert len(whole.comparison.test) == 300


def test_a_release_brings_its_own_schema(tmp_path: Path) -> None:
    Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(make_frame(100), SCHEMA).release_.save(
        tmp_path / "a.sundog"
    )
    inputs = read_inputs(EvaluationRequest(tmp_path / "a.sundog", real=make_frame(100)))
    assert inputs.release is not None
    assert inputs.name == "a.sundog"
    assert len(inputs.comparison.synthetic) == inputs.release.records
    again = read_inputs(EvaluationRequest(tmp_path / "a.sundog", real=make_frame(100)))
    assert np.array_equal(inputs.comparison.synthetic.codes["age"], again.comparison.synthetic.codes["age"])
    with pytest.raises(SchemaError, match="own schema"):
        read_inputs(EvaluationRequest(tmp_path / "a.sundog", real=make_frame(100), schema=SCHEMA))


def test_bad_input_is_one_line_that_names_the_fix() -> None:
    with pytest.raises(DataError, match=r"no column 'income'.*age, sex"):
        read_inputs(EvaluationRequest(make_frame(50), real=make_frame(50), schema=SCHEMA, target="income"))
    with pytest.raises(DataError, match="5 synthetic records are too few"):
        read_inputs(EvaluationRequest(make_frame(5), real=make_frame(100), schema=SCHEMA))
    with pytest.raises(DataError, match="8 real records are too few"):
        read_inputs(EvaluationRequest(make_frame(50), real=make_frame(10), schema=SCHEMA))
    with pytest.raises(DataError, match=r"19 held-out records are too few.*give more than 76"):
        read_inputs(EvaluationRequest(make_frame(50), real=make_frame(76), schema=SCHEMA))
    with pytest.raises(DataError, match="3 held-out records"):
        read_inputs(EvaluationRequest(make_frame(50), real=make_frame(50), holdout=make_frame(3), schema=SCHEMA))
    with pytest.raises(DataError, match=r"10 held-out records are too few.*use more rows"):
        read_inputs(EvaluationRequest(make_frame(50), real=make_frame(500), schema=SCHEMA, rows=40))
    with pytest.raises(DataError, match="-5 records"):
        read_inputs(EvaluationRequest(make_frame(50), real=make_frame(500), schema=SCHEMA, n=-5))
    undeclared = pd.DataFrame({"age": [1] * 100, "sex": ["x"] * 100})
    with pytest.raises(DataError, match="'sex'"):
        read_inputs(EvaluationRequest(make_frame(50), real=undeclared, schema=SCHEMA))
    with pytest.raises(DataError, match="'sex' is missing"):
        read_inputs(EvaluationRequest(make_frame(50)[["age"]], real=make_frame(100), schema=SCHEMA))
    with pytest.raises(DataError, match="5 records are too few"):
        read_inputs(EvaluationRequest(make_frame(50), real=make_frame(100), schema=SCHEMA, rows=5))


def test_all_records_of_one_person_stay_on_one_side() -> None:
    people = make_frame(400).assign(person=np.repeat(np.arange(100), 4))
    schema = Schema.from_dict({"unit": "person", "cap": 3, "columns": COLUMNS})
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(people, schema).release_
    people["age"] = people["person"]  # so that a record says whose it is
    inputs = read_inputs(EvaluationRequest(release, real=people))
    train, test = (set(part.codes["age"].tolist()) for part in (inputs.comparison.train, inputs.comparison.test))
    assert len(inputs.comparison.train) == 225
    assert len(inputs.comparison.test) == 75
    assert not train & test


def test_a_holdout_that_is_the_real_data_warns_once_and_the_reports_say_so() -> None:
    real, other = make_wide_frame(60, 0), make_wide_frame(60, 1)
    schema = Schema.from_dict({"columns": {**COLUMNS, "size": {"type": "integer", "min": 0, "max": 10**6}}})
    with pytest.warns(UserWarning, match="100% of the held-out records are also among the real ones") as caught:
        report = evaluate(other, real=real, holdout=real, schema=schema)
    assert len(caught) == 1
    assert "100% of the held-out records" in report.notes[0]
    assert "100% of the held-out records" in report.to_html()
    with pytest.warns(UserWarning, match="100% of the held-out records are also among the real ones") as caught:
        found = compare([other, real], real=real, holdout=real, schema=schema)
    assert len(caught) == 1
    assert found.to_html().count("100% of the held-out records") == 1


# --- what is written -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report() -> Report:
    return evaluate(make_frame(40, 1), real=make_frame(100), schema=SCHEMA)


@pytest.mark.parametrize("kind", ["html", "json"])
def test_a_report_is_for_its_owner_only(report: Report, tmp_path: Path, kind: str) -> None:
    out = tmp_path / f"report.{kind}"
    out.write_text("an older one, which everybody may read")
    out.chmod(0o644)
    modes = []
    replace = Path.replace

    def watched(self: Path, target: Path) -> Path:
        modes.append(stat.S_IMODE(self.stat().st_mode))
        return replace(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", watched)
        for each in (report, SideBySide((report, report))):
            getattr(each, f"to_{kind}")(out)
            assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert modes == [0o600, 0o600]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES])
def test_a_full_disk_names_the_file_and_leaves_nothing(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    out = tmp_path / "report.html"
    monkeypatch.setattr(os, "fsync", full)
    said = r"report\.html: cannot be written \(.*\); nothing was kept, .*choose another folder"
    for each in (report, SideBySide((report, report))):
        with pytest.raises(DataError, match=said) as error:
            each.to_html(out)
        assert ("the disk is full" in str(error.value)) == (number != errno.EACCES)
    assert list(tmp_path.iterdir()) == []
