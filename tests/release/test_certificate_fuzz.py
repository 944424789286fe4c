"""Certificates that strangers wrote go through `verify`: an error of one line or a list of problems, and soon."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.independent.released import ReleasedIndependent
from sundog.models.protocol import State
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
from sundog.release.certificate import Certificate, certify
from sundog.release.document import Document, serialize_schema

SCHEMA = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 1, "learn": True}}})
EVENTS: list[Event] = [
    DiscreteLaplace(rate=0.02),
    DiscreteLaplace(rate=0.05),
    Gaussian(noise_multiplier=30.0),
    SampledGaussian(noise_multiplier=2.0, sample_rate=0.01),
    DiscreteGaussian(sigma=20.0),
    Skellam(sigma=20.0),
    Skellam(sigma=200.0, l1=30, l2_squared=80),
    Failure(delta=1e-9),
    Pure(epsilon=0.05),
]
PURPOSES = [
    "number of records",
    "range of age",
    "means",
    "training",
    "marginal of age",
    "a sum",
    "a sketch",
    "values",
    "a median",
]


def make_sound() -> dict[str, Any]:
    shared = Ledger(epsilon=3.0, delta=1e-5)
    run = shared.run(epsilon=2.0, delta=1e-6)
    for event, purpose in zip(EVENTS, PURPOSES, strict=True):
        run.spend(Charge(event=event, purpose=purpose))
    certificate = certify(run, SCHEMA, shared=shared, delta=1e-6, records=10)
    return dict(json.loads(json.dumps(certificate.to_dict())))


SOUND = make_sound()
STATE = State({"marginal.0": np.array([0.5, 0.5])}, {"records": 10})


def find_problems(value: Any) -> list[str] | None:
    """What `verify` says, or None for an error of one line; anything else is raised."""
    line = ""
    try:
        certificate = Certificate.from_dict(value)
    except ReleaseError as error:
        line = str(error)
    if line:
        assert len(line.splitlines()) == 1
        return None
    manifest = {"schema": serialize_schema(SCHEMA), "certificate": value}
    document = Document(SCHEMA, ReleasedIndependent(SCHEMA, STATE), certificate, manifest, STATE)
    verdict = document.verify()
    assert all(isinstance(problem, str) for problem in verdict.problems)
    assert str(certificate)
    return verdict.problems


def list_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from list_places(inner, (*path, key))


def replace_fields(path: tuple[Any, ...], value: Any, base: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(base)
    inner: Any = found
    try:
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
    except (KeyError, IndexError, TypeError):  # an earlier change removed the place
        pass
    return found


hostile = st.one_of(
    st.sampled_from([1e182, 1e-182, 5e-324, 1.8e308, math.nan, math.inf, -math.inf, -0.0, 0.999, 1e-6, 1e15, 1e10]),
    st.sampled_from([0, -1, 1, 2**63, 10**18, 10**400, -(10**30), 10**12, 10**12 + 1]),
    st.sampled_from(["", "\x1b[2J", "pure", "NaN", "1e5", "number of records", "x" * 1000]),
    st.sampled_from([None, True, [], {}, [[]], [None] * 3, {"kind": "pure"}, [{}], {"": 0}]),
    st.floats(),
    st.integers(),
    st.text(max_size=5),
    st.floats(min_value=-17, max_value=16).map(lambda exponent: 10.0**exponent),
)


def test_the_sound_one_is_sound() -> None:
    assert find_problems(SOUND) == []


@settings(max_examples=300, deadline=None, database=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(list_places(SOUND), key=repr)), hostile), min_size=1, max_size=3))
def test_any_certificate_is_refused_or_answered(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    value = SOUND
    for path, replacement in changes:
        value = replace_fields(path, replacement, value)
    started = time.process_time()
    find_problems(value)
    assert time.process_time() - started < 10


numbers = st.floats(min_value=-6, max_value=15).map(lambda exponent: min(1e15, max(1e-6, 10.0**exponent)))
losses = st.floats(min_value=-15, max_value=10).map(lambda exponent: min(1e10, max(1e-15, 10.0**exponent)))
events = st.one_of(
    st.builds(Gaussian, noise_multiplier=numbers),
    st.builds(SampledGaussian, noise_multiplier=numbers, sample_rate=st.floats(1e-15, 1)),
    st.builds(DiscreteGaussian, sigma=numbers),
    st.builds(Skellam, sigma=numbers),
    st.builds(Skellam, sigma=numbers, l1=st.just(10), l2_squared=st.integers(10, 100)),
    st.builds(DiscreteLaplace, rate=losses.filter(lambda loss: loss <= 1e10)),
    st.builds(Pure, epsilon=losses),
    st.builds(Failure, delta=st.floats(1e-60, 0.9)),
)
charges = st.builds(
    Charge, event=events, count=st.sampled_from([1, 2, 1000, 10**6, 10**12]), purpose=st.sampled_from(PURPOSES)
)


@settings(max_examples=100, deadline=None, database=None)
@given(st.lists(charges, min_size=1, max_size=8), st.sampled_from([1e-40, 1e-9, 1e-5, 0.4, 0.999]))
def test_any_events_are_added_up(found: list[Charge], delta: float) -> None:
    started = time.process_time()
    value = {**SOUND, "delta": delta, "charges": [charge.model_dump() for charge in found], "conditional": None}
    assert find_problems(value)
    assert time.process_time() - started < 10


def test_a_large_delta_promises_nothing() -> None:
    """ε = 1e-9 at δ = 0.999 keeps any claim; so does ε = 1e-4, the smallest that can be promised."""
    assert find_problems({**SOUND, "epsilon": 1e-9, "delta": 0.999}) is None
    said = find_problems({**SOUND, "epsilon": 1e-4, "delta": 0.999, "conditional": None})
    assert said is not None
    assert any("promises nothing" in problem for problem in said)


def test_false_figures_are_noticed() -> None:
    for method in ("pld", "rdp", "moments"):
        said = find_problems({**SOUND, "spent": {**SOUND["spent"], method: 0.5 * SOUND["spent"][method]}})
        assert said is not None
        assert any(f"by {method}, but the certificate says" in problem for problem in said)


def test_a_shared_ledger_that_cannot_be_is_noticed() -> None:
    for ledger, words in (
        ({"epsilon": 3.0, "delta": 1e-5, "spent": 50.0}, "overspent: ε = 50 of 3"),
        ({"epsilon": 3.0, "delta": 1e-5, "spent": 0.001}, "this release alone spent"),
        ({"epsilon": 1.0, "delta": 1e-5, "spent": 0.9}, "more than the shared ledger holds"),
    ):
        said = find_problems({**SOUND, "ledger": ledger})
        assert said is not None
        assert any(words in problem for problem in said), words


def test_what_is_said_given_the_count_must_follow_from_it() -> None:
    for wrong in ({"delta": 1e-9}, {"epsilon": 0.5}, {"records": 10**9}):
        said = find_problems({**SOUND, "conditional": {**SOUND["conditional"], **wrong}})
        assert said is not None
        assert any("does not follow from the count" in problem for problem in said)


def test_a_large_epsilon_and_a_large_delta_are_warned_of() -> None:
    certificate = Certificate.from_dict({**SOUND, "epsilon": 50.0, "delta": 1e-3})
    assert [warning.split(" is above ")[0] for warning in certificate.list_warnings()] == ["ε = 50", "δ = 0.001"]
    assert str(certificate).count("WARNING") == 2
    assert Certificate.from_dict(SOUND).list_warnings() == []
