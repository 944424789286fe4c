"""One fit, stage by stage: what each is charged, what is left behind, and how fits share a ledger."""

from __future__ import annotations

import importlib.metadata
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sundog
from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError, LedgerError, ReleaseError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.independent.independent import Independent
from sundog.models.protocol import State
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.budget import compute_default_delta
from sundog.privacy.events import Charge, DiscreteLaplace, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.privacy.record_count import compute_fit_epsilon
from sundog.release.release import Release, _get_version

COLUMNS: dict[str, dict[str, Any]] = {
    "n": {"type": "integer", "min": 0, "max": 9},
    "b": {"type": "boolean"},
}
LEARNED: dict[str, dict[str, Any]] = {"n": {"type": "integer", "learn": True}, "b": {"type": "boolean"}}


def make_schema(columns: dict[str, dict[str, Any]] | None = None, **rest: Any) -> Schema:
    return Schema.from_dict({**rest, "columns": columns or COLUMNS})


def make_data(n: int) -> dict[str, Any]:
    return {"n": np.arange(n) % 10, "b": np.arange(n) % 2 == 0}


def list_purposes(release: Release) -> list[str]:
    return [charge.purpose for charge in release.certificate.charges]


MARGINALS = ["marginal of n", "marginal of b"]

# --- δ ---


def test_delta_comes_from_a_count_that_is_paid_for() -> None:
    release = Synthesizer("independent", epsilon=1.0).fit(make_data(20_000), make_schema()).release_
    assert list_purposes(release) == ["number of records", *MARGINALS]
    count = release.certificate.charges[0].event
    assert count == DiscreteLaplace(rate=0.02)
    assert release.certificate.delta == 1e-5  # fixed beforehand: what is promised may not hang on what was drawn
    given = release.certificate.conditional
    assert given is not None
    assert given.records == pytest.approx(20_000, rel=0.1)  # noise of 70 in 20,000
    assert given.delta == compute_default_delta(given.records)
    assert given.epsilon == pytest.approx(0.98)
    assert release.verify() == []


def compute_proven_delta(*, records: int, rate: float) -> float:
    """E[δ(n̂)] of the theorem in docs/privacy.md, for geometric noise of this rate on so many records."""
    reach = round(40 / rate)
    noise = np.arange(-reach, reach + 1)
    chances = np.exp(-rate * np.abs(noise))
    deltas = np.minimum(1e-5, 0.1 / np.maximum(records + noise, 1) ** 1.1)
    return float((chances / chances.sum() * deltas).sum())


@pytest.mark.parametrize("noise", [-60_000, -45_000, 0, 30_000, 10**9])
def test_the_promised_delta_is_never_below_the_proven_one(noise: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At ε = 0.1 and a cap of 50 the noise on 50,000 records is 25,000 wide, and δ(n̂) is anything."""
    proven = compute_proven_delta(records=50_000, rate=0.1 * 0.02 / 50)
    assert 6e-7 < compute_default_delta(50_000) < 1.1 * proven

    def count(exact: int, *, epsilon: float, ledger: Ledger, purpose: str, contribution: int) -> int:
        event = DiscreteLaplace(rate=epsilon / contribution, sensitivity=contribution)
        ledger.spend(Charge(event=event, purpose=purpose))
        return exact + noise

    monkeypatch.setattr("sundog.fit.stages.noisy_count", count)
    data = {**make_data(50_000), "who": np.arange(50_000) // 50}
    release = Synthesizer("independent", epsilon=0.1).fit(data, make_schema(unit="who", cap=50)).release_
    certificate = release.certificate
    assert certificate.conditional is not None
    assert certificate.delta == 1e-5 >= proven
    assert (certificate.conditional.delta < proven) == (noise >= 0)  # which the certificate used to promise
    sentence = f"noisy number of records is {50_000 + noise:,}"
    assert (sentence in str(certificate)) == (certificate.conditional.delta < certificate.delta)
    assert release.verify() == []


def test_what_is_said_of_the_budget_adds_up_and_names_the_promised_delta() -> None:
    said: list[str] = []
    wide: dict[str, dict[str, Any]] = {"n": {"type": "integer", "min": 0, "max": 99_999}, "b": {"type": "boolean"}}
    synthesizer = Synthesizer("independent", epsilon=1.0)
    synthesizer.fit(make_data(100_000), make_schema(wide), progress=lambda stage, _: said.append(stage))
    (budget,) = (stage for stage in said if stage.startswith("budget"))
    first, *lines = budget.splitlines()
    assert [int(line.split("%")[0].split()[-1]) for line in lines] == [2, 98]
    assert "5% of this, measured by ρ, refines default bins" in lines[-1]
    certificate = synthesizer.release_.certificate
    assert certificate.conditional is not None
    assert certificate.conditional.delta < certificate.delta == 1e-5
    assert first.startswith(
        f"budget: ε = 1, δ = 1e-05 (promised; the noise is for δ = {certificate.conditional.delta:.3g}, "
    )


def test_a_shared_ledger_whose_delta_promises_nothing_is_refused_before_it_pays() -> None:
    ledger = Ledger(epsilon=2.0, delta=0.02)
    with pytest.raises(BudgetExceededError, match=r"the shared ledger's δ = 0\.02 promises nothing"):
        Synthesizer("independent", epsilon=1.0, ledger=ledger).fit(make_data(50), make_schema())
    assert not ledger.charges


def test_delta_is_never_above_its_largest() -> None:
    assert Synthesizer("independent", epsilon=1.0).fit(make_data(3), make_schema()).release_.certificate.delta == 1e-5


def test_a_declared_number_of_records_costs_nothing() -> None:
    release = Synthesizer("independent", epsilon=1.0).fit(make_data(500), make_schema(records=100_000)).release_
    assert list_purposes(release) == MARGINALS
    assert release.certificate.delta == compute_default_delta(100_000)
    assert any("100,000" in line for line in release.certificate.assumed_public)


def test_a_delta_that_was_asked_for_costs_nothing() -> None:
    release = Synthesizer("independent", epsilon=1.0, delta=1e-7).fit(make_data(500), make_schema()).release_
    assert list_purposes(release) == MARGINALS
    assert release.certificate.delta == 1e-7


def test_delta_with_a_shared_ledger_is_never_above_that_of_the_ledger() -> None:
    ledger = Ledger(epsilon=2.0, delta=3e-8)
    release = Synthesizer("independent", epsilon=1.0, ledger=ledger).fit(make_data(500), make_schema()).release_
    assert release.certificate.delta == 3e-8
    assert list_purposes(release) == ["number of records", *MARGINALS]


@pytest.mark.parametrize("ledger_delta", [1e-5, 1e-2])
def test_delta_with_a_shared_ledger_is_that_of_the_records_where_it_is_lower(ledger_delta: float) -> None:
    ledger = Ledger(epsilon=2.0, delta=ledger_delta)
    release = Synthesizer("independent", epsilon=1.0, ledger=ledger).fit(make_data(20_000), make_schema()).release_
    assert list_purposes(release) == ["number of records", *MARGINALS]
    assert release.certificate.charges[0].event == DiscreteLaplace(rate=0.02)
    assert release.certificate.delta == 1e-5
    assert release.certificate.conditional is not None
    assert release.certificate.conditional.delta == pytest.approx(compute_default_delta(20_000), rel=0.1)
    assert release.verify() == []


@pytest.mark.parametrize(("ledger_delta", "delta"), [(1e-9, 1e-9), (1e-5, compute_default_delta(100_000))])
def test_a_declared_number_of_records_costs_nothing_with_a_shared_ledger(ledger_delta: float, delta: float) -> None:
    ledger = Ledger(epsilon=2.0, delta=ledger_delta)
    release = (
        Synthesizer("independent", epsilon=1.0, ledger=ledger)
        .fit(make_data(500), make_schema(records=100_000))
        .release_
    )
    assert list_purposes(release) == MARGINALS
    assert release.certificate.delta == delta


def test_what_follows_the_count_is_private_at_the_delta_that_it_chose() -> None:
    release = Synthesizer("independent", epsilon=1.0).fit(make_data(20_000), make_schema(LEARNED)).release_
    certificate = release.certificate
    assert list_purposes(release)[0] == "number of records"
    assert certificate.conditional is not None
    rest = compute_epsilon(certificate.charges[1:], delta=certificate.conditional.delta)
    assert 0.998 * 0.98 <= rest <= 0.98  # by itself, whatever the count was


def test_the_count_of_a_capped_unit_is_taken_off_as_a_whole() -> None:
    data = {**make_data(6000), "who": np.arange(6000) // 10}
    release = Synthesizer("independent", epsilon=1.0).fit(data, make_schema(unit="who", cap=3)).release_
    given = release.certificate.conditional
    assert given is not None
    assert 0.998 * 0.98 <= compute_epsilon(release.certificate.charges[1:], delta=given.delta) <= 0.98


def test_the_count_of_a_capped_unit_is_charged_for_the_cap() -> None:
    data = {**make_data(6000), "who": np.arange(6000) // 10}
    release = Synthesizer("independent", epsilon=1.0).fit(data, make_schema(unit="who", cap=3)).release_
    assert release.certificate.charges[0].event == DiscreteLaplace(rate=0.02 / 3, sensitivity=3)
    assert [charge.count for charge in release.certificate.charges[1:]] == [3, 3]
    assert release.records == pytest.approx(1800, abs=400)  # 600 people with 3 records of their 10 each


# --- the budget ---


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("columns", [COLUMNS, LEARNED], ids=["declared", "learned"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_every_stage_together_spends_the_budget_and_no_more(
    epsilon: float, columns: dict[str, Any], delta: float | None
) -> None:
    data = make_data(50_000)
    release = Synthesizer("independent", epsilon=epsilon, delta=delta).fit(data, make_schema(columns)).release_
    certificate = release.certificate
    given = certificate.conditional
    spent = compute_fit_epsilon(certificate.charges, delta=certificate.delta if given is None else given.delta)
    assert 0.998 * epsilon <= spent <= epsilon
    assert certificate.spent["pld"] == pytest.approx(spent)
    assert release.verify() == []


@pytest.mark.parametrize("columns", [COLUMNS, LEARNED], ids=["declared", "learned"])
def test_a_declared_number_of_records_leaves_nothing_unspent(columns: dict[str, Any]) -> None:
    certificate = (
        Synthesizer("independent", epsilon=1.0)
        .fit(make_data(5000), make_schema(columns, records=5000))
        .release_.certificate
    )
    assert 0.998 <= compute_epsilon(certificate.charges, delta=certificate.delta) <= 1


def test_stages_are_told_in_order_with_how_far_they_are(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    synthesizer = Synthesizer("independent", epsilon=4.0)
    synthesizer.fit(
        make_data(5000), make_schema(LEARNED), out=tmp_path / "o.sundog", progress=lambda *what: told.append(what)
    )
    stages = [stage for stage, _ in itertools.groupby(stage.splitlines()[0] for stage, _ in told)]
    given = synthesizer.release_.certificate.conditional
    assert given is not None
    delta = given.delta
    assert delta < 1e-5
    assert stages == [
        "reading",
        # once the records were counted
        f"budget: ε = 4, δ = 1e-05 (promised; the noise is for δ = {delta:.3g}, which follows from the noisy number of "
        "records)",
        "learning the schema",
        "planning",
        "counting",
        "saving",
    ]
    assert all(0.0 <= done <= 1.0 for _, done in told)


# --- ledgers ---


def test_two_fits_on_one_ledger_compose(tmp_path: Path) -> None:
    path = tmp_path / "all.ledger"
    Ledger.create(path, epsilon=3.0, delta=1e-5)
    releases = [
        Synthesizer("independent", epsilon=1.0, ledger=path)
        .fit(make_data(100), make_schema(), out=tmp_path / f"{i}.sundog")
        .release_
        for i in range(2)
    ]
    ledger = Ledger.open(path)
    assert list(ledger.charges) == [charge for release in releases for charge in release.certificate.charges]
    assert len({entry.run for entry in ledger.entries}) == 2
    assert 1.0 < ledger.compute_spent() < 2.0  # two Gaussian releases together cost less than the sum of their ε
    for index, release in enumerate(releases):
        assert release.certificate.ledger is not None
        assert release.certificate.ledger.epsilon == 3.0
        spent = compute_fit_epsilon(ledger.charges[: 3 * index + 3], delta=1e-5)
        assert release.certificate.ledger.spent == pytest.approx(spent)
        assert release.verify() == []


def test_a_ledger_counts_a_fit_as_its_certificate_does(tmp_path: Path) -> None:
    """What a count chose is proven by adding its ε; the total must not say less than the release does."""
    synthesizer = Synthesizer("independent", epsilon=1.0, ledger=tmp_path / "one.ledger")
    certificate = synthesizer.fit(make_data(100), make_schema(), out=tmp_path / "a.sundog").release_.certificate
    assert certificate.spent["pld"] is not None
    assert certificate.conditional is not None
    assert certificate.conditional.delta == certificate.delta
    assert Ledger.open(tmp_path / "one.ledger").compute_spent() == pytest.approx(certificate.spent["pld"], rel=1e-6)


def test_what_is_yet_to_be_learned_stops_no_fit_into_a_file(tmp_path: Path) -> None:
    columns = {"n": {"type": "integer", "min": 0, "max": 9999, "bins": "quantiles"}}
    synthesizer = Synthesizer("independent", epsilon=1.0, delta=1e-6)
    release = synthesizer.fit({"n": np.arange(2000)}, make_schema(columns), out=tmp_path / "a.sundog").release_
    assert list_purposes(release) == ["quantiles of n", "marginal of n"]
    assert Release.load(tmp_path / "a.sundog").verify() == []


def test_a_ledger_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    Synthesizer("independent", epsilon=0.5, delta=1e-6, ledger=tmp_path / "new").fit(make_data(100), make_schema())
    ledger = Ledger.open(tmp_path / "new")
    assert (ledger.budget.epsilon, ledger.budget.delta) == (0.5, 1e-6)
    assert 0.499 < ledger.compute_spent() <= 0.5
    with pytest.raises(BudgetExceededError, match="refused"):
        Synthesizer("independent", epsilon=0.1, ledger=tmp_path / "new").fit(make_data(100), make_schema())


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_what_a_count_decides_is_paid_for_beside_it(delta: float | None) -> None:
    """It chooses a sampling rate at least: so the rest must hold by itself, within what the count has left."""
    quick = {"epochs": 1, "hidden": 4}
    certificate = (
        Synthesizer("rbm", 1.0, delta, settings=quick).fit(make_data(3000), make_schema()).release_.certificate
    )
    rest = [charge for charge in certificate.charges if charge.purpose != "number of records"]
    assert len(rest) == len(certificate.charges) - 1
    assert 0.97 < compute_epsilon(rest, delta=certificate.delta) <= 0.98


@pytest.mark.parametrize("model", ["independent", "rbm", "vae", "gan", "auto"])
@pytest.mark.parametrize("epsilon", [0.5, 1.5], ids=["what is left is too little", "more than there ever was"])
def test_a_fit_that_the_ledger_refuses_leaves_no_trace(epsilon: float, model: str, tmp_path: Path) -> None:
    path = tmp_path / "all.ledger"
    Ledger.create(path, epsilon=1.0, delta=1e-5)
    Synthesizer("independent", epsilon=1.0, ledger=path).fit(make_data(100), make_schema())
    before = path.read_bytes()
    with pytest.raises(BudgetExceededError, match="refused"):
        Synthesizer(model, epsilon=epsilon, ledger=path).fit(make_data(100), make_schema(), out=tmp_path / "o.sundog")
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["all.ledger"]


@pytest.mark.parametrize("delta", [1e-5, 1e-6])
def test_a_ledger_in_memory_is_shared_too(delta: float) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    synthesizer = Synthesizer("independent", epsilon=0.8, delta=delta, ledger=ledger)
    synthesizer.fit(make_data(100), make_schema())
    with pytest.raises(BudgetExceededError):
        synthesizer.fit(make_data(100), make_schema())
    assert [charge.purpose for charge in ledger.charges] == MARGINALS  # of the first one


def test_a_fit_whose_delta_is_not_yet_known_is_refused_before_the_count() -> None:
    """Whether it fits depends on the δ that the count chooses: the largest must."""
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    synthesizer = Synthesizer("independent", epsilon=0.8, ledger=ledger)
    synthesizer.fit(make_data(100), make_schema())
    with pytest.raises(BudgetExceededError):
        synthesizer.fit(make_data(100), make_schema())
    assert [charge.purpose for charge in ledger.charges] == ["number of records", *MARGINALS]


def test_the_noise_is_that_of_the_ledger() -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    for noise in (NoiseSource(), NoiseSource.seeded(1)):
        with pytest.raises(SundogError, match="the noise of a fit is that of its ledger"):
            Synthesizer("independent", epsilon=0.8, ledger=ledger, noise=noise).fit(make_data(100), make_schema())
    assert ledger.charges == ()
    seeded = Ledger(epsilon=1.0, delta=1e-5, noise=NoiseSource.seeded(1))
    assert (
        not Synthesizer("independent", epsilon=0.8, ledger=seeded)
        .fit(make_data(100), make_schema())
        .release_.certificate.private
    )


@pytest.mark.parametrize("kept", ["memory", "file"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_a_fit_that_cannot_fit_is_refused_before_the_count(delta: float | None, kept: str, tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger = Ledger(epsilon=1.0, delta=1e-5) if kept == "memory" else Ledger.create(path, epsilon=1.0, delta=1e-5)
    ledger.spend(Charge(event=Pure(epsilon=0.5), purpose="earlier"))  # the count alone would still fit
    before = ledger.to_dict()
    for out in (None, tmp_path / "o.sundog"):
        with pytest.raises(BudgetExceededError, match="refused: 'marginal of n', 'marginal of b'") as error:
            Synthesizer("independent", epsilon=0.9, delta=delta, ledger=ledger if kept == "memory" else path).fit(
                make_data(100), make_schema(), out=out
            )
        assert "0.5 was spent before" in str(error.value)
    assert ledger.to_dict() == before
    assert [file.name for file in tmp_path.iterdir()] == ["l"] * (kept == "file")


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "l").write_text("my shopping list\n")
    with pytest.raises(LedgerError, match="l: line 1"):
        Synthesizer("independent", epsilon=1.0, ledger=tmp_path / "l").fit(
            make_data(10), make_schema(), out=tmp_path / "o.sundog"
        )
    assert (tmp_path / "l").read_text() == "my shopping list\n"
    assert [file.name for file in tmp_path.iterdir()] == ["l"]


def test_test_noise_marks_the_ledger_and_every_later_certificate(tmp_path: Path) -> None:
    path = tmp_path / "all.ledger"
    Ledger.create(path, epsilon=3.0, delta=1e-5)
    noise = NoiseSource.seeded(1)
    first = (
        Synthesizer("independent", epsilon=1.0, ledger=path, noise=noise).fit(make_data(100), make_schema()).release_
    )
    second = Synthesizer("independent", epsilon=1.0, ledger=path).fit(make_data(100), make_schema()).release_
    assert not Ledger.open(path).private
    for release in (first, second):  # whoever knows the seed knows what else the ledger paid for
        assert not release.certificate.private
        assert "NOT PRIVATE" in release.certificate.noise
        assert str(release.certificate).startswith("NOT PRIVATE")
        assert any("NOT PRIVATE" in problem for problem in release.verify())


# --- bad data is said before anything is spent ---


@pytest.mark.parametrize(
    ("columns", "frame"),
    [
        (COLUMNS, pd.DataFrame({"n": [1, 2]})),
        (COLUMNS, pd.DataFrame({"n": [1, 99], "b": [True, False]})),
        (COLUMNS, pd.DataFrame({"n": [1, None], "b": [True, False]})),
        (COLUMNS, pd.DataFrame({"n": [1, 2], "b": ["yes", "perhaps"]})),
        (COLUMNS, pd.DataFrame({"n": [], "b": []})),
        (LEARNED, pd.DataFrame({"n": ["one", "two"], "b": [True, False]})),
        (LEARNED, pd.DataFrame({"n": [1, 2], "b": ["yes", "perhaps"]})),
        (LEARNED, pd.DataFrame({"b": [True, False]})),
    ],
    ids=["missing", "out of bounds", "empty value", "undeclared", "no records", "text", "beside one", "unlearned"],
)
@pytest.mark.parametrize("ledger_is_there", [True, False])
def test_bad_data_leaves_no_trace(
    columns: dict[str, Any], frame: pd.DataFrame, ledger_is_there: bool, tmp_path: Path
) -> None:
    path = tmp_path / "all.ledger"
    if ledger_is_there:
        Ledger.create(path, epsilon=1.0, delta=1e-5)
    with pytest.raises(DataError):
        Synthesizer("independent", epsilon=1.0, ledger=path).fit(frame, make_schema(columns), out=tmp_path / "o.sundog")
    assert [file.name for file in tmp_path.iterdir()] == ["all.ledger"] * ledger_is_there
    if ledger_is_there:
        assert Ledger.open(path).charges == ()


def test_a_finished_fit_leaves_the_release_and_nothing_else(tmp_path: Path) -> None:
    Synthesizer("independent", epsilon=1.0).fit(make_data(100), make_schema(), out=tmp_path / "o.sundog")
    assert [file.name for file in tmp_path.iterdir()] == ["o.sundog"]
    Synthesizer("independent", epsilon=1.0).fit(
        make_data(100), make_schema(), out=tmp_path / "o.sundog", overwrite=True
    )  # and may replace it
    assert [file.name for file in tmp_path.iterdir()] == ["o.sundog"]


def test_a_training_that_goes_astray_is_told_and_no_release_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Independent.state

    def astray(self: Independent) -> State:
        found = state(self)
        return State({name: np.full(tensor.shape, np.nan) for name, tensor in found.tensors.items()}, found.config)

    monkeypatch.setattr(Independent, "state", astray)
    with pytest.raises(SundogError, match="model 'independent': training diverged") as caught:
        Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(make_data(50), make_schema(), out=tmp_path / "o.sundog")
    assert "smaller learning_rate" in str(caught.value)
    assert not (tmp_path / "o.sundog").exists()


# --- what would fail at the end is said at the beginning ---


def check_no_trace(tmp_path: Path, said: str, **asked: Any) -> None:
    """The fit is refused, nothing was charged and nothing is left."""
    path = tmp_path / "all.ledger"
    if not path.exists():
        Ledger.create(path, epsilon=2.0, delta=1e-5)
    before = path.read_bytes()
    with pytest.raises(SundogError, match=said) as error:
        Synthesizer(**{"model": "independent", "epsilon": 1.0, "ledger": path, **asked}).fit(
            make_data(100), make_schema(), out=tmp_path / "o.sundog"
        )
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["all.ledger"]


def test_a_delta_that_no_certificate_can_state_costs_nothing(tmp_path: Path) -> None:
    check_no_trace(tmp_path, "delta", delta=1e-60)


@pytest.mark.parametrize("library", ["sundog", "randomgen"])
def test_a_package_without_metadata_costs_no_release(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = importlib.metadata.version

    def lacking(name: str) -> str:
        if name == library:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", lacking)
    monkeypatch.setattr("sundog.release.release._get_version", _get_version.__wrapped__)
    out = tmp_path / "o.sundog"
    Synthesizer("independent", epsilon=1.0).fit(make_data(100), make_schema(), out=out)
    assert Release.load(out).libraries[library] == (sundog.__version__ if library == "sundog" else "unknown")


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch = Path.touch

    def forbidden(path: Path, *rest: Any, **options: Any) -> None:
        if ".o.sundog." in path.name:
            raise PermissionError(13, "Permission denied")
        touch(path, *rest, **options)

    monkeypatch.setattr(Path, "touch", forbidden)  # root may write everywhere
    check_no_trace(tmp_path, r"o\.sundog: cannot be written \(Permission denied\)")


def test_a_release_that_could_not_be_written_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, *_: Any) -> None:
        raise ReleaseError(f"{path}: not written")

    monkeypatch.setattr("sundog.fit.preflight.write_archive", refused)
    check_no_trace(tmp_path, "not written")


@pytest.mark.parametrize("model", ["independent", "rbm"])
def test_near_exhaustion_a_refused_fit_pays_for_nothing_however_often(model: str, tmp_path: Path) -> None:
    """At any level of what is left, it is fitted or refused for nothing."""
    outcomes = set()
    settings = {"epochs": 0.1, "hidden": 4} if model == "rbm" else {}
    for number, spent in enumerate(np.linspace(0.0, 0.3, 12)):
        folder = tmp_path / str(number)
        folder.mkdir()
        ledger = Ledger.create(folder / "l", epsilon=1.1, delta=1e-5)
        ledger.spend(Charge(event=Pure(epsilon=float(spent) + 1e-3), purpose="earlier"))
        before = (folder / "l").read_bytes()
        synthesizer = Synthesizer(model, epsilon=1.0, ledger=folder / "l", settings=settings)
        try:
            synthesizer.fit(make_data(20_000), make_schema(), out=folder / "o.sundog")
            outcomes.add("fitted")
            assert len(Ledger.open(folder / "l").entries) > 2
        except BudgetExceededError:
            outcomes.add("refused")
            assert (folder / "l").read_bytes() == before
            assert [file.name for file in folder.iterdir()] == ["l"]
    assert outcomes == {"fitted", "refused"}


def test_what_could_not_be_saved_here_can_be_saved_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    synthesizer = Synthesizer("independent", epsilon=1.0, ledger=ledger)
    with monkeypatch.context() as patch:
        patch.setattr(Release, "save", lambda *_: (_ for _ in ()).throw(ReleaseError("cannot be written")))
        with pytest.raises(ReleaseError):
            synthesizer.fit(make_data(100), make_schema(), out=tmp_path / "o.sundog")
    synthesizer.release_.save(tmp_path / "elsewhere.sundog")
    assert Release.load(tmp_path / "elsewhere.sundog").verify() == []


@pytest.mark.parametrize(("epsilon", "warns"), [(20.0, False), (21.0, True), (1e9, True)])
def test_an_epsilon_that_protects_nobody_warns(epsilon: float, warns: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Synthesizer("independent", epsilon=epsilon, delta=1e-6).fit(make_data(100), make_schema())
    assert any("protects hardly anybody" in str(warning.message) for warning in caught) == warns


# --- ledgers and releases ---


def test_a_ledger_that_was_rolled_back_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "all.ledger"
    Ledger.create(path, epsilon=3.0, delta=1e-5)
    old = path.read_bytes()
    synthesizer = Synthesizer("independent", epsilon=1.0, ledger=path)
    synthesizer.fit(make_data(100), make_schema(), out=tmp_path / "first.sundog")
    new = path.read_bytes()
    path.write_bytes(old)
    with pytest.raises(LedgerError, match=r"all\.ledger: lacks charges that it had when first\.sundog was made"):
        synthesizer.fit(make_data(100), make_schema(), out=tmp_path / "second.sundog")
    assert path.read_bytes() == old
    path.write_bytes(new)
    synthesizer.fit(make_data(100), make_schema(), out=tmp_path / "second.sundog")


def test_a_fit_without_a_place_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Synthesizer("independent", epsilon=1.0).fit(make_data(100), make_schema())
    assert list(tmp_path.iterdir()) == []


def test_too_few_records_to_learn_from_is_one_line_and_what_was_spent_stays(tmp_path: Path) -> None:
    schema, out = make_schema(LEARNED), tmp_path / "o.sundog"
    with pytest.raises(DataError, match="column 'n': too few records"):
        Synthesizer("independent", epsilon=0.5, ledger=tmp_path / "l").fit(make_data(5), schema, out=out)
    assert [charge.purpose for charge in Ledger.open(tmp_path / "l").charges] == [
        "number of records",
        "range of n",
    ]
    assert not out.exists()
    with pytest.raises(SundogError, match="--resume"):
        Synthesizer("independent", epsilon=0.5, ledger=tmp_path / "l").fit(make_data(5), schema, out=out)
