"""The ledger refuses before the spend, also for runs within a budget."""

import errno
import fcntl
import math
import os
from pathlib import Path
from typing import Any

import pytest
from tests.privacy.charges import DELTA, charge, charge_pure

from sundog.errors import BudgetExceededError, LedgerError
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import (
    Charge,
    DiscreteGaussian,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
)
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource

# --- the filter -----------------------------------------------------------------------------------------------------


def test_it_refuses_before_the_spend(ledger: Ledger) -> None:
    ledger.spend(charge_pure(0.7, "first"))
    before = ledger.to_dict()
    with pytest.raises(BudgetExceededError) as caught:
        ledger.spend(charge_pure(0.4, "second"))
    message = str(caught.value)
    assert "'second'" in message
    assert "0.7" in message
    assert "\n" not in message
    assert ledger.to_dict() == before
    ledger.spend(charge_pure(0.2, "third"))
    assert [charge.purpose for charge in ledger.charges] == ["first", "third"]


def test_several_charges_are_all_or_none(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceededError):
        ledger.spend(charge_pure(0.4), charge_pure(0.4), charge_pure(0.4))
    assert ledger.entries == ()
    ledger.spend(charge_pure(0.4), charge_pure(0.4))
    assert len(ledger.entries) == 1
    assert len(ledger.charges) == 2
    assert ledger.compute_spent() == pytest.approx(0.8, rel=1e-3)


def test_it_can_be_spent_to_the_last(ledger: Ledger) -> None:
    event = Gaussian(noise_multiplier=30.0)
    fits = 0
    while compute_epsilon([charge(event, fits + 1)], delta=DELTA) <= 1.0:
        fits += 1
    for _ in range(fits):
        ledger.spend(charge(event))
    with pytest.raises(BudgetExceededError):
        ledger.spend(charge(event))
    assert len(ledger.charges) == fits
    assert ledger.compute_spent() <= 1.0


def test_spending_nothing_costs_nothing(ledger: Ledger) -> None:
    ledger.spend()
    ledger.spend(charge(SampledGaussian(noise_multiplier=1.0, sample_rate=0.0), 10**6))
    assert ledger.compute_spent() == ledger.compute_spent("rdp") == ledger.compute_spent("moments") == 0


def test_failures_that_use_up_delta_are_refused(ledger: Ledger) -> None:
    ledger.spend(charge(Failure(delta=DELTA / 2)))
    with pytest.raises(BudgetExceededError):
        ledger.spend(charge(Failure(delta=DELTA / 2), 2))
    ledger.spend(charge_pure(0.5))
    assert ledger.compute_spent() < 1


@pytest.mark.parametrize(
    "event",
    [Pure(epsilon=800.0), Gaussian(noise_multiplier=1e-6), DiscreteGaussian(sigma=0.01)],
    ids=str,
)
def test_an_absurd_charge_is_refused_like_any_other(ledger: Ledger, event: Event) -> None:
    with pytest.raises(BudgetExceededError):
        ledger.spend(charge(event))
    assert ledger.entries == ()


@pytest.mark.timeout(600)
def test_an_absurd_count_is_refused_without_the_work() -> None:
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    with pytest.raises(BudgetExceededError):
        ledger.spend(charge(Pure(epsilon=0.5), 30_000))


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan])
def test_budgets_are_positive_numbers(epsilon: float, tmp_path: Path) -> None:
    with pytest.raises(BudgetExceededError, match="epsilon must be"):
        Ledger(epsilon=epsilon, delta=DELTA)
    with pytest.raises(BudgetExceededError, match="epsilon must be"):
        Ledger.create(tmp_path / "x", epsilon=epsilon, delta=DELTA)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("delta", [0, -1e-9, 1, 2, math.nan, math.inf])
def test_deltas_are_probabilities(delta: float) -> None:
    with pytest.raises(BudgetExceededError, match="delta must lie"):
        Budget(1.0, delta)


# --- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_is_limited_by_its_own_budget(ledger: Ledger) -> None:
    run = ledger.run(epsilon=0.3, delta=DELTA)
    run.spend(charge_pure(0.2))
    with pytest.raises(BudgetExceededError):
        run.spend(charge_pure(0.2))
    assert len(run.entries) == len(ledger.entries) == 1
    ledger.spend(charge_pure(0.7))


def test_a_run_is_limited_by_the_total(ledger: Ledger) -> None:
    ledger.spend(charge_pure(0.8))
    run = ledger.run(epsilon=0.9, delta=DELTA)
    with pytest.raises(BudgetExceededError):
        run.spend(charge_pure(0.3))
    assert run.entries == ()
    assert len(ledger.entries) == 1
    run.spend(charge_pure(0.1))
    assert len(run.entries) == 1
    assert len(ledger.entries) == 2


def test_two_runs_compose_in_the_total_and_not_in_each_other(ledger: Ledger) -> None:
    one, other = ledger.run(epsilon=0.6, delta=DELTA), ledger.run(epsilon=0.6, delta=DELTA)
    one.spend(charge_pure(0.5, "one"))
    with pytest.raises(BudgetExceededError):
        other.spend(charge_pure(0.55, "other"))
    other.spend(charge_pure(0.4, "other"))
    assert [charge.purpose for charge in one.charges] == ["one"]
    assert [charge.purpose for charge in other.charges] == ["other"]
    assert [entry.run for entry in ledger.entries] == [one.name, other.name]
    assert one.name != other.name != ledger.name


def test_a_run_inside_a_run_counts_against_all_three(ledger: Ledger) -> None:
    run = ledger.run(epsilon=0.5, delta=DELTA)
    inner = run.run(epsilon=0.4, delta=DELTA)
    inner.spend(charge_pure(0.3))
    assert len(inner.entries) == len(run.entries) == len(ledger.entries) == 1
    with pytest.raises(BudgetExceededError):
        run.spend(charge_pure(0.3))
    with pytest.raises(BudgetExceededError):
        inner.spend(charge_pure(0.2))


def test_a_run_inside_a_run_is_named_after_both(ledger: Ledger) -> None:
    outer = ledger.run(epsilon=0.5, delta=DELTA, name="outer")
    inner = outer.run(epsilon=0.5, delta=DELTA, name="inner")
    assert (outer.name, inner.name) == ("outer", "outer/inner")
    assert ledger.run(epsilon=0.5, delta=DELTA).run(epsilon=0.1, delta=DELTA, name="inner").name != "inner"
    inner.spend(charge_pure(0.1))
    assert [entry.run for entry in ledger.entries] == ["outer/inner"]
    assert outer.entries == inner.entries == ledger.entries


@pytest.mark.parametrize("other", ["out", "outer2", "inner", "Outer"])
def test_runs_of_similar_names_are_not_mixed_up(ledger: Ledger, other: str) -> None:
    outer = ledger.run(epsilon=0.5, delta=DELTA, name="outer")
    outer.run(epsilon=0.5, delta=DELTA, name="inner").spend(charge_pure(0.1))
    assert ledger.run(epsilon=0.5, delta=DELTA, name=other).entries == ()


def test_a_run_sees_what_was_charged_under_its_name_by_anyone(ledger: Ledger) -> None:
    mine, yours = (ledger.run(epsilon=0.5, delta=DELTA, name="both") for _ in range(2))
    mine.spend(charge_pure(0.3, "mine"))
    assert [charge.purpose for charge in yours.charges] == ["mine"]
    with pytest.raises(BudgetExceededError, match=r"0\.3 was spent before"):
        yours.spend(charge_pure(0.3, "yours"))
    yours.spend(charge_pure(0.1, "yours"))
    assert [charge.purpose for charge in mine.charges] == ["mine", "yours"]
    assert mine.compute_spent() == yours.compute_spent() == ledger.compute_spent()


def test_a_ledger_knows_what_was_charged_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    run, other = (ledger.run(epsilon=0.5, delta=DELTA, name=name) for name in ("run", "running"))
    ledger.spend(charge_pure(0.1, "root"))
    run.spend(charge_pure(0.1, "run"))
    run.run(epsilon=0.2, delta=DELTA).spend(charge_pure(0.1, "inside"))
    other.spend(charge_pure(0.1, "other"))

    def purposes(of: Ledger) -> list[str]:
        return [charge.purpose for entry in of.own_entries for charge in entry.charges]

    assert purposes(ledger) == ["root"]
    assert purposes(run) == ["run", "inside"]
    assert purposes(Ledger.open(path).run(epsilon=0.5, delta=DELTA, name="run")) == ["run", "inside"]
    assert purposes(Ledger.open(path)) == []  # opened anew, it has charged nothing yet


def test_a_check_records_nothing_and_says_what_a_spend_would(ledger: Ledger) -> None:
    run = ledger.run(epsilon=0.5, delta=DELTA)
    run.check(charge_pure(0.4))
    assert ledger.entries == ()
    for charges in ([charge_pure(0.6)], [charge_pure(0.3), charge_pure(0.3)]):
        with pytest.raises(BudgetExceededError, match="refused"):
            run.check(*charges)
    ledger.spend(charge_pure(0.8))
    with pytest.raises(BudgetExceededError, match=r"0\.8 was spent before"):  # by the total, not by the run
        run.check(charge_pure(0.4))
    assert len(ledger.entries) == 1


def test_a_run_has_a_delta_of_its_own(ledger: Ledger) -> None:
    run = ledger.run(epsilon=0.9, delta=1e-9)
    event = charge(Gaussian(noise_multiplier=5.0))  # 0.73 at δ = 1e-5, and 1.2 at 1e-9
    with pytest.raises(BudgetExceededError):
        run.spend(event)
    ledger.spend(event)


# --- what noise was used --------------------------------------------------------------------------------------------


def test_seeded_noise_is_never_private_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, epsilon=1.0, delta=DELTA).spend(charge_pure(0.1))
    assert Ledger.open(path).private
    seeded = Ledger.open(path, noise=NoiseSource.seeded(1))
    assert not seeded.private
    seeded.spend(charge_pure(0.1))
    assert b'"private": false' in path.read_bytes()
    again = Ledger.open(path)
    assert not again.private
    again.spend(charge_pure(0.1))
    assert not Ledger.open(path).private
    assert [entry.private for entry in again.entries] == [True, False, True]
    assert again.to_dict()["private"] is False


def test_a_run_inherits_the_noise_and_what_it_means() -> None:
    ledger = Ledger(epsilon=1.0, delta=DELTA, noise=NoiseSource.seeded(1))
    run = ledger.run(epsilon=0.5, delta=DELTA)
    assert run.noise is ledger.noise
    assert not run.private
    run.spend(charge_pure(0.1))
    assert not ledger.private
    assert not ledger.entries[0].private
    assert Ledger(epsilon=1.0, delta=DELTA).private


# --- looking at one -------------------------------------------------------------------------------------------------


def test_read_access_is_enough_to_look_at_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, epsilon=1.0, delta=DELTA).spend(charge_pure(0.1, "one"))
    opened = Path.open

    def read_only(self: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if mode.strip("tb") != "r":
            raise PermissionError(13, "Permission denied")
        return opened(self, mode, *rest, **options)

    monkeypatch.setattr(Path, "open", read_only)  # root may write what is read-only
    ledger = Ledger.open(path)
    assert [charge.purpose for charge in ledger.charges] == ["one"]
    assert ledger.to_dict()["entries"]
    with pytest.raises(LedgerError, match=r"cannot be opened \(Permission denied\)"):
        ledger.spend(charge_pure(0.1))


def test_a_lock_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)

    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr("portalocker.portalocker.LOCKER", flock)
    with pytest.raises(LedgerError, match=r"cannot be locked \(No locks available\)"):
        ledger.spend(charge_pure(0.1))
    assert Ledger.open(path).charges == ()


def test_a_ledger_in_memory_is_not_shared_by_a_fork() -> None:
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    child = os.fork()
    if child == 0:
        try:
            ledger.spend(charge_pure(0.1))
        except LedgerError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    ledger.spend(charge_pure(0.1))


@pytest.mark.parametrize("purpose", ["age\x1b[2J", "a\x9b31mb", "a\u202eb", "a\x00b", "a\x07", "\u200bname", "\ud800"])
def test_purposes_can_be_printed(purpose: str, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=DELTA)
    ledger.spend(charge_pure(0.1, purpose))
    for opened in (ledger, Ledger.open(tmp_path / "ledger")):
        shown = opened.charges[0].purpose
        assert shown.isprintable()
        assert "�" in shown
        assert shown.replace("�", "") == "".join(character for character in purpose if character.isprintable())


def test_purposes_are_one_line() -> None:
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    with pytest.raises(BudgetExceededError) as caught:
        ledger.spend(Charge(event=Pure(epsilon=2.0), purpose="marginal of a\nstrange column"))
    assert "\n" not in str(caught.value)
