"""Correct fits show no difference between neighbours, and each planted breach shows one."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.auditing.replay.planted_breaches import BREACHES, FIRST, OLDEST, lose_replies, overflow_on_last_age
from tests.auditing.replay.replay_cases import (
    CASES,
    FAST,
    PEOPLE,
    RULED,
    RULED_SCHEMA,
    TABLE,
    TABLE_SCHEMA,
    declare,
)

from sundog.auditing.replay.neighbours import Pair, list_pairs
from sundog.auditing.replay.replay import ReplayResult, replay_fit, replay_publication
from sundog.auditing.replay.replay_audit import _QUICK_NEIGHBOURS
from sundog.auditing.replay.sources import open_source, write_csv, write_parquet
from sundog.auditing.replay.values import Kind
from sundog.errors import ArgumentError, SundogError
from sundog.evaluation import publication
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.mechanisms import counts

pytestmark = pytest.mark.usefixtures("no_fsync", "remembered_answers")


def replay(name: str, **options: Any) -> ReplayResult:
    case = CASES[name]
    return replay_fit(case.data, case.schema, **{**case.options, **options})


# --- correct fits ---


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_a_correct_fit_shows_no_difference(name: str) -> None:
    found = replay(name, most=5 if name in FAST else 12)
    assert found.passed, str(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["independent", "people", "learned", "clusters", "sets", "images, vae"])
def test_no_hostile_record_makes_a_difference(name: str) -> None:
    found = replay(name, seed=1)
    assert found.passed, str(found)
    assert found.fitted > 10


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_files_and_frames(kind: str, tmp_path: Path) -> None:
    write = {"csv": write_csv, "parquet": write_parquet}.get(kind)
    data = pd.DataFrame(TABLE) if write is None else write(TABLE, tmp_path / f"t.{kind}")
    found = replay_fit(data, TABLE_SCHEMA, model="independent", most=12)
    assert found.passed, str(found)
    assert found.fitted == 12


def test_neighbours_that_are_refused_do_not_count(tmp_path: Path) -> None:
    """A strict schema with rules refuses undeclared values; so many others are compared."""
    data = write_csv({**RULED, "job": ["a", "b"] * (len(RULED["low"]) // 2)}, tmp_path / "t.csv")
    label = {"type": "categorical", "values": ["a", "b"]}
    schema = declare({**RULED_SCHEMA.columns, "job": label}, rules=["low < high", "sum = low + high"])
    found = replay_fit(data, schema, model="independent", most=_QUICK_NEIGHBOURS)
    assert found.passed, str(found)
    assert (found.fitted, found.compared[Kind.REMOVAL], found.compared[Kind.COPY]) == (_QUICK_NEIGHBOURS, 3, 2)
    assert found.compared[Kind.SPELLING] > 10
    assert found.refused > 5
    assert Kind.MISSING not in found.compared


def test_it_ends_when_its_time_is_over() -> None:
    found = replay("independent", seconds=0.0)
    assert found.is_cut
    assert found.fitted == 8
    assert not replay("independent", most=3, seconds=1e9).is_cut


@pytest.mark.parametrize(("plant", "pair"), [(overflow_on_last_age, OLDEST), (lose_replies, FIRST)])
def test_an_example_that_overflows_counts_as_absent(
    plant: Callable[[pytest.MonkeyPatch], None], pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controls of planted breaches in which an overflow escapes, and in which noise depends on who replies."""
    plant(monkeypatch)
    assert replay("rbm", pairs=[pair]).passed


# --- planted breaches ---


CHOSEN = (2, 8, _QUICK_NEIGHBOURS)  # the first ones that the command compares; by default it compares more


def attack(name: str, *, most: int | None) -> ReplayResult:
    """Replay the fit of a breach with its own neighbour, or with so many of those that the command chooses."""
    breach = BREACHES[name]
    pairs = [breach.pair] if most is None else None
    return replay_fit(breach.case.data, breach.case.schema, pairs=pairs, most=most, **breach.case.options)


@functools.cache
def passes(name: str, *, most: int | None) -> bool:
    """Return whether the fit of a breach shows no difference without it."""
    return attack(name, most=most).passed


def find_control(name: str, *, most: int | None) -> str:
    """Return the first breach with the same fit and, if it is its own neighbour, the same neighbour."""
    wanted = BREACHES[name]
    return next(
        other
        for other, each in BREACHES.items()
        if each.case == wanted.case and (most is not None or each.pair == wanted.pair)
    )


@pytest.mark.parametrize("name", BREACHES)
def test_a_planted_breach_is_found(name: str) -> None:
    """With the record that shows it, and by the command, which does not know that record."""
    said, found = BREACHES[name].found, {}
    with pytest.MonkeyPatch.context() as patch:
        BREACHES[name].plant(patch)
        for most in (None, *CHOSEN):
            found[most] = any(said in str(each) for each in attack(name, most=most).differences)
            if most is not None and found[most]:
                break
    assert found[None]
    assert found[most], f"not found with {most} neighbours"
    assert passes(find_control(name, most=None), most=None)
    assert passes(find_control(name, most=most), most=most)


def test_figures_that_are_published_exactly_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {name: values * 2 for name, values in TABLE.items()}
    release = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(data, TABLE_SCHEMA).release_
    assert replay_publication(data, release, epsilon=1.0, most=5).passed
    noisy = counts.noisy_histograms

    def measure(histograms: Any, *, ledger: Any) -> Any:
        noisy(histograms, ledger=ledger)
        return [each.counts for each in histograms]

    monkeypatch.setattr(publication, "noisy_histograms", measure)
    found = replay_publication(data, release, epsilon=1.0, most=5)
    assert any("fidelity.tvd_1way" in str(difference) for difference in found.differences)


# --- neighbours and results ---


def test_refused_neighbours_are_counted() -> None:
    pair = Pair("an undeclared age", TABLE, (0,), ({"age": 1000, "job": "a", "on": True},), Kind.UNDECLARED)
    found = replay("independent", pairs=[pair])
    assert (found.fitted, found.refused, found.differences) == (0, 1, ())
    assert not found.passed  # nothing was compared


def test_a_fit_that_fails_cannot_be_replayed() -> None:
    with pytest.raises(SundogError, match="the run to replay fails"):
        replay_fit({"age": [1000]}, declare({"age": {"type": "integer", "min": 0, "max": 9}}), model="independent")


def test_public_columns_are_refused() -> None:
    schema = declare({"on": {"type": "boolean", "public": True}, "age": {"type": "integer", "min": 0, "max": 9}})
    with pytest.raises(ArgumentError, match="public columns"):
        replay_fit({"on": [True], "age": [1]}, schema)


def test_neighbours_differ_by_one_person() -> None:
    schema = declare(dict(TABLE_SCHEMA.columns), unit="who", cap=2)
    for pair in list_pairs(open_source(PEOPLE, schema), schema):
        joined = pair.joined
        assert all(len(joined[name]) == len(values) + len(pair.places) for name, values in pair.without.items())
        owners = {joined["who"][place] for place in pair.places}
        assert len(owners) == 1
        assert not owners & set(pair.without["who"])
        rest = [owner for place, owner in enumerate(joined["who"]) if place not in pair.places]
        assert rest == pair.without["who"]


def test_what_is_told() -> None:
    found = replay("independent", pairs=[FIRST])
    assert re.fullmatch(r"neighbours compared: 1 \(4 draws, [\d.]+ s\)\nno difference", str(found))
    breach = BREACHES["message with a count"]
    with pytest.MonkeyPatch.context() as patch:
        breach.plant(patch)
        line = str(replay("independent", pairs=[FIRST])).splitlines()[-1]
    assert line == f"progress messages: counting 60 records became counting 61 records (added: {FIRST.name})"


def test_a_new_person_has_an_id_of_the_others_type() -> None:
    people = {**PEOPLE, "who": [number % 23 for number in range(len(PEOPLE["who"]))]}
    schema = declare(dict(TABLE_SCHEMA.columns), unit="who", cap=2)
    first = next(iter(list_pairs(open_source(people, schema), schema)))
    assert {record["who"] for record in first.records} == {23}
