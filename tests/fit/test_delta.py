"""The δ of a fit: from a declared or a measured number of records, or from a shared ledger."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.fit.material import LEARNED, MARGINALS, list_purposes, make_data, make_schema

from sundog.errors import BudgetExceededError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.budget import compute_default_delta
from sundog.privacy.events import Charge, DiscreteLaplace
from sundog.privacy.ledger import Ledger


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
