"""Fits that share a ledger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.fit.material import MARGINALS, list_purposes, make_data, make_schema

from sundog.errors import BudgetExceededError, LedgerError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.privacy.record_count import compute_fit_epsilon
from sundog.release.release import Release


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
