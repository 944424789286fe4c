"""Views of a ledger: what was paid for is not paid for again, and nothing else is ever free."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sundog.errors import BudgetExceededError, LedgerError
from sundog.privacy.events import Charge, Gaussian, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.ledger_views import Disjoint, Prepaid
from sundog.privacy.mechanisms import gaussian_sum
from sundog.privacy.noise import NoiseSource

COUNT = Charge(event=Pure(epsilon=0.2), purpose="a count")
SUM = Charge(event=Gaussian(noise_multiplier=20.0), purpose="a sum")
TOO_MUCH = Charge(event=Pure(epsilon=5.0), purpose="everything")


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(epsilon=1.0, delta=1e-5)


# --- prepaid ---


def test_a_prepaid_charge_is_used_once(ledger: Ledger) -> None:
    view = Prepaid(ledger, [COUNT])
    view.spend(COUNT)
    assert list(ledger.charges) == []
    view.spend(COUNT)
    assert ledger.charges == (COUNT,)


def test_a_charge_that_was_prepaid_twice_is_used_twice(ledger: Ledger) -> None:
    view = Prepaid(ledger, [COUNT, COUNT])
    view.spend(COUNT, COUNT)
    view.spend(COUNT)
    assert ledger.charges == (COUNT,)


def test_what_was_not_prepaid_is_charged(ledger: Ledger) -> None:
    Prepaid(ledger, [COUNT]).spend(SUM, COUNT)
    assert ledger.charges == (SUM,)
    assert [len(entry.charges) for entry in ledger.entries] == [1]


@pytest.mark.parametrize(
    "other",
    [
        COUNT.model_copy(update={"purpose": "another count"}),
        COUNT.model_copy(update={"count": 2}),
        Charge(event=Pure(epsilon=0.1), purpose="a count"),
        Charge(event=Pure(epsilon=0.3), purpose="a count"),
    ],
    ids=["purpose", "count", "cheaper", "dearer"],
)
def test_a_charge_that_is_only_similar_is_charged(ledger: Ledger, other: Charge) -> None:
    Prepaid(ledger, [COUNT]).spend(other)
    assert ledger.charges == (other,)


def test_a_refusal_uses_nothing_up(ledger: Ledger) -> None:
    view = Prepaid(ledger, [COUNT])
    with pytest.raises(BudgetExceededError, match="'everything' would bring"):
        view.spend(COUNT, TOO_MUCH)
    assert ledger.charges == ()
    view.spend(COUNT)
    assert ledger.charges == ()


def test_the_caller_may_do_with_its_list_as_it_likes(ledger: Ledger) -> None:
    charges = [COUNT]
    view = Prepaid(ledger, charges)
    charges.append(SUM)
    view.spend(COUNT, SUM)
    assert ledger.charges == (SUM,)


# --- disjoint ---


def _spend_all(ledger: Ledger, charges: list[tuple[Charge, ...]]) -> None:
    for together in charges:
        ledger.spend(*together)


def test_equal_charges_of_all_parts_are_paid_once(ledger: Ledger) -> None:
    for part in Disjoint.split(ledger, 5):
        part.spend(COUNT)
        part.spend(SUM, COUNT)
    assert [entry.charges for entry in ledger.entries] == [(COUNT,), (SUM, COUNT)]
    assert ledger.compute_spent() < 1.0  # five times as much would not fit


def test_parts_may_take_turns(ledger: Ledger) -> None:
    first, second = Disjoint.split(ledger, 2)
    first.spend(COUNT)
    second.spend(COUNT)
    second.spend(SUM)  # whoever comes first pays
    first.spend(SUM)
    assert ledger.charges == (COUNT, SUM)


def test_a_part_pays_for_what_it_does_twice(ledger: Ledger) -> None:
    first, second = Disjoint.split(ledger, 2)
    for _ in range(2):
        first.spend(COUNT)
    for _ in range(3):
        second.spend(COUNT)
    assert ledger.charges == (COUNT, COUNT, COUNT)


@pytest.mark.parametrize(
    "charges",
    [
        [(SUM,), (COUNT,)],
        [(COUNT, SUM)],
        [(COUNT.model_copy(update={"count": 2}),)],
        [(COUNT.model_copy(update={"purpose": "another"}),)],
        [(Charge(event=Pure(epsilon=0.1), purpose="a count"),)],
        [()],
    ],
    ids=["order", "together", "more of it", "purpose", "cheaper", "nothing"],
)
def test_another_order_or_another_charge_is_refused(ledger: Ledger, charges: list[tuple[Charge, ...]]) -> None:
    first, second = Disjoint.split(ledger, 2)
    first.spend(COUNT)
    first.spend(SUM)
    before = ledger.entries
    with pytest.raises(LedgerError, match="the same things in the same order"):
        _spend_all(second, charges)
    assert ledger.entries == before
    second.spend(COUNT)  # and it may still do what it should
    second.spend(SUM)
    assert ledger.entries == before


def test_a_refusal_passes_through_and_counts_for_nothing(ledger: Ledger) -> None:
    first, second = Disjoint.split(ledger, 2)
    for part in (first, second, first):
        with pytest.raises(BudgetExceededError, match="'everything' would bring"):
            part.spend(TOO_MUCH)
    assert list(ledger.charges) == []
    first.spend(COUNT)
    second.spend(COUNT)
    assert ledger.charges == (COUNT,)


def test_two_groups_of_parts_share_nothing(ledger: Ledger) -> None:
    for _ in range(2):
        for part in Disjoint.split(ledger, 3):
            part.spend(COUNT)
    assert ledger.charges == (COUNT, COUNT)


def test_a_part_measures_with_noise_of_its_own(ledger: Ledger) -> None:
    rows = np.zeros((4, 50))
    found = [
        gaussian_sum(rows, clip_norm=1.0, noise_multiplier=20.0, ledger=part, purpose="a sum")
        for part in Disjoint.split(ledger, 3)
    ]
    assert ledger.charges == (SUM,)
    assert len({row.tobytes() for row in found}) == 3


# --- both are the ledger behind them ---


@pytest.mark.parametrize("kind", ["prepaid", "disjoint"])
def test_a_view_shows_and_checks_what_its_ledger_does(kind: str, tmp_path: Path) -> None:
    shared = Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-5, noise=NoiseSource.seeded(1))
    shared.spend(COUNT)
    run = shared.run(epsilon=0.5, delta=1e-5, name="mine")
    view: Ledger = Prepaid(run, []) if kind == "prepaid" else Disjoint.split(run, 2)[0]
    assert view.noise is run.noise
    assert (view.name, view.budget, view.private) == (run.name, run.budget, False)
    view.spend(SUM)
    assert view.own_entries == run.own_entries != ()
    assert view.charges == run.charges == (SUM,)
    assert view.compute_spent() == run.compute_spent()
    assert [entry.run for entry in Ledger.open(tmp_path / "l").entries] == [shared.name, "mine"]
    half = Charge(event=Pure(epsilon=0.5), purpose="half")
    with pytest.raises(BudgetExceededError):  # of the run
        view.check(half)
    shared.spend(half)
    with pytest.raises(BudgetExceededError):  # of the file
        view.spend(COUNT)
    assert run.charges == (SUM,)


def test_what_was_tightened_afterwards_holds_for_views_too(ledger: Ledger) -> None:
    run = ledger.run(epsilon=1.0, delta=1e-5)
    view = Disjoint.split(run, 1)[0]
    run.tighten(delta=1e-12)
    tight = Charge(event=Gaussian(noise_multiplier=4.5), purpose="fits at the old delta")
    ledger.check(tight)
    with pytest.raises(BudgetExceededError):
        view.spend(tight)


def test_what_another_part_has_paid_for_can_be_asked_of_a_ledger_that_has_nothing_left() -> None:
    charge = Charge(event=Pure(epsilon=0.9), purpose="a count")
    first, second = Disjoint.split(Ledger(epsilon=1.0, delta=1e-6), 2)
    first.spend(charge)
    second.check(charge)
    with pytest.raises(BudgetExceededError):
        first.check(charge)
