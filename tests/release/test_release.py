"""A release: saved, loaded, sampled, verified, signed, tampered with and fuzzed."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contracts.material import KINDS, random_records, same_samples, schema_of

from sundog.errors import DataError, ReleaseError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.accountant import METHODS, compute_epsilon
from sundog.privacy.noise import NoiseSource
from sundog.release.archive import Archive, read_archive, write_archive
from sundog.release.certificate import NOT_PRIVATE, Certificate
from sundog.release.release import Release
from sundog.release.signing import sign

COLUMNS: dict[str, dict[str, Any]] = {
    "name": {"type": "categorical", "values": ["a", "b", "c"], "nullable": True},
    "age": {"type": "integer", "min": 0, "max": 120, "bins": 10},
    "born": {"type": "datetime", "min": "1920-01-01", "max": "2020-12-31", "resolution": "day", "bins": 64},
}
KEY, OTHER_KEY = (Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32) for i in (1, 2))


def fit(kind: dict[str, dict[str, Any]] = COLUMNS, n: int = 200, **options: Any) -> Release:
    schema = schema_of(kind)
    records = random_records(schema, n)
    values = {name: column.decode(records.codes[name]) for name, column in schema.columns.items()}
    return (
        Synthesizer(**{"model": "independent", "epsilon": 1.0, "delta": 1e-6, **options}).fit(values, schema).release_
    )


def sign_anyway(release: Release) -> Release:
    """Signed whatever it says, as no program of ours would."""
    return dataclasses.replace(release, signature=sign(release.hash, KEY))


@pytest.fixture(scope="module")
def release() -> Release:
    return fit()


@pytest.fixture
def path(release: Release, tmp_path: Path) -> Path:
    release.save(tmp_path / "a.sundog")
    return tmp_path / "a.sundog"


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


# --- signing ---


def test_a_signed_release_verifies_with_its_key_alone(release: Release, tmp_path: Path) -> None:
    signed = release.sign(KEY)
    signed.save(tmp_path / "a.sundog")
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.verify() == []
    assert loaded.verify(KEY.public_key()) == []
    assert loaded.verify(OTHER_KEY.public_key()) == ["the signature is not by the given key"]
    assert loaded.hash == release.hash
    again = loaded.sign(OTHER_KEY)
    assert again.verify(OTHER_KEY.public_key()) == []
    assert again.verify(KEY.public_key()) != []


def test_an_unsigned_release_is_nobodys(release: Release) -> None:
    assert release.verify() == []
    assert release.verify(KEY.public_key()) == ["it is not signed"]


def test_repacking_does_not_break_a_signature(release: Release, tmp_path: Path) -> None:
    release.sign(KEY).save(tmp_path / "a.sundog")
    with zipfile.ZipFile(tmp_path / "a.sundog") as zipped:
        members = {name: zipped.read(name) for name in zipped.namelist()}
    with zipfile.ZipFile(tmp_path / "b.sundog", "w") as zipped:
        for name in reversed(members):
            spaced = name != "weights.safetensors"
            data = json.dumps(json.loads(members[name]), indent=3).encode() if spaced else members[name]
            zipped.writestr(zipfile.ZipInfo(name, (2001, 2, 3, 4, 5, 6)), data)
    assert (tmp_path / "b.sundog").read_bytes() != (tmp_path / "a.sundog").read_bytes()
    assert Release.load(tmp_path / "b.sundog").verify(KEY.public_key()) == []


# --- tampering ---

Tampering = Callable[[dict[str, Any], dict[str, Any]], None]


def _set(*places: Any, to: Any) -> Tampering:
    def tamper(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        target: Any = manifest
        for place in places[:-1]:
            target = target[place]
        target[places[-1]] = to

    return tamper


def _lighten_noise(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    tensors["marginal.0"] = np.roll(tensors["marginal.0"], 1)


def _drop_charge(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    manifest["certificate"]["charges"].pop()


CHEATS: dict[str, Tampering] = {
    "a smaller epsilon": _set("certificate", "epsilon", to=0.5),
    "a smaller delta": _set("certificate", "delta", to=1e-12),
    "a larger delta": _set("certificate", "delta", to=1e-3),
    "a charge removed": _drop_charge,
    "all charges removed": _set("certificate", "charges", to=[]),
    "a charge for more noise": _set("certificate", "charges", 0, "event", "sigma", to=1e6),
    "a charge counted less often": _set("certificate", "charges", 0, "event", "sigma", to=10.0),
    "spent less": _set("certificate", "spent", "pld", to=0.1),
    "spent nothing": _set("certificate", "spent", "pld", to=None),
}
FORGERIES: dict[str, Tampering] = {
    **CHEATS,
    "a larger epsilon": _set("certificate", "epsilon", to=2.0),
    "other weights": _lighten_noise,
    "other bounds": _set("schema", "columns", 2, "max", to="2021-12-31"),
    "another order of columns": lambda manifest, _: manifest["schema"]["columns"].reverse(),
    "another unit": _set("certificate", "unit", to="hospital"),
    "another date": _set("created", to="1999-01-01T00:00:00+00:00"),
    "other libraries": _set("libraries", "numpy", to="0.0.1"),
    "other assumptions": _set("certificate", "assumed_public", to=[]),
    "another purpose": _set("certificate", "charges", 0, "purpose", to="nothing"),
    "another number of records": _set("model", "config", "records", to=7),
    "something added": _set("approved_by", to="the data protection officer"),
    "something added to the model": _set("model", "licence", to="mine"),
    "something added to its configuration": _set("model", "config", "licence", to="mine"),
}


def save_tampered(release: Release, path: Path, tamper: Tampering) -> None:
    release.save(path)
    archive = read_archive(path)
    manifest, tensors = copy.deepcopy(archive.manifest), dict(archive.tensors)
    tamper(manifest, tensors)
    write_archive(path, Archive(manifest, tensors, archive.signature))


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_certificate_that_does_not_add_up_is_noticed_without_a_signature(
    release: Release, cheat: str, tmp_path: Path
) -> None:
    save_tampered(release, tmp_path / "a.sundog", CHEATS[cheat])
    assert Release.load(tmp_path / "a.sundog").verify() != []


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_signature_holds_for_nothing_else(release: Release, forgery: str, tmp_path: Path) -> None:
    save_tampered(release.sign(KEY), tmp_path / "a.sundog", FORGERIES[forgery])
    try:
        loaded = Release.load(tmp_path / "a.sundog")
    except ReleaseError:
        return
    assert loaded.verify() != []
    assert loaded.verify(KEY.public_key()) != []


@pytest.mark.parametrize(
    "forgery",
    [_set("created", to="now\x1b[2J"), _set("libraries", to={"numpy\n": "1"}), _set("libraries", "numpy", to="\r")],
)
def test_nothing_in_it_moves_a_cursor(release: Release, forgery: Tampering, tmp_path: Path) -> None:
    save_tampered(release, tmp_path / "a.sundog", forgery)
    with pytest.raises(ReleaseError, match="the manifest is malformed"):
        Release.load(tmp_path / "a.sundog")


def test_a_signature_from_another_release_does_not_hold(release: Release, tmp_path: Path) -> None:
    other = fit()
    stolen = dataclasses.replace(release, signature=other.sign(KEY).signature)
    stolen.save(tmp_path / "a.sundog")
    assert Release.load(tmp_path / "a.sundog").verify() == ["the signature does not hold"]


# --- test noise ---


def test_test_noise_is_not_private_wherever_it_goes(tmp_path: Path) -> None:
    release = fit(noise=NoiseSource.seeded(1))
    with pytest.raises(ReleaseError, match="not signed, because it does not add up: NOT PRIVATE"):
        release.sign(KEY)
    sign_anyway(release).save(tmp_path / "a.sundog")
    for found in (release, Release.load(tmp_path / "a.sundog")):
        assert str(found.certificate).splitlines()[0].startswith("NOT PRIVATE")
        assert any("NOT PRIVATE" in problem for problem in found.verify())
    assert any("NOT PRIVATE" in problem for problem in Release.load(tmp_path / "a.sundog").verify(KEY.public_key()))


def test_private_cannot_be_forged_back_into_a_signed_release(tmp_path: Path) -> None:
    release = sign_anyway(fit(noise=NoiseSource.seeded(1)))
    save_tampered(release, tmp_path / "a.sundog", _set("certificate", "private", to=True))
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.certificate.private
    assert loaded.verify(KEY.public_key()) == [NOT_PRIVATE, "the signature does not hold"]
    assert loaded.verify() == [NOT_PRIVATE, "the signature does not hold"]


def test_private_and_its_noise_forged_back_break_the_signature_still(tmp_path: Path) -> None:
    def forge(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        manifest["certificate"] |= {"private": True, "noise": "ChaCha20 and AES-256 keyed by the operating system"}

    save_tampered(sign_anyway(fit(noise=NoiseSource.seeded(1))), tmp_path / "a.sundog", forge)
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.certificate.private
    assert loaded.verify(KEY.public_key()) == ["the signature does not hold"]
    assert loaded.verify() == ["the signature does not hold"]


# --- to the letter ---


def _repeat_charge(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    manifest["schema"]["columns"][1]["out_of_bounds"] = "error"


def _widen_purpose(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    charge = manifest["certificate"]["charges"][0]
    charge["purpose"] = f"  {charge['purpose'].replace(' ', '   ')} "


def _leave_defaults_out(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    del manifest["certificate"]["charges"][0]["count"]


# Other words for the same thing: they load as the same release, and are not what was signed.
RESPELLINGS: dict[str, Tampering] = {
    "space in a purpose": _widen_purpose,
    "a default said aloud": _repeat_charge,
    "a default left out": _leave_defaults_out,
    "no ledger left out": lambda manifest, _: manifest["certificate"].pop("ledger"),
    "a number without its point": _set("certificate", "epsilon", to=1),
    "a whole number with a point": _set("schema", "columns", 1, "min", to=0.0),
}


@pytest.mark.parametrize("respelling", RESPELLINGS)
def test_a_signature_covers_the_manifest_to_the_letter(release: Release, respelling: str, tmp_path: Path) -> None:
    save_tampered(release.sign(KEY), tmp_path / "a.sundog", RESPELLINGS[respelling])
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.schema == release.schema
    assert loaded.certificate == release.certificate
    assert loaded.hash != release.hash
    assert loaded.verify() == ["the signature does not hold"]
    assert loaded.verify(KEY.public_key()) == ["the signature does not hold"]


@pytest.mark.parametrize("respelling", RESPELLINGS)
def test_what_was_read_is_what_is_saved_and_signed_again(release: Release, respelling: str, tmp_path: Path) -> None:
    save_tampered(release, tmp_path / "a.sundog", RESPELLINGS[respelling])
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.verify() == []
    loaded.sign(KEY).save(tmp_path / "b.sundog")
    assert read_archive(tmp_path / "b.sundog").manifest == read_archive(tmp_path / "a.sundog").manifest
    again = Release.load(tmp_path / "b.sundog")
    assert again.hash == loaded.hash
    assert again.verify(KEY.public_key()) == []


# --- what the model knows was paid for ---


@pytest.mark.parametrize("name", COLUMNS)
def test_a_marginal_that_no_charge_pays_for_is_noticed(release: Release, name: str, tmp_path: Path) -> None:
    """Even where the rest adds up: the charge is gone, and what was spent is said to be less."""

    def unpaid(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        certificate = manifest["certificate"]
        certificate["charges"] = [c for c in certificate["charges"] if c["purpose"] != f"marginal of {name}"]
        charges = Certificate.from_dict(certificate).charges
        delta = certificate["delta"]
        certificate["spent"] = {method: compute_epsilon(charges, delta=delta, method=method) for method in METHODS}

    save_tampered(release, tmp_path / "a.sundog", unpaid)
    assert Release.load(tmp_path / "a.sundog").verify() == [f"no charge pays for the marginal of {name!r}"]


@pytest.mark.parametrize(
    "charge",
    [
        {"event": {"kind": "failure", "delta": 1e-12}, "count": 1, "purpose": "marginal of age"},
        {"event": {"kind": "pure", "epsilon": 1e-9}, "count": 1, "purpose": "marginal of age"},
        {"event": {"kind": "discrete_gaussian", "sigma": 1e9}, "count": 1, "purpose": "marginal of ages"},
        {"event": {"kind": "discrete_gaussian", "sigma": 1e9}, "count": 2, "purpose": "marginal of age"},
    ],
    ids=["a failure", "another kind", "another purpose", "another count"],
)
def test_a_charge_for_something_else_does_not_pay(release: Release, charge: dict[str, Any], tmp_path: Path) -> None:
    def other(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        charges = manifest["certificate"]["charges"]
        charges[[c["purpose"] for c in charges].index("marginal of age")] = charge

    save_tampered(release, tmp_path / "a.sundog", other)
    assert "no charge pays for the marginal of 'age'" in Release.load(tmp_path / "a.sundog").verify()


def test_a_public_marginal_needs_no_charge(tmp_path: Path) -> None:
    release = fit({**COLUMNS, "name": {**COLUMNS["name"], "public": True}})
    assert [charge.purpose for charge in release.certificate.charges] == ["marginal of age", "marginal of born"]
    assert release.verify() == []
    save_tampered(release, tmp_path / "a.sundog", _set("schema", "columns", 0, "public", to=False))
    problems = Release.load(tmp_path / "a.sundog").verify()
    assert "no charge pays for the marginal of 'name'" in problems
    assert any("who is protected" in problem for problem in problems)


def test_columns_of_any_name_are_paid_for() -> None:
    names = ["a\x1b[2J", "x" * 500, " ", "two\nlines", "\u202e"]
    schema = schema_of({name: {"type": "boolean"} for name in names})
    data = {name: [True, False] * 20 for name in names}
    assert Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(data, schema).release_.verify() == []


def test_each_of_two_columns_of_one_purpose_is_paid_for(tmp_path: Path) -> None:
    """Long names are cut in a purpose, and may then be the same: one charge pays for one of them."""
    names = ["x" * 300 + "a", "x" * 300 + "b"]
    schema = schema_of({name: {"type": "boolean"} for name in names})
    data = {name: [True, False] * 20 for name in names}
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(data, schema).release_
    assert release.verify() == []
    save_tampered(release, tmp_path / "a.sundog", _drop_charge)
    assert any("no charge pays" in problem for problem in Release.load(tmp_path / "a.sundog").verify())


# --- a manifest that means harm ---


@cache
def _mix() -> tuple[dict[str, Any], dict[str, Any]]:
    release = fit(KINDS["mix"], n=50)
    archive_manifest = json.loads(json.dumps(release.document.manifest))
    return archive_manifest, release.model.state().tensors


def _list_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _list_places(inner, (*path, key))


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2, 7, 64, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30]),
    st.sampled_from([0.0, -0.0, 0.5, 1.0, 1e-300, 5e-324, 1e-9, 1e308, -1.5, 1e16]),
    st.sampled_from(["", "a", "integer", "set", "2020-01-01", "9999-12-31", "independent", "\0", "🚲", "1e5", "NaN"]),
    st.sampled_from([[], {}, [[]], [1, 1], ["a", "a"], [None], {"type": "integer"}, {"": 0}, [10**6, 10**6]]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_one_changed_field_is_a_release_error_or_harmless(data: st.DataObject, tmp_path: Path) -> None:
    manifest, tensors = _mix()
    place = data.draw(st.sampled_from(sorted(_list_places(manifest), key=repr)), label="place")
    if data.draw(st.booleans(), label="removed"):
        _check(_change(manifest, place, None, remove=True), tensors, tmp_path)
    else:
        _check(_change(manifest, place, data.draw(junk, label="value"), remove=False), tensors, tmp_path)


HARD: dict[str, tuple[tuple[Any, ...], Any]] = {
    "hardly any noise": (("certificate", "charges", 0, "event", "sigma"), 1e-300),
    "all the noise there is": (("certificate", "charges", 0, "event", "sigma"), 1e300),
    "a Gaussian of hardly any noise": (
        ("certificate", "charges", 0, "event"),
        {"kind": "gaussian", "noise_multiplier": 1e-200},
    ),
    "a huge loss": (("certificate", "charges", 0, "event"), {"kind": "pure", "epsilon": 1e300}),
    "a geometric of hardly any noise": (
        ("certificate", "charges", 0, "event"),
        {"kind": "discrete_laplace", "rate": 1e300},
    ),
    "sampled with hardly any noise": (
        ("certificate", "charges", 0, "event"),
        {"kind": "sampled_gaussian", "noise_multiplier": 1e-200, "sample_rate": 0.5},
    ),
    "a failure": (("certificate", "charges", 0, "event"), {"kind": "failure", "delta": 0.999}),
    "no delta": (("certificate", "delta"), 0.0),
    "a negative delta": (("certificate", "delta"), -1.0),
    "a delta of two": (("certificate", "delta"), 2.0),
    "the smallest delta": (("certificate", "delta"), 5e-324),
    "the largest epsilon": (("certificate", "epsilon"), 1e308),
    "an epsilon whose exponential is too large": (("certificate", "epsilon"), 710.0),
    "no epsilon": (("certificate", "epsilon"), 0.0),
    "a negative epsilon": (("certificate", "epsilon"), -1.0),
    "a million charges": (("certificate", "charges", 0, "count"), 10**6),
    "a million million charges": (("certificate", "charges", 0, "count"), 10**12),
    "a negative cap": (("certificate", "cap"), -1),
    "a billion bins": (
        ("schema", "columns", 1),
        {"name": "integer", "type": "integer", "min": 0, "max": 10**15, "bins": 10**9},
    ),
    "two columns of one name": (("schema", "columns", 0, "name"), "integer"),
    "more records than there can be": (("model", "config", "records"), 10**30),
    "an escape in a purpose": (("certificate", "charges", 0, "purpose"), "a\x1b[2J"),
    "an escape in the unit": (("certificate", "unit"), "a\x1b[2J"),
    "an escape in what is public": (("certificate", "assumed_public", 0), "a\x1b[2J"),
    "an escape in the noise": (("certificate", "noise"), "a\x1b[2J"),
    "charges that round to no order": (("certificate", "charges", 0, "count"), 18_963),
    "two lines of purpose": (("certificate", "charges", 0, "purpose"), "a\nNOT PRIVATE"),
}


def test_hostile_manifests_are_release_errors_or_harmless(tmp_path: Path) -> None:
    """Each in a process of its own with 4 GiB and 20 seconds: none may stop the machine."""
    manifest, tensors = _mix()
    for name, (place, value) in HARD.items():
        with contextlib.suppress(ReleaseError):
            write_archive(tmp_path / name, Archive(_change(manifest, place, value, remove=False), tensors))
    done = subprocess.run(
        [sys.executable, "-c", _JUDGE, *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        timeout=1500,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    outcomes = json.loads(done.stdout)
    assert len(outcomes) > 10
    assert {name: outcome for name, outcome in outcomes.items() if outcome not in ("ok", "refused")} == {}


def _change(manifest: dict[str, Any], place: tuple[Any, ...], value: Any, *, remove: bool) -> dict[str, Any]:
    changed = copy.deepcopy(manifest)
    target: Any = changed
    for key in place[:-1]:
        target = target[key]
    if remove:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return changed


def _check(manifest: dict[str, Any], tensors: dict[str, Any], folder: Path) -> None:
    path = folder / "fuzzed.sundog"
    try:
        write_archive(path, Archive(manifest, tensors))
        loaded = Release.load(path)
    except ReleaseError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return
    loaded.sample(5, seed=1, as_="arrays")
    loaded.verify()
    str(loaded.certificate)
    assert loaded.hash


_JUDGE = """
import json, os, resource, sys, warnings
warnings.simplefilter("error")
from sundog.errors import ReleaseError, SundogError
import sundog.data.writing.write, sundog.models.independent.independent, sundog.privacy.pld
from sundog.release.release import Release
from sundog.release.signing import sign

def judge(path):
    try:
        release = Release.load(path)
    except ReleaseError as error:
        return "refused" if "\\n" not in str(error) else "several lines"
    release.sample(5, seed=1, as_="arrays")
    release.verify()
    str(release.certificate)
    assert release.records is None or release.records < 2**53, "too many records"
    return "ok"

def in_a_fork(path):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
        resource.setrlimit(resource.RLIMIT_CPU, (int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + 20,) * 2)
        try:
            said = judge(path)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    return os.read(read, 10_000).decode() or "killed after 20 seconds"

print(json.dumps({os.path.basename(path): in_a_fork(path) for path in sys.argv[1:]}))
"""
