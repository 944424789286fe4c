"""The certificate: what it says, that it says it to people and machines alike, and that it can be checked."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import (
    Charge,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
    Skellam,
)
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import FAST, SECURE, SEEDED, NoiseSource
from sundog.release.certificate import NOT_PRIVATE, Certificate, certify, list_public_assumptions
from sundog.release.charge_costs import compute_costs, describe_charge

COLUMNS: dict[str, dict[str, Any]] = {"age": {"type": "integer", "min": 0, "max": 99}}
SCHEMA = Schema.from_dict({"columns": COLUMNS})
EVENTS: list[Event] = [
    Gaussian(noise_multiplier=30.0),
    SampledGaussian(noise_multiplier=2.0, sample_rate=0.01),
    DiscreteGaussian(sigma=40.0),
    DiscreteLaplace(rate=0.05),
    DiscreteLaplace(rate=0.01, sensitivity=3),
    Pure(epsilon=0.05),
    Failure(delta=1e-8),
    Skellam(sigma=40.0),
]


def certify_charges(
    *events: Event, epsilon: float = 2.0, delta: float = 1e-6, schema: Schema = SCHEMA, noise: NoiseSource | None = None
) -> Certificate:
    ledger = Ledger(epsilon=epsilon, delta=delta, noise=noise)
    for number, event in enumerate(events):
        ledger.spend(Charge(event=event, purpose=f"purpose {number}"))
    return certify(ledger, schema)


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return certify_charges(*EVENTS)


# --- what it says ---


def test_it_claims_the_budget_and_tells_what_was_spent(certificate: Certificate) -> None:
    assert (certificate.epsilon, certificate.delta) == (2.0, 1e-6)
    assert certificate.spent["pld"] == compute_epsilon(certificate.charges, delta=1e-6)
    assert list(certificate.spent) == ["pld", "rdp", "moments"]
    assert [charge.event for charge in certificate.charges] == EVENTS
    assert certificate.private
    assert certificate.recheck(SCHEMA) == []


def test_people_read_it(certificate: Certificate) -> None:
    text = str(certificate)
    assert text.splitlines()[0] == "sundog certificate"
    for part in (
        "(ε = 2, δ = 1e-06)-differential privacy",
        "protects     one record",
        "neighbouring datasets: add or remove one unit",
        "ChaCha20 and AES-256 keyed by the operating system",
        "e^ε = 7.39",
        "1 in 1,000,000",
        "Assumed public:",
        "does not hide what is true of the population",
    ):
        assert part in text
    for number in range(len(EVENTS)):
        assert f"purpose {number}" in text


def test_machines_read_it(certificate: Certificate) -> None:
    plain = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert Certificate.from_dict(plain) == certificate
    assert str(Certificate.from_dict(plain)) == str(certificate)


@pytest.mark.parametrize(("rest", "said"), [({}, "at most 1 record "), ({"cap": 5}, "at most 5 records ")], ids=str)
def test_the_unit_and_its_cap_are_put_in_words(rest: dict[str, Any], said: str) -> None:
    schema = Schema.from_dict({"unit": "patient", **rest, "columns": COLUMNS})
    certificate = certify(Ledger(epsilon=1, delta=1e-6), schema)
    assert certificate.who.startswith(f"one patient ({said}")
    assert "about one patient" in str(certificate)


def test_everything_that_is_taken_for_granted_is_listed() -> None:
    columns: dict[str, Any] = {
        "age": COLUMNS["age"],
        "region": {"type": "categorical", "values": ["n", "s"], "public": True},
        "job": {"type": "categorical", "values": ["x", "other"], "other": "other", "learn": True},
    }
    lines = list_public_assumptions(Schema.from_dict({"reviewed": False, "records": 12_345, "columns": columns}))
    assert [line.split(":")[0].split(",")[0].split(" of ")[0] for line in lines] == [
        "the schema",
        "NOT REVIEWED",
        "the number",
        "every value",
    ]
    assert "12,345" in lines[2]
    assert "region" in lines[3]
    assert len(list_public_assumptions(SCHEMA)) == 1


def test_a_certificate_states_what_a_shared_ledger_spent() -> None:
    ledger = Ledger(epsilon=5.0, delta=1e-6)
    ledger.spend(Charge(event=Gaussian(noise_multiplier=8.0), purpose="an earlier release"))
    run = ledger.run(epsilon=1.0, delta=1e-6)
    run.spend(Charge(event=Gaussian(noise_multiplier=8.0), purpose="this one"))
    certificate = certify(run, SCHEMA, shared=ledger)
    assert [charge.purpose for charge in certificate.charges] == ["this one"]
    assert certificate.ledger is not None
    assert certificate.ledger.spent == ledger.compute_spent()
    assert f"Shared ledger: ε = {ledger.compute_spent():.4g} of 5 spent in all" in str(certificate)


@pytest.mark.parametrize(("delta", "is_a_problem", "is_a_warning"), [(0.999, 1, 1), (1e-3, 0, 1), (1e-6, 0, 0)])
def test_a_shared_ledger_cannot_hide_behind_a_large_delta(delta: float, is_a_problem: int, is_a_warning: int) -> None:
    ledger = Ledger(epsilon=5.0, delta=delta)
    run = ledger.run(epsilon=1.0, delta=1e-6)
    run.spend(Charge(event=Gaussian(noise_multiplier=8.0), purpose="this one"))
    certificate = certify(run, SCHEMA, shared=ledger)
    assert ["shared ledger's δ" in problem for problem in certificate.recheck(SCHEMA)] == [True] * is_a_problem
    assert ["shared ledger's δ" in warning for warning in certificate.list_warnings()] == [True] * is_a_warning


def test_shares_are_in_order_and_add_up(certificate: Certificate) -> None:
    shares = certificate.compute_costs()
    assert [share.purpose for share in shares] == [f"purpose {number}" for number in range(len(EVENTS))]
    assert sum(share.share for share in shares) == pytest.approx(1)
    assert all(0 <= share.share <= 1 for share in shares)
    assert shares[5].epsilon_alone == pytest.approx(0.05)
    assert shares[4].epsilon_alone == pytest.approx(0.03)


def test_the_lines_of_what_was_spent_are_aligned_within_100_columns() -> None:
    training = SampledGaussian(noise_multiplier=5.708, sample_rate=0.00853)
    charges = [
        Charge(event=training, count=12_345, purpose="training"),
        Charge(event=Pure(epsilon=0.1), purpose="x" * 99),
    ]
    lines = [f"  {cost}" for cost in compute_costs(charges, delta=1e-6)]
    assert {len(line) for line in lines} == {100}
    assert {line.index("alone ε") for line in lines} == {lines[0].index("alone ε")}


def test_every_event_has_words() -> None:
    said = [describe_charge(Charge(event=event, count=1200, purpose="x")) for event in EVENTS]
    assert len(set(said)) == len(EVENTS)
    assert all("× 1,200" in line for line in said)


def test_nothing_spent_is_a_certificate_too() -> None:
    certificate = certify_charges()
    assert certificate.spent == {"pld": 0.0, "rdp": 0.0, "moments": 0.0}
    assert certificate.recheck(SCHEMA) == []
    assert "sundog certificate" in str(certificate)


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 100.0, 709.0, 710.0, 1e6])
def test_any_epsilon_can_be_printed(epsilon: float) -> None:
    assert f"ε = {epsilon:g}" in str(certify_charges(epsilon=epsilon))


# --- NOT PRIVATE ---


def test_test_noise_is_said_first() -> None:
    certificate = certify_charges(EVENTS[0], noise=NoiseSource.seeded(1))
    assert not certificate.private
    assert str(certificate).splitlines()[0] == NOT_PRIVATE
    assert NOT_PRIVATE.startswith("NOT PRIVATE")
    assert certificate.recheck(SCHEMA) == [NOT_PRIVATE]
    assert certificate.noise == "a fixed seed, for tests: NOT PRIVATE"


@pytest.mark.parametrize("whose", ["an earlier release", "this one", "both"])
def test_a_release_is_private_only_if_all_of_its_ledger_is(whose: str, tmp_path: Path) -> None:
    Ledger.create(tmp_path / "l", epsilon=5.0, delta=1e-6)
    for purpose in ("an earlier release", "this one"):
        noise = NoiseSource.seeded(1) if whose in (purpose, "both") else None
        shared = Ledger.open(tmp_path / "l", noise=noise)
        run = shared.run(epsilon=1.0, delta=1e-6)
        run.spend(Charge(event=Gaussian(noise_multiplier=8.0), purpose=purpose))
    certificate = certify(run, SCHEMA, shared=shared)
    assert not certificate.private
    assert certificate.noise == "a fixed seed, for tests: NOT PRIVATE"
    assert str(certificate).splitlines()[0] == NOT_PRIVATE
    assert certificate.recheck(SCHEMA) == [NOT_PRIVATE]


@pytest.mark.parametrize("private", [True, False])
def test_private_and_the_noise_say_the_same(certificate: Certificate, private: bool) -> None:
    for noise in (SECURE, FAST, SEEDED):
        said = replace_fields(certificate, private=private, noise=noise).recheck(SCHEMA)
        assert said == ([] if private and noise != SEEDED else [NOT_PRIVATE])


# --- rechecking ---


def replace_fields(certificate: Certificate, **values: Any) -> Certificate:
    return Certificate.from_dict({**certificate.to_dict(), **values})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"epsilon": 0.2}, "above the claimed 0.2"),
        ({"delta": 1e-9}, "the events add up to"),
        ({"charges": []}, "the events add up to ε = 0"),
        ({"spent": {}}, "certificate says –"),
        ({"spent": {"pld": None}}, "certificate says –"),
        ({"spent": {"pld": 0.01}}, "certificate says 0.01"),
        ({"private": False}, "NOT PRIVATE"),
    ],
    ids=str,
)
def test_what_does_not_add_up_is_said(certificate: Certificate, values: dict[str, Any], said: str) -> None:
    problems = replace_fields(certificate, **values).recheck(SCHEMA)
    assert any(said in problem for problem in problems), problems
    assert all("\n" not in problem for problem in problems)


def test_one_charge_less_is_noticed(certificate: Certificate) -> None:
    for number, event in enumerate(EVENTS):
        charges = certificate.to_dict()["charges"]
        del charges[number]
        spent = compute_epsilon(replace_fields(certificate, charges=charges).charges, delta=1e-6)
        claimed = certificate.spent["pld"]
        assert claimed is not None
        if math.isclose(spent, claimed, rel_tol=1e-3):
            continue  # too small to matter
        assert replace_fields(certificate, charges=charges).recheck(SCHEMA) != [], event


SCHEMAS: dict[str, Schema] = {
    "plain": SCHEMA,
    "unit": Schema.from_dict({"unit": "patient", "columns": COLUMNS}),
    "another unit": Schema.from_dict({"unit": "hospital", "columns": COLUMNS}),
    "capped": Schema.from_dict({"unit": "patient", "cap": 5, "columns": COLUMNS}),
    "public": Schema.from_dict(
        {"columns": {**COLUMNS, "region": {"type": "categorical", "values": ["n", "s"], "public": True}}}
    ),
    "declared records": Schema.from_dict({"records": 1000, "columns": COLUMNS}),
    "other declared records": Schema.from_dict({"records": 1001, "columns": COLUMNS}),
    "unreviewed": Schema.from_dict({"reviewed": False, "columns": COLUMNS}),
    "learned": Schema.from_dict({"columns": {"age": {**COLUMNS["age"], "learn": True}}}),
    "a unit of odd characters": Schema.from_dict({"unit": "pa\x1b[2Jtient\n", "columns": COLUMNS}),
    "a public column of odd characters": Schema.from_dict(
        {"columns": {**COLUMNS, "\x1b[2J": {"type": "boolean", "public": True}}}
    ),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_it_is_held_against_the_schema(name: str) -> None:
    ledger = Ledger(epsilon=2.0, delta=1e-6)
    ledger.spend(Charge(event=EVENTS[0], purpose="a sum"))
    if name == "learned":
        ledger.spend(Charge(event=DiscreteLaplace(rate=0.1), purpose="range of age"))
    certificate = certify(ledger, SCHEMAS[name])
    assert certificate.recheck(SCHEMAS[name]) == []
    assert Certificate.from_dict(json.loads(json.dumps(certificate.to_dict()))) == certificate
    assert all(line.isprintable() for line in str(certificate).splitlines())
    for other, schema in SCHEMAS.items():
        if other != name:
            problems = certificate.recheck(schema)
            assert problems, other
            known = ("disagree about who", "schema declares", "no charge pays", "more learned parts")
            assert all(any(words in said for words in known) for said in problems)


def test_who_is_a_neighbour_depends_on_public_columns() -> None:
    assert certify_charges(schema=SCHEMAS["plain"]).neighbours == "add or remove one unit"
    assert certify_charges(schema=SCHEMAS["public"]).neighbours == "show or erase one unit's private values"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"unit": "patient"}, "who is protected"),
        ({"cap": 2}, "who is protected"),
        ({"neighbours": "show or erase one unit's private values"}, "who is protected"),
        ({"assumed_public": []}, "assumes public"),
        ({"assumed_public": ["everything"]}, "assumes public"),
        ({"noise": "a fixed seed, for tests: NOT PRIVATE"}, "NOT PRIVATE"),
    ],
    ids=str,
)
def test_what_the_schema_does_not_say_is_noticed(certificate: Certificate, values: dict[str, Any], said: str) -> None:
    problems = replace_fields(certificate, **values).recheck(SCHEMA)
    assert len(problems) == 1
    assert said in problems[0]


@pytest.mark.parametrize(
    "values",
    [
        {"epsilon": "1"},
        {"epsilon": None},
        {"delta": True},
        {"private": 1},
        {"private": "true"},
        {"cap": 1.5},
        {"unit": 7},
        {"charges": {}},
        {"charges": [{"event": {"kind": "magic"}, "count": 1, "purpose": "x"}]},
        {"charges": [{"event": {"kind": "pure", "epsilon": -1.0}, "count": 1, "purpose": "x"}]},
        {"charges": [{"event": {"kind": "pure", "epsilon": 1.0}, "count": 0, "purpose": "x"}]},
        {"charges": [{"event": {"kind": "pure", "epsilon": 1.0}, "count": 1, "purpose": ""}]},
        {"assumed_public": "nothing"},
        {"ledger": {"epsilon": 1.0}},
        {"spent": {"guess": 0.1}},
        {"signed": True},
        {"neighbours": "change one unit"},
        {"noise": "very good noise"},
        {"noise": None},
        {"unit": "patient\x1b[1A"},
        {"unit": "patient\nNOT PRIVATE"},
        {"assumed_public": ["nothing", "age\x1b[2J"]},
        {"assumed_public": ["two\nlines"]},
        {"assumed_public": ["\u202esecret"]},
    ],
    ids=str,
)
def test_what_is_no_certificate_is_refused(certificate: Certificate, values: dict[str, Any]) -> None:
    with pytest.raises(ReleaseError, match="malformed") as error:
        replace_fields(certificate, **values)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [None, [], "certificate", 7, {}])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(ReleaseError, match="malformed"):
        Certificate.from_dict(value)


@pytest.mark.parametrize(
    "values",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"delta": 0.0},
        {"delta": -1e-6},
        {"delta": 1.0},
        {"delta": 2.0},
        {"delta": 1e-50},
        {"delta": 5e-324},
        {"delta": math.nan},
    ],
    ids=str,
)
def test_what_is_no_guarantee_is_no_certificate(certificate: Certificate, values: dict[str, float]) -> None:
    with pytest.raises(ReleaseError, match="malformed"):
        replace_fields(certificate, **values)


def test_what_cannot_be_printed_is_replaced_in_a_purpose(certificate: Certificate) -> None:
    charges = certificate.to_dict()["charges"]
    charges[0]["purpose"] = "age\x1b[2J\nNOT\u202e PRIVATE"
    shown = replace_fields(certificate, charges=charges)
    assert shown.charges[0].purpose == "age�[2J NOT� PRIVATE"
    assert all(line.isprintable() for line in str(shown).splitlines())
