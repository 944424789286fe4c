"""The ledger refuses before the spend, and never forgets one: across threads, processes and crashes."""

import errno
import fcntl
import json
import math
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundog.errors import BudgetExceededError, LedgerError
from sundog.privacy.accountant import compute_epsilon, is_within_budget
from sundog.privacy.calibration import find_noise_multiplier
from sundog.privacy.events import (
    Charge,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Failure,
    Gaussian,
    Pure,
    SampledGaussian,
)
from sundog.privacy.journal import Journal
from sundog.privacy.ledger import Budget, Entry, Head, Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource

DELTA = 1e-5


def charge(event: Event, count: int = 1, purpose: str = "test") -> Charge:
    return Charge(event=event, count=count, purpose=purpose)


def pure(epsilon: float, purpose: str = "test") -> Charge:
    return charge(Pure(epsilon=epsilon), purpose=purpose)


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    if request.param == "memory":
        return Ledger(epsilon=1.0, delta=DELTA)
    return Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=DELTA)


# --- the filter -----------------------------------------------------------------------------------------------------


def test_it_refuses_before_the_spend(ledger: Ledger) -> None:
    ledger.spend(pure(0.7, "first"))
    before = ledger.to_dict()
    with pytest.raises(BudgetExceededError) as caught:
        ledger.spend(pure(0.4, "second"))
    message = str(caught.value)
    assert "'second'" in message
    assert "0.7" in message
    assert "\n" not in message
    assert ledger.to_dict() == before
    ledger.spend(pure(0.2, "third"))
    assert [charge.purpose for charge in ledger.charges] == ["first", "third"]


def test_several_charges_are_all_or_none(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceededError):
        ledger.spend(pure(0.4), pure(0.4), pure(0.4))
    assert ledger.entries == ()
    ledger.spend(pure(0.4), pure(0.4))
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
    ledger.spend(pure(0.5))
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


# --- the quick check ------------------------------------------------------------------------------------------------

noises = st.floats(0.7, 50)
events = st.one_of(
    st.builds(SampledGaussian, noise_multiplier=noises, sample_rate=st.floats(1e-4, 1.0)),
    st.builds(Gaussian, noise_multiplier=st.floats(2, 200)),
    st.builds(DiscreteGaussian, sigma=st.floats(2, 200)),
    st.builds(DiscreteLaplace, rate=st.floats(0.01, 0.5)),
    st.builds(Pure, epsilon=st.floats(0.01, 0.5)),
    st.builds(Failure, delta=st.floats(1e-9, 1e-6)),
)
charged = st.builds(Charge, event=events, count=st.integers(1, 200), purpose=st.just("test"))


@settings(max_examples=60, database=None)
@given(st.lists(charged, min_size=1, max_size=3), st.floats(0.5, 1.5))
def test_the_quick_check_says_what_the_accountant_says(charges: list[Charge], part: float) -> None:
    spent = compute_epsilon(charges, delta=DELTA)
    if not 0 < spent < 50:
        return
    for epsilon in (spent * part, spent * (1 - 1e-9), spent * (1 + 1e-9)):
        assert is_within_budget(charges, epsilon=epsilon, delta=DELTA) == (spent <= epsilon)


@pytest.mark.parametrize(
    ("event", "count", "delta"),
    [
        (Pure(epsilon=0.007078227424552142), 385, 4.210618745070551e-06),
        (Pure(epsilon=0.0064676724219588), 472, 7.688808526393598e-07),
        (DiscreteGaussian(sigma=2.3846604566670466), 39, 4.882698718304304e-09),
        (SampledGaussian(noise_multiplier=17.01706125076355, sample_rate=0.0061273385070053565), 2548, 3.329e-07),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_grid_that_is_finer_by_chance_does_not_say_yes(event: Event, count: int, delta: float) -> None:
    """It would be right, but the certificate would then be found to be above its claim."""
    spent = compute_epsilon([charge(event, count)], delta=delta)
    assert not is_within_budget([charge(event, count)], epsilon=spent * (1 - 1e-8), delta=delta)
    assert is_within_budget([charge(event, count)], epsilon=spent, delta=delta)


def test_the_quick_check_of_a_training_never_says_yes_too_early() -> None:
    """At every block of a training, in a budget that some number of its steps uses up."""
    for rate, noise, steps in ((0.01, 5.8, 18_000), (0.002, 0.8, 3_000), (0.2, 4.0, 100), (1.0, 30.0, 50)):
        event = SampledGaussian(noise_multiplier=noise, sample_rate=rate)
        whole = compute_epsilon([charge(event, steps)], delta=DELTA)
        for share in (0.5, 0.9, 0.99, 0.999, 1.0, 1.001, 1.01):
            found = [charge(event, max(1, int(share * steps) // 2))] * 2
            assert is_within_budget(found, epsilon=whole, delta=DELTA) == (compute_epsilon(found, delta=DELTA) <= whole)


def test_a_calibrated_training_can_be_paid_for_in_blocks_to_the_last_step() -> None:
    noise = find_noise_multiplier(epsilon=1.0, delta=DELTA, sample_rate=0.01, steps=1000)
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    block = charge(SampledGaussian(noise_multiplier=noise, sample_rate=0.01), 50)
    for _ in range(20):
        ledger.spend(block)
    assert 0.998 < ledger.compute_spent() <= 1.0
    with pytest.raises(BudgetExceededError, match="would bring ε to"):
        ledger.spend(block)


def test_blocks_of_a_training_are_one_charge() -> None:
    first, second = (SampledGaussian(noise_multiplier=noise, sample_rate=0.1) for noise in (1.0, 2.0))
    blocks = [
        charge(first, 3, "a"),
        pure(0.1),
        charge(second, 4, "a"),
        charge(first, 5, "b"),
        charge(first, 6, "a"),
        pure(0.1),
        charge(second, 7, "a"),
    ]
    assert merge_blocks(blocks) == [
        charge(first, 9, "a"),
        pure(0.1),
        charge(second, 11, "a"),
        charge(first, 5, "b"),
        pure(0.1),
    ]
    assert merge_blocks([]) == []
    assert compute_epsilon(merge_blocks(blocks), delta=DELTA) == compute_epsilon(blocks, delta=DELTA)


# --- runs -----------------------------------------------------------------------------------------------------------


def test_a_run_is_limited_by_its_own_budget(ledger: Ledger) -> None:
    run = ledger.run(epsilon=0.3, delta=DELTA)
    run.spend(pure(0.2))
    with pytest.raises(BudgetExceededError):
        run.spend(pure(0.2))
    assert len(run.entries) == len(ledger.entries) == 1
    ledger.spend(pure(0.7))


def test_a_run_is_limited_by_the_total(ledger: Ledger) -> None:
    ledger.spend(pure(0.8))
    run = ledger.run(epsilon=0.9, delta=DELTA)
    with pytest.raises(BudgetExceededError):
        run.spend(pure(0.3))
    assert run.entries == ()
    assert len(ledger.entries) == 1
    run.spend(pure(0.1))
    assert len(run.entries) == 1
    assert len(ledger.entries) == 2


def test_two_runs_compose_in_the_total_and_not_in_each_other(ledger: Ledger) -> None:
    one, other = ledger.run(epsilon=0.6, delta=DELTA), ledger.run(epsilon=0.6, delta=DELTA)
    one.spend(pure(0.5, "one"))
    with pytest.raises(BudgetExceededError):
        other.spend(pure(0.55, "other"))
    other.spend(pure(0.4, "other"))
    assert [charge.purpose for charge in one.charges] == ["one"]
    assert [charge.purpose for charge in other.charges] == ["other"]
    assert [entry.run for entry in ledger.entries] == [one.name, other.name]
    assert one.name != other.name != ledger.name


def test_a_run_inside_a_run_counts_against_all_three(ledger: Ledger) -> None:
    run = ledger.run(epsilon=0.5, delta=DELTA)
    inner = run.run(epsilon=0.4, delta=DELTA)
    inner.spend(pure(0.3))
    assert len(inner.entries) == len(run.entries) == len(ledger.entries) == 1
    with pytest.raises(BudgetExceededError):
        run.spend(pure(0.3))
    with pytest.raises(BudgetExceededError):
        inner.spend(pure(0.2))


def test_a_run_inside_a_run_is_named_after_both(ledger: Ledger) -> None:
    outer = ledger.run(epsilon=0.5, delta=DELTA, name="outer")
    inner = outer.run(epsilon=0.5, delta=DELTA, name="inner")
    assert (outer.name, inner.name) == ("outer", "outer/inner")
    assert ledger.run(epsilon=0.5, delta=DELTA).run(epsilon=0.1, delta=DELTA, name="inner").name != "inner"
    inner.spend(pure(0.1))
    assert [entry.run for entry in ledger.entries] == ["outer/inner"]
    assert outer.entries == inner.entries == ledger.entries


@pytest.mark.parametrize("other", ["out", "outer2", "inner", "Outer"])
def test_runs_of_similar_names_are_not_mixed_up(ledger: Ledger, other: str) -> None:
    ledger.run(epsilon=0.5, delta=DELTA, name="outer").run(epsilon=0.5, delta=DELTA, name="inner").spend(pure(0.1))
    assert ledger.run(epsilon=0.5, delta=DELTA, name=other).entries == ()


def test_a_run_sees_what_was_charged_under_its_name_by_anyone(ledger: Ledger) -> None:
    mine, yours = (ledger.run(epsilon=0.5, delta=DELTA, name="both") for _ in range(2))
    mine.spend(pure(0.3, "mine"))
    assert [charge.purpose for charge in yours.charges] == ["mine"]
    with pytest.raises(BudgetExceededError, match=r"0\.3 was spent before"):
        yours.spend(pure(0.3, "yours"))
    yours.spend(pure(0.1, "yours"))
    assert [charge.purpose for charge in mine.charges] == ["mine", "yours"]
    assert mine.compute_spent() == yours.compute_spent() == ledger.compute_spent()


def test_a_ledger_knows_what_was_charged_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "l"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    run, other = (ledger.run(epsilon=0.5, delta=DELTA, name=name) for name in ("run", "running"))
    ledger.spend(pure(0.1, "root"))
    run.spend(pure(0.1, "run"))
    run.run(epsilon=0.2, delta=DELTA).spend(pure(0.1, "inside"))
    other.spend(pure(0.1, "other"))

    def purposes(of: Ledger) -> list[str]:
        return [charge.purpose for entry in of.own_entries for charge in entry.charges]

    assert purposes(ledger) == ["root"]
    assert purposes(run) == ["run", "inside"]
    assert purposes(Ledger.open(path).run(epsilon=0.5, delta=DELTA, name="run")) == ["run", "inside"]
    assert purposes(Ledger.open(path)) == []  # opened anew, it has charged nothing yet


def test_a_check_records_nothing_and_says_what_a_spend_would(ledger: Ledger) -> None:
    run = ledger.run(epsilon=0.5, delta=DELTA)
    run.check(pure(0.4))
    assert ledger.entries == ()
    for charges in ([pure(0.6)], [pure(0.3), pure(0.3)]):
        with pytest.raises(BudgetExceededError, match="refused"):
            run.check(*charges)
    ledger.spend(pure(0.8))
    with pytest.raises(BudgetExceededError, match=r"0\.8 was spent before"):  # by the total, not by the run
        run.check(pure(0.4))
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
    Ledger.create(path, epsilon=1.0, delta=DELTA).spend(pure(0.1))
    assert Ledger.open(path).private
    seeded = Ledger.open(path, noise=NoiseSource.seeded(1))
    assert not seeded.private
    seeded.spend(pure(0.1))
    assert b'"private": false' in path.read_bytes()
    again = Ledger.open(path)
    assert not again.private
    again.spend(pure(0.1))
    assert not Ledger.open(path).private
    assert [entry.private for entry in again.entries] == [True, False, True]
    assert again.to_dict()["private"] is False


def test_a_run_inherits_the_noise_and_what_it_means() -> None:
    ledger = Ledger(epsilon=1.0, delta=DELTA, noise=NoiseSource.seeded(1))
    run = ledger.run(epsilon=0.5, delta=DELTA)
    assert run.noise is ledger.noise
    assert not run.private
    run.spend(pure(0.1))
    assert not ledger.private
    assert not ledger.entries[0].private
    assert Ledger(epsilon=1.0, delta=DELTA).private


# --- the file -------------------------------------------------------------------------------------------------------


def test_a_file_says_everything_again(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=2.0, delta=DELTA)
    events: list[Event] = [
        Gaussian(noise_multiplier=9.0),
        SampledGaussian(noise_multiplier=1.1, sample_rate=0.01),
        DiscreteGaussian(sigma=20.0),
        Pure(epsilon=0.1),
        Failure(delta=1e-7),
    ]
    ledger.spend(*(charge(event, count, f"{count} × é\n\u2028") for count, event in enumerate(events, start=1)))
    again = Ledger.open(str(path))
    assert again.budget == Budget(2.0, DELTA)
    assert again.entries == ledger.entries
    assert again.to_dict() == ledger.to_dict()
    assert json.loads(json.dumps(again.to_dict())) == again.to_dict()
    assert [Entry.model_validate_json(entry.model_dump_json()) for entry in again.entries] == list(again.entries)


def test_two_openings_spend_from_one_budget(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    one = Ledger.create(path, epsilon=1.0, delta=DELTA)
    other = Ledger.open(path)
    one.spend(pure(0.6))
    with pytest.raises(BudgetExceededError):
        other.spend(pure(0.6))
    other.spend(pure(0.3))
    assert len(one.entries) == len(other.entries) == 2


def test_a_run_of_two_processes_has_one_budget(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    mine = Ledger.create(path, epsilon=1.0, delta=DELTA).run(epsilon=0.5, delta=DELTA, name="fit")
    spend = textwrap.dedent(
        """
        import sys
        from sundog.privacy.events import Charge, Pure
        from sundog.privacy.ledger import Ledger
        run = Ledger.open(sys.argv[1]).run(epsilon=0.5, delta=1e-5, name="fit")
        run.spend(Charge(event=Pure(epsilon=0.3), purpose="elsewhere"))
        """
    )
    subprocess.run([sys.executable, "-c", spend, str(path)], check=True)
    assert [charge.purpose for charge in mine.charges] == ["elsewhere"]
    with pytest.raises(BudgetExceededError, match=r"0\.3 was spent before"):
        mine.spend(pure(0.3))
    assert len(Ledger.open(path).entries) == 1


def test_creating_never_replaces(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, epsilon=1.0, delta=DELTA).spend(pure(0.6))
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(path, epsilon=9.0, delta=DELTA)
    assert Ledger.open(path).budget.epsilon == 1.0


GOOD: dict[str, Any] = {"format": "sundog-ledger", "version": 1, "epsilon": 1.0, "delta": 1e-5, "created": "now"}


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"format": "other", "version": 1},
        GOOD | {"format": "sundog"},
        GOOD | {"version": 2},
        GOOD | {"version": "1"},
        {key: value for key, value in GOOD.items() if key != "epsilon"},
        {key: value for key, value in GOOD.items() if key != "delta"},
        GOOD | {"epsilon": "lots"},
        GOOD | {"epsilon": None},
        GOOD | {"epsilon": [1.0]},
        GOOD | {"epsilon": -1.0},
        GOOD | {"epsilon": 0},
        GOOD | {"delta": 2.0},
        GOOD | {"delta": {}},
    ],
    ids=repr,
)
def test_what_is_not_a_ledger_is_refused(tmp_path: Path, header: dict[str, Any]) -> None:
    path = tmp_path / "ledger"
    Journal.create(path, header)
    before = path.read_bytes()
    with pytest.raises(LedgerError) as caught:
        Ledger.open(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"no newline", b"a,b\n1,2\n", b"\x00" * 100, b"PK\x03\x04\n\n", b"{}\n"])
def test_somebody_elses_file_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(LedgerError, match=r"cannot be opened|no such file"):
            Ledger.open(path)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"event": {"kind": "pure", "epsilon": 0.1}, "count": 1, "purpose": "x"},
        {
            "event": {"kind": "pure", "epsilon": -0.1},
            "count": 1,
            "purpose": "x",
            "run": "r",
            "private": True,
            "time": "",
        },
        {"event": {"kind": "new", "epsilon": 0.1}, "count": 1, "purpose": "x", "run": "r", "private": True, "time": ""},
        {"event": None, "count": 1, "purpose": "x", "run": "r", "private": True, "time": ""},
        {
            "event": {"kind": "pure", "epsilon": 0.1},
            "count": 0,
            "purpose": "x",
            "run": "r",
            "private": True,
            "time": "",
        },
    ],
    ids=repr,
)
def test_a_line_that_is_no_entry_is_refused_with_its_number(tmp_path: Path, entry: dict[str, Any]) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    ledger.spend(pure(0.1))
    journal = Journal(path)
    with journal.lock():
        journal.append(entry)
    before = path.read_bytes()
    for use in (lambda: ledger.spend(pure(0.1)), lambda: Ledger.open(path).compute_spent()):
        with pytest.raises(LedgerError, match="line 3"):
            use()
    assert path.read_bytes() == before


def test_damage_is_refused_before_a_spend(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    for number in range(3):
        ledger.spend(pure(0.2, f"number {number}"))
    path.write_bytes(path.read_bytes().replace(b"0.2", b"0.1", 1))
    with pytest.raises(LedgerError, match="line 2 was edited"):
        Ledger.open(path)


def test_a_full_disk_spends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    run = ledger.run(epsilon=0.9, delta=DELTA)
    run.spend(pure(0.3))
    before = path.read_bytes()

    def write(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(LedgerError, match="this charge was not made"):
            run.spend(pure(0.2))
    assert path.read_bytes() == before
    assert len(run.entries) == len(ledger.entries) == 1
    run.spend(pure(0.5))


# --- at the same time -----------------------------------------------------------------------------------------------

NOISE = 30.0


def count_that_fit(epsilon: float) -> int:
    fits = 0
    while compute_epsilon([charge(Gaussian(noise_multiplier=NOISE), fits + 1)], delta=DELTA) <= epsilon:
        fits += 1
    return fits


@pytest.mark.parametrize("kind", ["memory", "file", "file opened by each", "runs"])
def test_threads_never_exceed_the_total_and_lose_no_spend(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    shared = Ledger(epsilon=1.0, delta=DELTA)
    if kind.startswith("file"):
        shared = Ledger.create(path, epsilon=1.0, delta=DELTA)
    accepted: list[str] = []

    def work(name: str) -> None:
        mine = shared
        if kind == "file opened by each":
            mine = Ledger.open(path)
        elif kind == "runs":
            mine = shared.run(epsilon=1.0, delta=DELTA)
        for number in range(10):
            purpose = f"{name} {number}"
            try:
                mine.spend(charge(Gaussian(noise_multiplier=NOISE), purpose=purpose))
            except BudgetExceededError:
                continue
            accepted.append(purpose)

    threads = [threading.Thread(target=work, args=(str(name),)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(accepted) == min(80, count_that_fit(1.0)) < 80
    assert sorted(charge.purpose for charge in shared.charges) == sorted(accepted)
    assert shared.compute_spent() <= 1.0


WORKER = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from sundog.errors import BudgetExceededError
    from sundog.privacy.events import Charge, Gaussian
    from sundog.privacy.ledger import Ledger

    path, name, attempts, noise = sys.argv[1:]
    ledger = Ledger.open(path)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(attempts)):
        charge = Charge(event=Gaussian(noise_multiplier=float(noise)), purpose=f"{name} {number}")
        try:
            ledger.spend(charge)
        except BudgetExceededError:
            continue
        print(charge.purpose, flush=True)
    """
)


def test_processes_never_exceed_the_total_and_lose_no_spend(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    epsilon = 1.7
    Ledger.create(path, epsilon=epsilon, delta=DELTA)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path), str(name), "50", str(NOISE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in range(4)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    acknowledged = [line for worker in workers for line in worker.communicate(timeout=600)[0].splitlines()]
    assert all(worker.returncode == 0 for worker in workers)
    ledger = Ledger.open(path)
    recorded = [charge.purpose for charge in ledger.charges]
    assert len(set(recorded)) == len(recorded)
    assert sorted(recorded) == sorted(acknowledged)
    assert len(recorded) == count_that_fit(epsilon) < 200
    assert len({entry.run for entry in ledger.entries}) > 1
    assert ledger.compute_spent() <= epsilon


# --- crashes --------------------------------------------------------------------------------------------------------

CRASHES = textwrap.dedent(
    """
    import os, random, signal, sys, time
    from sundog.privacy.events import Charge, Gaussian
    from sundog.privacy.ledger import Ledger

    path = sys.argv[1]
    for life in range(30):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            ledger = Ledger.open(path)
            number = 0
            while True:
                charges = [
                    Charge(event=Gaussian(noise_multiplier=1e5), purpose=f"{life} {number} {part}" + "." * 150)
                    for part in range(3)
                ]
                ledger.spend(*charges)
                os.write(writer, f"{life} {number}\\n".encode())
                number += 1
        os.close(writer)
        with os.fdopen(reader) as file:
            acknowledged = "".join(file.readline() for _ in range(life % 3))
            time.sleep(random.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            acknowledged += file.read()
        if not acknowledged.endswith("\\n"):
            acknowledged = acknowledged[: acknowledged.rfind("\\n") + 1]
        Ledger.open(path).entries  # raises if the file was spoiled
        sys.stdout.write(acknowledged)
    """
)


def test_what_was_acknowledged_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, epsilon=1.0, delta=DELTA)
    done = subprocess.run([sys.executable, "-c", CRASHES, str(path)], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    acknowledged = set(done.stdout.splitlines())
    parts = [charge.purpose.rstrip(".").rsplit(" ", 1) for charge in Ledger.open(path).charges]
    recorded: dict[str, list[str]] = {}
    for spend, part in parts:
        recorded.setdefault(spend, []).append(part)
    assert len(acknowledged) >= 30
    assert acknowledged <= set(recorded)
    assert all(found == ["0", "1", "2"] for found in recorded.values())
    assert len(set(recorded) - acknowledged) <= 30  # at most the one that each life was busy with


def test_a_torn_entry_is_as_if_it_had_never_been(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    ledger.spend(pure(0.3, "kept"))
    kept = path.read_bytes()
    ledger.spend(pure(0.3, "torn"))
    data = path.read_bytes()
    path.write_bytes(kept)
    Ledger.open(path)
    for end in range(len(kept) + 1, len(data) - 1, 7):
        path.write_bytes(data[:end])
        with pytest.warns(UserWarning, match="the last line is incomplete"):
            again = Ledger.open(path)
        assert [charge.purpose for charge in again.charges] == ["kept"]
        again.spend(pure(0.6, "after"))
        assert [charge.purpose for charge in Ledger.open(path).charges] == ["kept", "after"]


def test_charges_made_together_are_torn_together(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    ledger.spend(pure(0.1))
    before = path.read_bytes()
    ledger.spend(pure(0.1), pure(0.2), pure(0.3))
    after = path.read_bytes()
    for end in range(len(before) + 1, len(after) - 1):
        path.write_bytes(after[:end])
        with pytest.warns(UserWarning, match="the last line is incomplete"):
            assert len(Ledger.open(path).charges) == 1


def test_a_charge_whose_newline_was_cut_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    ledger.spend(pure(0.7, "paid"))
    path.write_bytes(path.read_bytes()[:-1])
    again = Ledger.open(path)
    assert again.compute_spent() == pytest.approx(0.7, rel=1e-3)
    with pytest.raises(BudgetExceededError):
        again.spend(pure(0.7))
    again.spend(pure(0.2, "after"))
    for opened in (again, ledger, Ledger.open(path)):
        assert [charge.purpose for charge in opened.charges] == ["paid", "after"]


def test_an_edited_last_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, epsilon=1.0, delta=DELTA).spend(pure(0.7))
    edited = path.read_bytes().replace(b"0.7", b"0.1")
    for content in (edited, edited[:-1]):
        path.write_bytes(content)
        with pytest.raises(LedgerError, match="line 2 was edited"):
            Ledger.open(path)


@pytest.mark.parametrize("digest", [False, True])
def test_a_ledger_of_a_development_version_is_refused_in_one_line(digest: bool, tmp_path: Path) -> None:
    """Its lines have no digests, or its header has no id."""
    path = tmp_path / "ledger"
    header = {"format": "sundog-ledger", "version": 1, "epsilon": 1.0, "delta": DELTA, "created": "2026-01-01"}
    if digest:
        Journal.create(path, header)
    else:
        path.write_text(json.dumps({**header, "chain": ""}) + "\n")
    with pytest.raises(LedgerError, match="made by a development version of sundog; start a new ledger"):
        Ledger.open(path)


# --- heads ----------------------------------------------------------------------------------------------------------


def test_a_head_is_had_until_the_file_is_cut_or_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)
    ledger.spend(pure(0.1, "one"))
    kept = path.read_bytes()
    ledger.spend(pure(0.1, "two"))
    head = ledger.head
    assert head is not None
    assert head.lines == 3
    ledger.spend(pure(0.1, "three"))
    assert ledger.has(head)
    assert Ledger.open(path).has(head)
    path.write_bytes(kept)
    assert not Ledger.open(path).has(head)
    Ledger.open(path).spend(pure(0.01, "two"))  # as many lines as before, all of them consistent
    assert not Ledger.open(path).has(head)


def test_a_ledger_in_memory_has_no_head() -> None:
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    assert ledger.head is None
    assert not ledger.has(Head("", 1, "x"))


# --- looking at one -------------------------------------------------------------------------------------------------


def test_read_access_is_enough_to_look_at_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    Ledger.create(path, epsilon=1.0, delta=DELTA).spend(pure(0.1, "one"))
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
        ledger.spend(pure(0.1))


def test_a_lock_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.create(path, epsilon=1.0, delta=DELTA)

    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr("portalocker.portalocker.LOCKER", flock)
    with pytest.raises(LedgerError, match=r"cannot be locked \(No locks available\)"):
        ledger.spend(pure(0.1))
    assert Ledger.open(path).charges == ()


def test_a_ledger_in_memory_is_not_shared_by_a_fork() -> None:
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    child = os.fork()
    if child == 0:
        try:
            ledger.spend(pure(0.1))
        except LedgerError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    ledger.spend(pure(0.1))


@pytest.mark.parametrize("purpose", ["age\x1b[2J", "a\x9b31mb", "a\u202eb", "a\x00b", "a\x07", "\u200bname", "\ud800"])
def test_purposes_can_be_printed(purpose: str, tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", epsilon=1.0, delta=DELTA)
    ledger.spend(pure(0.1, purpose))
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
