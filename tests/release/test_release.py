"""A release: saved, loaded and sampled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.contracts.material import KINDS, random_records, same_samples, schema_of
from tests.release.material import COLUMNS, fit

from sundog.errors import DataError, ReleaseError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.release.archive import read_archive
from sundog.release.release import Release

# --- the file ---


def test_everything_comes_back(release: Release, path: Path) -> None:
    loaded = Release.load(path)
    assert loaded.schema == release.schema
    assert list(loaded.schema.columns) == list(release.schema.columns)
    assert loaded.certificate == release.certificate
    assert loaded.created == release.created
    assert loaded.libraries == release.libraries
    assert loaded.signature is None
    assert loaded.records == release.records
    assert loaded.hash == release.hash


def test_saving_again_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    Release.load(path).save(tmp_path / "b.sundog")
    assert (tmp_path / "b.sundog").read_bytes() == path.read_bytes()


def test_the_manifest_says_with_what_it_was_made(path: Path) -> None:
    manifest = read_archive(path).manifest
    assert set(manifest) == {"format", "version", "created", "libraries", "schema", "model", "certificate"}
    assert {"sundog", "numpy", "scipy"} <= set(manifest["libraries"])
    assert manifest["model"]["name"] == "independent"


def test_a_release_holds_no_record(tmp_path: Path) -> None:
    schema = schema_of({"n": {"type": "integer", "min": 0, "max": 10**12, "bins": 4}})
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit({"n": [123456789012] * 50}, schema).release_
    release.save(tmp_path / "a.sundog")
    with zipfile.ZipFile(tmp_path / "a.sundog") as zipped:
        content = b"".join(zipped.read(name) for name in zipped.namelist())
    assert b"123456789012" not in content
    assert np.array([123456789012]).tobytes() not in content


def test_a_missing_file_and_other_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.sundog").write_text("hello")
    (tmp_path / "folder.sundog").mkdir()
    for name in ("missing.sundog", "text.sundog", "folder.sundog"):
        with pytest.raises(ReleaseError, match=name) as error:
            Release.load(tmp_path / name)
        assert "\n" not in str(error.value)


# --- sampling ---


def test_a_frame_or_a_dict_of_arrays() -> None:
    frame = fit().sample(10)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame) == list(COLUMNS)
    assert len(frame) == 10
    mixed = fit(KINDS["mix"]).sample(10, as_="arrays")
    assert isinstance(mixed, dict)
    assert list(mixed) == list(KINDS["mix"])
    with pytest.raises(DataError, match=r"column .image.: images do not fit a DataFrame; sample.*as_=.arrays."):
        fit(KINDS["image"]).sample(10)
    both = fit({name: KINDS["mix"][name] for name in ("series", "named_set")}).sample(10)
    assert list(both) == ["series_0", "series_1", "series_2", "named_set"]


def test_typed_tables_of_any_library(release: Release) -> None:
    """That this file passes mypy is half of the test."""
    assert len(release.sample(10).head()) == 5
    assert release.sample(10, seed=1, as_="polars").head(3).shape == (3, 3)
    assert release.sample(10, as_="arrow").num_rows == 10
    frame, polars = release.sample(50, seed=1), release.sample(50, seed=1, as_="polars")
    assert polars["age"].to_list() == frame["age"].tolist()
    with pytest.raises(SundogError, match="as_ must be pandas, polars, arrow or arrays, not 'numpy'"):
        release.sample(3, as_="numpy")  # type: ignore[call-overload]


def test_about_as_many_as_there_were_by_default(release: Release) -> None:
    assert len(release.sample()) == release.records
    assert release.records == pytest.approx(200, abs=100)


@pytest.mark.parametrize("n", [0, 1])
def test_none_and_one(n: int) -> None:
    assert len(fit().sample(n)) == n
    mixed = fit(KINDS["mix"]).sample(n, as_="arrays")
    assert {name: values.shape[0] if hasattr(values, "shape") else len(values) for name, values in mixed.items()} == (
        dict.fromkeys(mixed, n)
    )


@pytest.mark.parametrize("n", [-1, "ten", 2.5])
def test_what_is_no_number_of_records_is_refused(release: Release, n: Any) -> None:
    with pytest.raises(DataError, match="n must be a whole number, zero or more"):
        release.sample(n)
    with pytest.raises(DataError, match="seed must be a whole number, zero or more"):
        release.sample(3, seed=n)


def test_numpy_numbers_count_as_numbers(release: Release) -> None:
    three: Any = np.int64(3)
    assert len(release.sample(three, seed=three)) == 3


def test_a_release_is_short_at_a_prompt(release: Release) -> None:
    assert len(repr(release)) < 100


def test_a_folder_that_does_not_exist_is_named(release: Release, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="create its folder first"):
        release.save(tmp_path / "none" / "x.sundog")


def test_a_negative_seed_is_refused_or_fine(release: Release) -> None:
    try:
        release.sample(3, seed=-1)
    except DataError as error:
        assert "seed" in str(error)  # noqa: PT017


@pytest.mark.parametrize("seed", [0, 1, 2**64, 2**200])
def test_any_seed_from_zero_up(release: Release, seed: int) -> None:
    assert same_samples(release.sample(5, seed=seed), release.sample(5, seed=seed))


def test_batches_are_the_same_records_however_they_are_taken(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sundog.release.release._BATCH_VALUES", 300)
    batches = list(release.batches(250, seed=1))
    assert [len(batch) for batch in batches] == [100, 100, 50]
    release.write(tmp_path / "a.csv", 250, seed=1)
    written = pd.read_csv(tmp_path / "a.csv", keep_default_na=False, dtype=str)
    sample = release.sample(250, seed=1)
    assert written["age"].astype(int).tolist() == sample["age"].tolist()
    assert written["name"].tolist() == [name if isinstance(name, str) else "" for name in sample["name"]]
    fewer = release.sample(100, seed=1)
    assert fewer["age"].tolist() == sample["age"].tolist()[:100]  # a whole batch fewer changes nothing before it


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".npz"])
@pytest.mark.parametrize("n", [0, 1, 10])
def test_any_number_is_written_in_any_format(release: Release, n: int, suffix: str, tmp_path: Path) -> None:
    told: list[float] = []
    count = release.write(tmp_path / f"a{suffix}", n, seed=1, progress=lambda _, done: told.append(done))
    assert count == n
    assert all(0 <= done <= 1 for done in told)
    assert [file.name for file in tmp_path.iterdir()] == [f"a{suffix}"]


def test_conditions(release: Release) -> None:
    sample = release.sample(20, where={"name": "b", "age": "42"})  # text, as the command line gives it
    assert set(sample["name"]) == {"b"}
    assert set(sample["age"]) == {42}
    free = release.sample(20, seed=3)
    fixed = release.sample(20, seed=3, where={"name": "b"})
    assert free["age"].tolist() == fixed["age"].tolist()  # a condition changes no other column


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"height": 3}, "there is no column 'height'; the columns are name, age, born"),
        ({"name": "d"}, "column 'name'.*'d' is not a declared value"),
        ({"age": 121}, "column 'age'.*above max"),
        ({"age": "old"}, "column 'age'.*not a whole number"),
        ({"age": None}, "column 'age'.*not nullable"),
        ({"age": [1, 121]}, "column 'age'.*above max"),
        ({"born": "yesterday"}, "column 'born'.*not a time"),
        ({"born": "2021-01-01"}, "column 'born'.*above max"),
    ],
    ids=str,
)
def test_impossible_conditions_are_one_line(release: Release, where: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said) as error:
        release.sample(3, where=where)
    assert "\n" not in str(error.value)
    assert "row" not in str(error.value)  # there is none
    if "height" not in where:
        assert str(error.value).endswith("; ask for a value that the schema declares")


@pytest.mark.parametrize("spelling", ["", "NA", None])
def test_a_missing_value_can_be_asked_for_in_its_own_words(spelling: str | None) -> None:
    schema = schema_of({**COLUMNS, "other": {"type": "categorical", "values": ["NA", "b"]}}, nulls=["", "NA"])
    records = random_records(schema, 100)
    values = {name: column.decode(records.codes[name]) for name, column in schema.columns.items()}
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(values, schema).release_
    assert pd.isna(release.sample(5, where={"name": spelling})["name"]).all()
    with pytest.raises(DataError, match="column 'age'"):  # which is not nullable
        release.sample(5, where={"age": spelling})
    if spelling == "NA":
        assert set(release.sample(5, where={"other": "NA"})["other"]) == {"NA"}  # a value like any other there
    with pytest.raises(DataError, match="column 'name': 'n/a' is not a declared value"):
        release.sample(5, where={"name": "n/a"})


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ({"type": "integer", "min": 0, "max": 9, "out_of_bounds": "clamp"}, 99),
        ({"type": "categorical", "values": ["a", "rest"], "undeclared": "other", "other": "rest"}, "tpyo"),
    ],
    ids=["clamped", "other"],
)
def test_a_condition_that_no_record_can_meet_is_refused(column: dict[str, Any], value: Any) -> None:
    with pytest.raises(DataError, match="column 'x'"):
        fit({"x": column}).sample(3, where={"x": value})
