"""Whatever a release learned from private data names the charge that paid for it, and is refused without."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.accountant import METHODS
from sundog.privacy.events import Charge, DiscreteGaussian, DiscreteLaplace, Event, Failure, Pure, normalize_purpose
from sundog.privacy.record_count import COUNT, compute_fit_epsilon
from sundog.release.archive import Archive, read_archive, write_archive
from sundog.release.certificate import Certificate
from sundog.release.document import Document
from sundog.release.learned_parts import LearnedPart, find_unpaid_parts, list_learned_parts
from sundog.release.release import Release

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "learn": True},
    "pay": {"type": "continuous", "learn": True},
    "born": {"type": "datetime", "learn": True, "resolution": "day"},
    "job": {"type": "categorical", "learn": True},
}
PARTS = {
    "number of records": "number of records",
    "min and max of age": "range of age",
    "min and max of pay": "range of pay",
    "min and max of born": "range of born",
    "edges of pay": "bins of pay",  # wide columns, whose bins are refined
    "edges of born": "bins of born",
    "values of job": "values of job",
}


def make_data(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    days = np.datetime64("1980-01-01") + rng.integers(0, 9000, n)
    return {
        "age": rng.integers(20, 60, n),
        "pay": rng.uniform(100, 900, n),
        "born": days.astype("datetime64[us]"),
        "job": rng.choice(["cook", "smith"], n),
    }


@cache
def fit() -> Release:
    return Synthesizer("independent", epsilon=4.0).fit(make_data(3000), Schema.from_dict({"columns": COLUMNS})).release_


def save_changed(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The release with another certificate, whose figures were made to add up again."""
    fit().save(path)
    archive = read_archive(path)
    certificate = archive.manifest["certificate"]
    change(certificate)
    delta = (certificate["conditional"] or certificate)["delta"]
    charges = [Charge.model_validate(charge) for charge in certificate["charges"]]
    certificate["spent"] = {method: compute_fit_epsilon(charges, delta=delta, method=method) for method in METHODS}
    write_archive(path, Archive(archive.manifest, archive.tensors))
    return path


def test_every_learned_part_names_its_charge() -> None:
    certificate = fit().certificate
    assert {part.part: part.charge for part in certificate.learned} == PARTS
    assert set(PARTS.values()) <= {charge.purpose for charge in certificate.charges}
    for part, charge in PARTS.items():
        assert f"- {part}  (paid for by '{charge}')" in str(certificate)
    assert fit().verify() == []


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("named", [True, False])
def test_a_part_whose_charge_was_removed_is_noticed(part: str, named: bool, tmp_path: Path) -> None:
    def remove(certificate: dict[str, Any]) -> None:
        certificate["charges"] = [c for c in certificate["charges"] if c["purpose"] != PARTS[part]]
        if not named:
            certificate["learned"] = [one for one in certificate["learned"] if one["part"] != part]

    path = save_changed(tmp_path / "a.sundog", remove)
    assert any(f"no charge pays for the {part}" in problem for problem in Document.load(path).verify().problems)
    with pytest.raises(ReleaseError, match=f"pays for the {part}"):
        Release.load(path)


def test_a_count_that_nobody_paid_for_cannot_be_hidden(tmp_path: Path) -> None:
    def remove(certificate: dict[str, Any]) -> None:
        certificate["charges"] = [c for c in certificate["charges"] if c["purpose"] != COUNT]
        certificate["learned"] = [one for one in certificate["learned"] if one["part"] != COUNT]
        certificate["conditional"] = None

    problems = Document.load(save_changed(tmp_path / "a.sundog", remove)).verify().problems
    assert problems == []  # these marginals were calibrated to a smaller δ than is promised, and count by themselves
    networks = Document.load(tmp_path / "a.sundog")
    networks.model.__class__.counts_records = True  # as of a model whose plan needs the count
    try:
        assert any(COUNT in problem for problem in networks.verify().problems)
    finally:
        networks.model.__class__.counts_records = False


def test_the_count_is_the_one_that_the_model_was_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    document = fit().document
    given = document.certificate.conditional
    assert given is not None
    monkeypatch.setattr(type(document.model), "counts_records", True)  # as of a model whose plan needs the count
    for records, is_right in ((given.records, True), (given.records + 1, False)):
        monkeypatch.setattr(document.model, "records", records)
        assert ("not the one that the model was made for" in str(document.verify())) != is_right
        del document.__dict__["problems"]  # it is kept once known


def test_a_charge_of_another_kind_pays_for_nothing(tmp_path: Path) -> None:
    def replace(certificate: dict[str, Any]) -> None:
        for charge in certificate["charges"]:
            if charge["purpose"] == "range of age":
                charge["event"] = {"kind": "failure", "delta": 1e-12}

    path = save_changed(tmp_path / "a.sundog", replace)
    assert any("min and max of age" in problem for problem in Document.load(path).verify().problems)


def test_what_was_not_learned_may_not_be_said_to_be(tmp_path: Path) -> None:
    def add(certificate: dict[str, Any]) -> None:
        certificate["learned"].append({"part": "values of city", "charge": "values of job"})

    problems = Document.load(save_changed(tmp_path / "a.sundog", add)).verify().problems
    assert problems == ["the certificate lists more learned parts than the schema has"]


def test_a_complete_schema_is_a_declaration() -> None:
    """That of a release says `learn`; given to another fit, nothing is measured again, and nothing is said to be."""
    learned = fit().schema
    assert learned.columns["age"].learn
    again = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(make_data(3000), learned).release_
    assert again.certificate.learned == []
    assert not any(column.learn for column in again.schema.columns.values())
    assert again.verify() == []
    for name, column in learned.columns.items():  # and records are encoded as before, those beyond the bounds too
        beyond: dict[str, list[Any]] = {"age": [-5, 999], "pay": [-1.0, 1e9]}
        values = [*make_data(5)[name], *beyond.get(name, [])]
        codes = column.encode(np.array(values), where="")
        assert codes.tolist() == again.schema.columns[name].encode(np.array(values), where="").tolist()


def test_edges_that_were_learned_are_marked_and_paid_for() -> None:
    schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 9, "edges": [3]}}})
    column = schema.columns["age"]
    for bins, purpose in (("quantiles", "quantiles of age"), ("refined", "bins of age")):
        marked = schema.model_copy(update={"columns": {"age": column.model_copy(update={"bins": bins})}})
        assert list_learned_parts(marked, counted=False) == [LearnedPart(part="edges of age", charge=purpose)]


def test_one_charge_pays_for_one_part() -> None:
    values = {"type": "categorical", "values": ["u", "v"], "learn": True}
    long, same = "x" * 200 + "a", "x" * 200 + "b"  # a purpose keeps 200 characters
    purpose = normalize_purpose(f"values of {long}")
    events: list[Event] = [DiscreteLaplace(rate=0.1), Failure(delta=1e-9)]
    one = [Charge(event=event, purpose=purpose) for event in events]
    both = Schema.from_dict({"columns": {long: values, same: values}})
    assert find_unpaid_parts(both, [*one, *one], counted=False) == []
    assert find_unpaid_parts(both, one, counted=False) == [purpose]
    single = Schema.from_dict({"columns": {long: values}})
    assert find_unpaid_parts(single, one, counted=False) == []
    assert find_unpaid_parts(single, one[:1], counted=False) == [
        purpose
    ]  # found at the risk of a δ that nobody charged


COLUMN = {"type": "integer", "min": 0, "max": 100_000}
LESS: dict[str, tuple[dict[str, Any], Charge, Event, int]] = {
    "levels": (
        {**COLUMN, "bins": "refined", "edges": [7]},
        Charge(event=DiscreteGaussian(sigma=30.0), count=3, purpose="bins of n"),
        DiscreteGaussian(sigma=30.0),
        1,
    ),
    "another mechanism": (
        {**COLUMN, "bins": "refined", "edges": [7]},
        Charge(event=DiscreteGaussian(sigma=30.0), count=3, purpose="bins of n"),
        Pure(epsilon=1e-9),
        3,
    ),
    "quantiles": (
        {**COLUMN, "bins": "quantiles", "edges": [7]},
        Charge(event=Pure(epsilon=0.01), count=15, purpose="quantiles of n"),
        Pure(epsilon=0.01),
        1,
    ),
    "a range": (
        {**COLUMN, "learn": True},
        Charge(event=DiscreteLaplace(rate=0.05), purpose="range of n"),
        Pure(epsilon=1e-9),
        1,
    ),
}


@pytest.mark.parametrize("name", LESS)
def test_a_charge_pays_only_for_what_its_mechanism_measures(name: str) -> None:
    column, whole, event, count = LESS[name]
    schema = Schema.from_dict({"columns": {"n": column}})
    assert find_unpaid_parts(schema, [whole], counted=False) == []
    less = Charge(event=event, count=count, purpose=whole.purpose)
    (part,) = list_learned_parts(schema, counted=False)
    assert find_unpaid_parts(schema, [less], counted=False) == [part.part]


def test_a_count_is_paid_for_as_often_as_one_unit_is_in_it() -> None:
    schema = Schema.from_dict({"unit": "who", "cap": 5, "columns": {"b": {"type": "boolean"}}})
    whole, less = (
        Charge(event=DiscreteLaplace(rate=0.01, sensitivity=sensitivity), purpose=COUNT) for sensitivity in (5, 1)
    )
    assert find_unpaid_parts(schema, [whole], counted=True) == []
    assert find_unpaid_parts(schema, [less], counted=True) == [COUNT]


def test_an_old_certificate_without_names_is_not_taken_at_its_word(tmp_path: Path) -> None:
    path = save_changed(tmp_path / "a.sundog", lambda certificate: certificate.pop("learned"))
    assert Certificate.from_dict(read_archive(path).manifest["certificate"]).learned == []
    assert len(Document.load(path).verify().problems) == len(PARTS)
