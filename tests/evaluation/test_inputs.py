"""From what was given to records that can be compared."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError, SchemaError
from sundog.evaluation.comparison import Comparison, shuffle_columns, split, subsample
from sundog.evaluation.evaluator import Report, evaluate
from sundog.evaluation.inputs import UNDECLARED, read_inputs
from sundog.evaluation.side_by_side import SideBySide, compare
from sundog.fit.synthesizer import Synthesizer

COLUMNS = {"age": {"type": "integer", "min": 0, "max": 99}, "sex": {"type": "categorical", "values": ["f", "m"]}}
SCHEMA = Schema.from_dict({"columns": COLUMNS})


def frame(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.integers(0, 100, rows), "sex": rng.choice(["f", "m"], rows)})


def test_what_another_tool_made_up_is_counted_and_not_refused() -> None:
    strange = pd.DataFrame({"age": [-5, 200, None] * 10, "sex": ["f", "x", None] * 10})
    inputs = read_inputs(strange, real=frame(100), schema=SCHEMA)
    synthetic = inputs.comparison.synthetic
    found = {name: list(column.decode(synthetic.codes[name])[:3]) for name, column in synthetic.schema.columns.items()}
    assert [str(value) for value in found["age"]] == ["0", "99", "None"]
    assert [str(value) for value in found["sex"]] == ["f", UNDECLARED, "None"]


def test_without_a_holdout_a_quarter_of_the_real_records_stands_in() -> None:
    inputs = read_inputs(frame(50, 1), real=frame(100), schema=SCHEMA)
    assert len(inputs.comparison.train) == 75
    assert len(inputs.comparison.test) == 25
    assert len(inputs.comparison.real) == 100
    assert any("stood in" in note for note in inputs.notes)


def test_with_a_holdout_models_learn_from_all_real_records() -> None:
    inputs = read_inputs(frame(50, 1), real=frame(100), holdout=frame(40, 2), schema=SCHEMA)
    assert len(inputs.comparison.train) == 100
    assert len(inputs.comparison.test) == 40
    assert not inputs.notes


def test_of_many_rows_some_are_chosen_and_the_report_says_so() -> None:
    inputs = read_inputs(frame(5000, 1), real=frame(3000), schema=SCHEMA, rows=1000)
    assert len(inputs.comparison.synthetic) == len(inputs.comparison.real) == 1000
    assert inputs.counts["synthetic"] == 5000
    assert sum("1,000 of" in note for note in inputs.notes) == 2
    whole = read_inputs(
        frame(50, 1), real=frame(300), holdout=frame(300, 2), schema=SCHEMA, rows=100, whole_holdout=True
    )
    assert len(whole.comparison.test) == 300


def test_a_release_brings_its_own_schema(tmp_path: Path) -> None:
    Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(frame(100), SCHEMA).release_.save(tmp_path / "a.sundog")
    inputs = read_inputs(tmp_path / "a.sundog", real=frame(100))
    assert inputs.release is not None
    assert inputs.name == "a.sundog"
    assert len(inputs.comparison.synthetic) == inputs.release.records
    again = read_inputs(tmp_path / "a.sundog", real=frame(100))
    assert np.array_equal(inputs.comparison.synthetic.codes["age"], again.comparison.synthetic.codes["age"])
    with pytest.raises(SchemaError, match="own schema"):
        read_inputs(tmp_path / "a.sundog", real=frame(100), schema=SCHEMA)


def test_bad_input_is_one_line_that_names_the_fix() -> None:
    with pytest.raises(DataError, match=r"no column 'income'.*age, sex"):
        read_inputs(frame(50), real=frame(50), schema=SCHEMA, target="income")
    with pytest.raises(DataError, match="5 synthetic records are too few"):
        read_inputs(frame(5), real=frame(100), schema=SCHEMA)
    with pytest.raises(DataError, match="8 real records are too few"):
        read_inputs(frame(50), real=frame(10), schema=SCHEMA)
    with pytest.raises(DataError, match=r"19 held-out records are too few.*give more than 76"):
        read_inputs(frame(50), real=frame(76), schema=SCHEMA)
    with pytest.raises(DataError, match="3 held-out records"):
        read_inputs(frame(50), real=frame(50), holdout=frame(3), schema=SCHEMA)
    with pytest.raises(DataError, match=r"10 held-out records are too few.*look at more rows"):
        read_inputs(frame(50), real=frame(500), schema=SCHEMA, rows=40)
    with pytest.raises(DataError, match="-5 records"):
        read_inputs(frame(50), real=frame(500), schema=SCHEMA, n=-5)
    with pytest.raises(DataError, match="'sex'"):
        read_inputs(frame(50), real=pd.DataFrame({"age": [1] * 100, "sex": ["x"] * 100}), schema=SCHEMA)
    with pytest.raises(DataError, match="'sex' is missing"):
        read_inputs(frame(50)[["age"]], real=frame(100), schema=SCHEMA)
    with pytest.raises(DataError, match="5 records are too few"):
        read_inputs(frame(50), real=frame(100), schema=SCHEMA, rows=5)


def test_the_floor_keeps_every_marginal_and_no_relation() -> None:
    rng = np.random.default_rng(0)
    schema = Schema.from_dict({"columns": {**COLUMNS, "items": {"type": "set", "universe": 5, "max_size": 5}}})
    age = rng.integers(0, 100, 2000).astype(np.uint8)
    items = np.repeat(rng.random((2000, 1)) < 0.3, 5, axis=1)
    codes = {"age": age, "sex": (age > 50).astype(np.uint8), "items": sparse.csr_array(items.astype(np.uint8))}
    records = Records(schema, codes, 2000)
    dealt = shuffle_columns(records, rng)
    assert np.array_equal(np.sort(dealt.codes["age"]), np.sort(age))
    assert np.array_equal(dealt.codes["items"].sum(axis=0), codes["items"].sum(axis=0))
    assert dealt.codes["items"].max() == 1
    assert abs(np.corrcoef(dealt.codes["age"], dealt.codes["sex"])[0, 1]) < 0.1
    both = dealt.codes["items"][:, [0]].multiply(dealt.codes["items"][:, [1]]).sum()
    assert 100 < both < 260  # 0.09 of 2,000, where it was 0.3 of them


def test_parts_of_records() -> None:
    records = Records(SCHEMA, {"age": np.arange(100, dtype=np.uint8), "sex": np.zeros(100, np.uint8)}, 100)
    rng = np.random.default_rng(0)
    first, second = split(records, 0.25, rng)
    assert sorted([*first.codes["age"], *second.codes["age"]]) == list(range(100))
    assert len(second) == 25
    few = subsample(records, 10, rng)
    assert len(few) == len(set(few.codes["age"].tolist())) == 10
    assert subsample(records, 100, rng) is records


def test_draws_for_one_purpose_depend_on_nothing_else() -> None:
    records = Records(SCHEMA, {"age": np.zeros(5, np.uint8), "sex": np.zeros(5, np.uint8)}, 5)
    one, other = Comparison(records, records, records, records), Comparison(records, records, records, records, seed=1)
    assert one.rng("a").random() == one.rng("a").random()
    assert one.rng("a").random() != one.rng("b").random()
    assert one.rng("a").random() != other.rng("a").random()


def test_all_records_of_one_person_stay_on_one_side() -> None:
    people = frame(400).assign(person=np.repeat(np.arange(100), 4))
    schema = Schema.from_dict({"unit": "person", "cap": 3, "columns": COLUMNS})
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(people, schema).release_
    people["age"] = people["person"]  # so that a record says whose it is
    inputs = read_inputs(release, real=people)
    train, test = (set(part.codes["age"].tolist()) for part in (inputs.comparison.train, inputs.comparison.test))
    assert len(inputs.comparison.train) == 225
    assert len(inputs.comparison.test) == 75
    assert not train & test


def wide_frame(rows: int, seed: int) -> pd.DataFrame:
    return frame(rows, seed).assign(size=np.random.default_rng(seed).integers(0, 10**6, rows))


@pytest.mark.parametrize("change", ["same", "shuffled", "half", "few values"])
def test_held_out_records_that_are_not_are_noticed(change: str) -> None:
    wide = Schema.from_dict({"columns": {**COLUMNS, "size": {"type": "integer", "min": 0, "max": 10**6}}})
    real, other = wide_frame(200, 0), wide_frame(200, 1)
    holdout = {"shuffled": real.sample(frac=1, random_state=0), "half": pd.concat([real[:100], other[:100]])}
    schema = wide
    if change == "few values":  # every record has a twin: only the very same records tell
        schema = Schema.from_dict({"columns": {"sex": COLUMNS["sex"]}})
        assert read_inputs(other, real=real, holdout=other, schema=schema).warning is None
    said = read_inputs(other, real=real, holdout=holdout.get(change, real), schema=schema).warning
    assert said is not None
    assert f"{50 if change == 'half' else 100}% of the held-out records are among the real ones" in said
    assert read_inputs(other, real=real, holdout=other, schema=wide).warning is None


def test_people_who_are_alike_are_not_taken_for_copies() -> None:
    """Of 200 kinds of people most that are held out have a twin among the real ones."""
    for seed in range(20):
        inputs = read_inputs(frame(60, 0), real=frame(400, 2 * seed), holdout=frame(200, 2 * seed + 1), schema=SCHEMA)
        assert inputs.warning is None
    again = frame(400, 1).sample(frac=1, random_state=0)
    assert read_inputs(frame(60, 0), real=frame(400, 1), holdout=again, schema=SCHEMA).warning is not None


@pytest.mark.parametrize("kind", ["series", "set"])
def test_held_out_arrays_that_are_not_are_noticed(kind: str) -> None:
    columns = {
        "series": {"type": "series", "length": 4, "min": 0, "max": 1},
        "set": {"type": "set", "universe": 30, "max_size": 30},
    }
    schema = Schema.from_dict({"columns": {"x": columns[kind]}})

    def arrays(seed: int) -> dict[str, Any]:
        drawn = np.random.default_rng(seed).random((40, 4 if kind == "series" else 30))
        return {"x": drawn if kind == "series" else [np.flatnonzero(row < 0.5).tolist() for row in drawn]}

    assert read_inputs(arrays(2), real=arrays(0), holdout=arrays(0), schema=schema).warning is not None
    assert read_inputs(arrays(2), real=arrays(0), holdout=arrays(1), schema=schema).warning is None


def test_a_holdout_that_is_the_real_data_warns_once_and_the_reports_say_so() -> None:
    real, other = wide_frame(60, 0), wide_frame(60, 1)
    schema = Schema.from_dict({"columns": {**COLUMNS, "size": {"type": "integer", "min": 0, "max": 10**6}}})
    with pytest.warns(UserWarning, match="100% of the held-out records are among the real ones") as caught:
        report = evaluate(other, real=real, holdout=real, schema=schema)
    assert len(caught) == 1
    assert "100% of the held-out records" in report.notes[0]
    assert "100% of the held-out records" in report.to_html()
    with pytest.warns(UserWarning, match="100% of the held-out records are among the real ones") as caught:
        found = compare([other, real], real=real, holdout=real, schema=schema)
    assert len(caught) == 1
    assert found.to_html().count("100% of the held-out records") == 1


# --- what is written -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report() -> Report:
    return evaluate(frame(40, 1), real=frame(100), schema=SCHEMA)


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
