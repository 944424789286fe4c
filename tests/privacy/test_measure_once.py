"""Measurements are charged, made and kept once, whenever the process dies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.privacy.measurements import BLOCK, NORM, TRAINING, Killed

from sundog.errors import BudgetExceededError, LedgerError, SundogError
from sundog.privacy import measure_once as module
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge, Gaussian, Pure, SampledGaussian
from sundog.privacy.ledger import Ledger
from sundog.privacy.measure_once import Arrays, check_unpaid, measure_once
from sundog.privacy.mechanisms import gaussian_sum

SUM = Charge(event=Gaussian(noise_multiplier=20.0), purpose="sum")
BOTH = (NORM, SUM)
OTHER = Charge(event=Pure(epsilon=0.05), purpose="another norm")


class Bench:
    """A ledger file and a checkpoint, in which one process after the other measures."""

    def __init__(self, folder: Path) -> None:
        self.out, self.path, self.measured = folder / "o.sundog", folder / "ledger", 0
        Ledger.create(self.path, epsilon=1.0, delta=1e-5)

    def begin(self) -> None:
        if not Checkpoint.locate_folder(self.out).exists():
            Checkpoint.begin(self.out, {}).release()

    def run(self, measure: Callable[[Ledger], Arrays], name: str = "means", charges: Sequence[Charge] = BOTH) -> Arrays:
        """One process, as it were: it has only what is on the disk."""
        self.begin()
        checkpoint = Checkpoint.resume(self.out, {})
        try:
            ledger = Ledger.open(self.path).run(epsilon=1.0, delta=1e-5, name=checkpoint.run)
            return measure_once(name, charges, measure, ledger, checkpoint)
        finally:
            checkpoint.release()

    def measure(self, ledger: Ledger) -> Arrays:
        self.measured += 1
        ledger.spend(NORM)
        found = gaussian_sum(np.ones((5, 3)), clip_norm=1.0, noise_multiplier=20.0, ledger=ledger, purpose="sum")
        return {"sum": found}

    @property
    def charges(self) -> tuple[Charge, ...]:
        return Ledger.open(self.path).charges


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_what_was_finished_comes_from_the_checkpoint(bench: Bench) -> None:
    first = bench.run(bench.measure)
    again = bench.run(bench.measure)
    assert np.array_equal(first["sum"], again["sum"])
    assert bench.measured == 1
    assert bench.charges == BOTH


def test_without_a_checkpoint_it_is_just_measured(bench: Bench) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    first, again = (measure_once("means", BOTH, bench.measure, ledger, None)["sum"] for _ in range(2))
    assert not np.array_equal(first, again)
    assert ledger.charges == (*BOTH, *BOTH)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("moment", ["before", "between", "after", "saving"])
def test_killed_at_any_moment_it_is_measured_again_for_the_same_charge(
    moment: str, times: int, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(ledger: Ledger) -> Arrays:
        if moment == "before":
            raise Killed
        ledger.spend(NORM)
        if moment == "between":
            raise Killed
        ledger.spend(SUM)
        if moment == "after":
            raise Killed
        return {"sum": np.zeros(3)}  # which nobody must ever see

    def is_killed(_: Checkpoint, stage: str, *rest: object) -> None:
        if stage == "means":
            raise Killed

    for _ in range(times):
        with monkeypatch.context() as patch:
            if moment == "saving":
                bench.begin()
                patch.setattr(Checkpoint, "save_tensors", is_killed)
            with pytest.raises(Killed):
                bench.run(dies)
    found = bench.run(bench.measure)
    assert bench.charges == BOTH
    assert found["sum"].any()
    assert np.array_equal(bench.run(dies)["sum"], found["sum"])
    assert bench.charges == BOTH


def test_a_charge_of_something_else_pays_for_nothing(bench: Bench) -> None:
    bench.run(bench.measure)
    other = Charge(event=NORM.event, purpose="another norm")

    def measure(ledger: Ledger) -> Arrays:
        ledger.spend(other)
        return {"norm": np.ones(1)}

    bench.run(measure, name="other", charges=[other])
    assert bench.charges == (*BOTH, other)


def test_what_another_run_was_charged_pays_for_nothing(bench: Bench) -> None:
    Ledger.open(bench.path).run(epsilon=1.0, delta=1e-5, name="somebody").spend(*BOTH)
    bench.run(bench.measure)
    assert bench.charges == (*BOTH, *BOTH)


@pytest.mark.parametrize("harm", ["truncated", "text"])
def test_a_damaged_file_is_said_and_nothing_is_measured(harm: str, bench: Bench) -> None:
    bench.run(bench.measure)
    file = Checkpoint.locate_folder(bench.out) / "means.safetensors"
    file.write_bytes(file.read_bytes()[:20] if harm == "truncated" else b"a shopping list")
    with pytest.raises(SundogError, match=r"means\.safetensors: cannot be read; delete the folder"):
        bench.run(bench.measure)
    assert bench.measured == 1
    assert bench.charges == BOTH


def test_a_refusal_leaves_nothing(bench: Bench) -> None:
    def dear(ledger: Ledger) -> Arrays:
        ledger.spend(Charge(event=Pure(epsilon=3.0), purpose="dear"))
        return {"sum": np.zeros(3)}

    with pytest.raises(BudgetExceededError):
        bench.run(dear)
    assert list(bench.charges) == []
    bench.run(bench.measure)
    assert bench.charges == BOTH


# --- refusing early ---


def test_what_fits_and_what_does_not() -> None:
    ledger = Ledger(epsilon=0.5, delta=1e-5)
    check_unpaid([NORM, SUM], ledger)
    with pytest.raises(BudgetExceededError):
        check_unpaid([NORM, SUM, Charge(event=Pure(epsilon=0.4), purpose="too much")], ledger)
    assert ledger.charges == ()


def test_what_an_interrupted_fit_has_paid_is_not_asked_for_again() -> None:
    training = Charge(event=SampledGaussian(noise_multiplier=2.0, sample_rate=0.1), count=100, purpose="training")
    ledger = Ledger(epsilon=3.0, delta=1e-5)
    check_unpaid([training], ledger)
    for steps in (60, 40):
        ledger.spend(training.model_copy(update={"count": steps}))
        check_unpaid([training], ledger)  # twice as much would not fit
    with pytest.raises(BudgetExceededError):
        check_unpaid([training.model_copy(update={"count": 300})], ledger)


def test_what_others_have_paid_helps_nobody(tmp_path: Path) -> None:
    half = Charge(event=Pure(epsilon=0.6), purpose="half")
    Ledger.create(tmp_path / "l", epsilon=1.0, delta=1e-5).run(epsilon=0.7, delta=1e-5).spend(half)
    with pytest.raises(BudgetExceededError):
        check_unpaid([half], Ledger.open(tmp_path / "l").run(epsilon=0.7, delta=1e-5))


def test_a_result_that_was_charged_past_is_not_measured_again(bench: Bench) -> None:
    """A checkpoint from before it was kept, beside a ledger from after: somewhere there is the result."""

    def measure_other(ledger: Ledger) -> Arrays:
        ledger.spend(OTHER)
        return {"norm": np.ones(1)}

    bench.run(bench.measure)
    bench.run(measure_other, "next", [OTHER])
    (Checkpoint.locate_folder(bench.out) / "means.safetensors").unlink()
    with pytest.raises(BudgetExceededError, match="measurements of the interrupted fit were lost"):
        bench.run(bench.measure)
    assert bench.measured == 1


# --- the checks above find what is wrong ---


def test_a_measurement_that_is_not_charged_is_not_kept(bench: Bench) -> None:
    with pytest.raises(RuntimeError, match="'means' was made without spending all of its charges"):
        bench.run(lambda ledger: {"sum": np.zeros(3)})
    assert not (Checkpoint.locate_folder(bench.out) / "means.safetensors").exists()


# --- steps of a training ---


@pytest.mark.parametrize(
    ("made", "kept", "paid"),
    [
        ([], 0, 0),
        ([OTHER], 0, 0),
        ([BLOCK], 0, 2),  # lost, and nothing was charged after it
        ([BLOCK], 1, 2),  # half of it was kept
        ([BLOCK], 2, 2),
        ([BLOCK, BLOCK], 2, 4),
        ([BLOCK, BLOCK], 3, 4),
        ([BLOCK, BLOCK, OTHER], 4, 4),
        ([OTHER, BLOCK, OTHER], 2, 2),
        ([BLOCK, OTHER], 0, "lost"),
        ([BLOCK, OTHER], 1, "lost"),
        ([BLOCK, BLOCK], 0, "lost"),
        ([BLOCK, BLOCK, BLOCK], 3, "lost"),
        ([BLOCK, BLOCK, BLOCK, BLOCK], 6, "lost"),  # more than the whole training costs
        ([], 1, "lacks"),
        ([BLOCK, OTHER], 3, "lacks"),
    ],
)
def test_paid_steps(made: list[Charge], kept: int, paid: int | str, tmp_path: Path) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    for charge in made:
        ledger.spend(charge)
    checkpoint = Checkpoint(tmp_path, "")
    if isinstance(paid, int):
        assert module.count_paid_steps(TRAINING, kept, ledger, checkpoint) == paid
    else:
        with pytest.raises(LedgerError if paid == "lacks" else BudgetExceededError, match=paid):
            module.count_paid_steps(TRAINING, kept, ledger, checkpoint)
