"""`sundog sample` with valid input: output, files, exit codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.calling import PLAIN, Sundog

from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.fit.synthesizer import Synthesizer
from sundog.release.release import Release

# --- sample ---


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "npz", "tsv"])
def test_samples_are_written_in_every_format(suffix: str, sundog: Sundog, here: Path) -> None:
    called = sundog("sample", "people.sundog", "-n", "50", "--seed", "7", "-o", f"fake.{suffix}")
    assert called.code == 0
    assert called.out == f"fake.{suffix}: 50 synthetic records\n"
    schema = Release.load("people.sundog").schema
    records = encode(read(Path(f"fake.{suffix}"), schema), schema)
    expected = next(Release.load("people.sundog").batches(50, seed=7))
    assert {name: codes.tolist() for name, codes in records.codes.items()} == {
        name: codes.tolist() for name, codes in expected.codes.items()
    }


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "npz"])
def test_samples_of_no_record_and_of_one_are_written(n: int, suffix: str, sundog: Sundog, here: Path) -> None:
    called = sundog("sample", "people.sundog", "-n", n, "-o", f"fake.{suffix}")
    assert called.code == 0
    assert called.out == f"fake.{suffix}: {n} synthetic records\n"
    if suffix.startswith("csv"):
        assert pd.read_csv(f"fake.{suffix}").shape == (n, 4)


def test_images_are_written_as_a_picture(sundog: Sundog, here: Path) -> None:
    Path("digits.yaml").write_text(
        "columns:\n  image: {type: image, shape: [3, 3], levels: 4}\n  label: {type: categorical, values: [0, 1]}\n"
    )
    rng = np.random.default_rng(0)
    np.savez("digits.npz", image=rng.integers(0, 4, (60, 3, 3)), label=rng.integers(0, 2, 60))
    fitted = sundog("fit", "digits.npz", "--schema", "digits.yaml", "--epsilon", "5", "-o", "digits.sundog", *PLAIN)
    assert fitted.err.endswith("or   sundog sample digits.sundog -o synthetic.png\n")
    assert sundog("sample", "digits.sundog", "-o", "digits.png").out == "digits.png: 100 synthetic records\n"
    assert Path("digits.png").read_bytes().startswith(b"\x89PNG")
    assert sundog("sample", "digits.sundog", "-n", "7", "--where", "label=1", "-o", "ones.png").code == 0


def test_a_table_is_not_written_as_a_picture(sundog: Sundog, here: Path) -> None:
    called = sundog("sample", "people.sundog", "-o", "fake.png")
    assert called.code == 2
    assert "fake.png: a picture shows images or series, and the schema has neither" in called.err
    assert not Path("fake.png").exists()


def test_by_default_a_sample_is_as_large_as_the_data(sundog: Sundog, here: Path) -> None:
    called = sundog("sample", "people.sundog", "-o", "fake.csv", "--json")
    assert called.json == {"file": "fake.csv", "records": Release.load("people.sundog").records}


def test_only_samples_with_the_same_seed_are_equal(sundog: Sundog, here: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert sundog("sample", "people.sundog", "-n", "40", "--seed", seed, "-o", f"{name}.csv").code == 0
    a, b, c = (Path(f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_a_sample_satisfies_conditions(sundog: Sundog, here: Path) -> None:
    conditions = ("--where", "sex=f", "--where", " age = 42 ", "--where", "seen=2020-02-29")
    assert sundog("sample", "people.sundog", "-n", "20", *conditions, "-o", "fake.csv").code == 0
    frame = pd.read_csv("fake.csv")
    assert set(frame["sex"]) == {"f"}
    assert set(frame["age"]) == {42}
    assert set(frame["seen"]) == {"2020-02-29"}
    assert frame["height"].nunique() > 1


def test_conditions_take_values_literally(sundog: Sundog, here: Path) -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "categorical", "values": ["a", " a ", "NA"]}}})
    Synthesizer("independent", epsilon=1.0, delta=1e-6).fit({"x": ["a", " a ", "NA"] * 20}, schema, out="x.sundog")
    for value in ("a", " a ", "NA"):
        assert sundog("sample", "x.sundog", "-n", "5", "--where", f"x={value}", "-o", "fake.csv", "--force").code == 0
        assert set(pd.read_csv("fake.csv", keep_default_na=False)["x"]) == {value}
    complaint = sundog("sample", "x.sundog", "-n", "5", "--where", "x=a ", "-o", "never.csv").complaint
    assert complaint.startswith("where: column 'x': 'a ' is not a declared value, but ' a ' is; ")
    assert complaint.endswith("; ask for a value that the schema declares")
    assert not Path("never.csv").exists()


def test_a_condition_may_require_a_missing_value(sundog: Sundog, here: Path) -> None:
    assert sundog("sample", "people.sundog", "-n", "5", "--where", "height=", "-o", "fake.csv").code == 0
    assert pd.read_csv("fake.csv")["height"].isna().all()
    complaint = sundog("sample", "people.sundog", "-n", "5", "--where", "age=", "-o", "never.csv").complaint
    assert complaint.startswith("where: column 'age': ")
    assert "row" not in complaint
    assert complaint.endswith("; ask for a value that the schema declares")


def test_a_sample_replaces_a_file_with_force(sundog: Sundog, here: Path) -> None:
    for n in (30, 5):
        assert sundog("sample", "people.sundog", "-n", n, "-o", "fake.csv", "--force").code == 0
    assert len(pd.read_csv("fake.csv")) == 5
    assert not list(here.glob(".*"))


# --- in a separate process ---


def test_a_sample_satisfies_ranges_and_lists(sundog: Sundog, here: Path) -> None:
    conditions = ("age>=40", "age<65", "sex in f", "seen>=2020-03-01", "height!=")
    asked = [word for condition in conditions for word in ("--where", condition)]
    assert sundog("sample", "people.sundog", "-n", "200", *asked, "-o", "fake.csv").code == 0
    frame = pd.read_csv("fake.csv")
    assert frame["age"].between(40, 64).all()
    assert set(frame["sex"]) == {"f"}
    assert (frame["seen"] >= "2020-03-01").all()
    assert not frame["height"].isna().any()
