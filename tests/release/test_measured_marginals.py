"""The certificate lists each measured marginal with its columns and noise, and `verify` holds it against the model."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mixture.two_kinds import TABLE, two_kinds

from sundog.data.writing.write import to_frame
from sundog.errors import ReleaseError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.released import MeasuredMarginal
from sundog.privacy.events import DiscreteGaussian
from sundog.release.archive import Archive, read_archive, write_archive
from sundog.release.certificate import Certificate
from sundog.release.document import Document
from sundog.release.measured_marginals import MOST_LISTED, compare_marginals, format_marginals, list_marginals
from sundog.release.release import Release

Tampering = Callable[[dict[str, Any]], None]


@cache
def fit(clusters: int = 1) -> Release:
    synthesizer = Synthesizer("marginals", 4.0, 1e-6, clusters=clusters, seed=0)
    return synthesizer.fit(to_frame(two_kinds()), TABLE).release_


def save_changed(release: Release, path: Path, change: Tampering) -> Path:
    release.save(path)
    archive = read_archive(path)
    manifest = copy.deepcopy(archive.manifest)
    change(manifest)
    write_archive(path, Archive(manifest, archive.tensors))
    return path


# --- what it lists ---


@pytest.mark.parametrize("clusters", [1, 2])
def test_each_marginal_is_listed_with_its_columns_and_its_noise(clusters: int) -> None:
    certificate = fit(clusters).certificate
    assert fit(clusters).verify() == []
    sigmas = {c.purpose: c.event.sigma for c in certificate.charges if isinstance(c.event, DiscreteGaussian)}
    config, names = fit(clusters).model.state().config, list(TABLE.columns)
    expected = {}
    for number, own in enumerate(config["components"] if clusters > 1 else [config]):
        for place, clique in enumerate(own["cliques"]):
            precision = sum(
                units[place] / sigmas[f"marginals, round {r + 1}"] ** 2 for r, units in enumerate(own["units"])
            )
            key = (number if clusters > 1 else None, tuple(names[v] for v in clique))
            expected[key] = 1 / math.sqrt(precision)
    found = {(each.cluster, tuple(each.columns)): each.deviation for each in certificate.measured}
    assert found == pytest.approx(expected)
    assert clusters > 1 or any(len(columns) > 1 for _, columns in found)


def test_people_and_machines_read_it() -> None:
    certificate = fit().certificate
    plain = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert Certificate.from_dict(plain) == certificate
    assert len(plain["measured"]) == len(certificate.measured)
    for each in certificate.measured:
        if len(each.columns) > 1:
            assert " × ".join(each.columns) in str(certificate)
    assert f"{len(TABLE.columns)} columns by themselves" in str(certificate)


def test_the_components_of_a_mixture_are_told_apart() -> None:
    text = str(fit(2).certificate)
    assert text.index("cluster 0:") < text.index("cluster 1:")


def test_other_models_list_nothing() -> None:
    release = Synthesizer("independent", 1.0, 1e-6).fit(to_frame(two_kinds()), TABLE).release_
    assert release.certificate.measured == []
    assert "Measured in the rounds" not in str(release.certificate)


# --- many of them ---


def make_marginals(pairs: int, clusters: int = 0, name: str = "column") -> list[MeasuredMarginal]:
    numbers: list[int | None] = [None] if clusters == 0 else list(range(clusters))
    return [
        MeasuredMarginal((f"{name} {place}", f"{name} {place + 1}"), 10.0 + place, number)
        for number in numbers
        for place in range(pairs)
    ]


@pytest.mark.parametrize("name", ["c", "marital_status", "x" * 150, "日本語", "a\nb\x1b[2J"], ids=repr)
@pytest.mark.parametrize(("pairs", "clusters"), [(1, 0), (60, 0), (5000, 0), (40, 3), (7, 500)])
def test_the_text_stays_short_and_narrow(name: str, pairs: int, clusters: int) -> None:
    measured = make_marginals(pairs, clusters, name)
    lines = format_marginals(list_marginals(measured))
    assert len(lines) < 60
    assert all(len(line) <= 100 and line.isprintable() for line in lines)
    shown = sum(line.count(" × ") for line in lines)
    assert shown >= min(len(measured), 50)
    assert shown == len(measured) or lines[-1] == f"  … and {len(measured) - shown:,} more (--json lists them)"


def test_of_very_many_the_certificate_lists_the_first() -> None:
    """So that a release can be certified whatever was measured."""
    measured = make_marginals(MOST_LISTED + 10)
    listed = list_marginals(measured)
    assert len(listed) == MOST_LISTED
    assert compare_marginals(listed, measured) == []
    plain = {**fit().certificate.to_dict(), "measured": [each.model_dump() for each in listed]}
    assert len(Certificate.from_dict(plain).measured) == MOST_LISTED
    with pytest.raises(ReleaseError, match="malformed"):
        Certificate.from_dict({**plain, "measured": [*plain["measured"], plain["measured"][0]]})


# --- tampering ---


def _change_noise(manifest: dict[str, Any]) -> None:
    manifest["certificate"]["measured"][1]["deviation"] *= 1.01


def _move_noise(manifest: dict[str, Any]) -> None:
    """The model's own measurements: one pair less often, another as much more often, at the same price."""
    config = manifest["model"]["config"]
    units = config.get("components", [config])[0]["units"][0]
    few, many = (units.index(find(u for u in units if u)) for find in (min, max))
    units[many], units[few] = units[many] - 1, units[few] + 1


TAMPERINGS: dict[str, Tampering] = {
    "one left out": lambda manifest: manifest["certificate"]["measured"].pop(1),
    "all left out": lambda manifest: manifest["certificate"].update(measured=[]),
    "no list": lambda manifest: manifest["certificate"].pop("measured"),
    "one twice": lambda manifest: manifest["certificate"]["measured"].append(manifest["certificate"]["measured"][-1]),
    "another order": lambda manifest: manifest["certificate"]["measured"].reverse(),
    "another column": lambda manifest: manifest["certificate"]["measured"][0].update(columns=["shade"]),
    "another cluster": lambda manifest: manifest["certificate"]["measured"][0].update(cluster=7),
    "other noise": _change_noise,
    "other measurements": _move_noise,
}


@pytest.mark.parametrize("clusters", [1, 2])
@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_a_list_that_is_not_the_models_is_noticed(tampering: str, clusters: int, tmp_path: Path) -> None:
    path = save_changed(fit(clusters), tmp_path / "a.sundog", TAMPERINGS[tampering])
    problems = Document.load(path).verify().problems
    assert len(problems) == 1
    assert problems[0].startswith("the certificate lists ")
    assert problems[0].isprintable()
    assert len(problems[0]) < 250


def test_a_round_that_nothing_paid_for_has_no_noise_to_list(tmp_path: Path) -> None:
    def remove(manifest: dict[str, Any]) -> None:
        charges = manifest["certificate"]["charges"]
        manifest["certificate"]["charges"] = [c for c in charges if c["purpose"] != "marginals, round 2"]

    problems = Document.load(save_changed(fit(), tmp_path / "a.sundog", remove)).verify().problems
    assert "no charge pays for the marginals, round 2" in problems
    assert any(problem.startswith("the certificate lists ") for problem in problems)


def test_a_certificate_without_a_list_is_one_of_a_model_that_measured_nothing() -> None:
    plain = fit().certificate.to_dict()
    del plain["measured"]
    certificate = Certificate.from_dict(plain)
    assert certificate.measured == []
    assert certificate.recheck(TABLE) == []
    assert certificate.recheck(TABLE, fit().document.model) != []


@pytest.mark.parametrize(
    "entry",
    [
        None,
        [],
        {},
        {"columns": ["age"]},
        {"columns": [], "deviation": 1.0},
        {"columns": "age", "deviation": 1.0},
        {"columns": [1], "deviation": 1.0},
        {"columns": ["\x1b[2J"], "deviation": 1.0},
        {"columns": ["two\nlines"], "deviation": 1.0},
        {"columns": ["x" * 201], "deviation": 1.0},
        {"columns": ["age"], "deviation": 0.0},
        {"columns": ["age"], "deviation": -1.0},
        {"columns": ["age"], "deviation": math.nan},
        {"columns": ["age"], "deviation": math.inf},
        {"columns": ["age"], "deviation": "1"},
        {"columns": ["age"], "deviation": 1.0, "cluster": -1},
        {"columns": ["age"], "deviation": 1.0, "cluster": 10**9},
        {"columns": ["age"], "deviation": 1.0, "cluster": 0.5},
        {"columns": ["age"], "deviation": 1.0, "units": 3},
    ],
    ids=lambda entry: str(entry)[:50],
)
def test_what_is_no_marginal_is_refused(entry: Any) -> None:
    with pytest.raises(ReleaseError, match="malformed") as error:
        Certificate.from_dict({**fit().certificate.to_dict(), "measured": [entry]})
    assert "\n" not in str(error.value)


marginals = st.fixed_dictionaries(
    {
        "columns": st.lists(st.one_of(st.sampled_from(list(TABLE.columns)), st.text(max_size=200)), max_size=9),
        "deviation": st.one_of(st.floats(), st.integers(-1, 10**40)),
    },
    optional={"cluster": st.one_of(st.none(), st.integers(-1, 10**7))},
)


@settings(max_examples=200, deadline=None, database=None)
@given(st.lists(marginals, max_size=5))
def test_any_list_is_refused_or_held_against_the_model(listed: list[dict[str, Any]]) -> None:
    said = ""
    try:
        certificate = Certificate.from_dict({**fit().certificate.to_dict(), "measured": listed})
    except ReleaseError as error:
        said = str(error)
    if said:
        assert len(said.splitlines()) == 1
        return
    measured = fit().document.model.list_measured(certificate.charges)
    assert len(compare_marginals(certificate.measured, measured)) == 1
    assert all(line.isprintable() for line in str(certificate).splitlines())
