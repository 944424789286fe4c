"""Measure once: charge, measure and keep the result, so that an interrupted fit never measures twice.

    charge  →  measure  →  keep the result, whole or not at all  →  charge the next measurement

This order says what the charges of a run mean beside the results in its checkpoint, after a crash at any moment:

* a result that was kept is used: nothing is measured or charged;
* charges without a kept result, and with nothing charged after them, paid for a result that nobody has seen: they pay
  for a new measurement;
* charges without a kept result that other charges follow paid for a result that was kept once, and still exists
  somewhere. A second result for the same charges is refused.

A training is a sequence of such measurements: each block of its steps is one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy.typing as npt

from sundog.errors import BudgetExceededError, DataError, LedgerError
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.ledger_views import Prepaid

Arrays = dict[str, npt.NDArray[Any]]
Document = dict[str, Any]  # plain JSON values
R = TypeVar("R")


def measure_once(
    name: str,
    charges: Collection[Charge],
    measure: Callable[[Ledger], Arrays],
    ledger: Ledger,
    checkpoint: Checkpoint | None,
) -> Arrays:
    """Return the measured arrays: those in the checkpoint if they were kept, else measured now and kept.

    Args:
        name: of the measurement in the checkpoint.
        charges: all that the measurement costs.
        measure: spends the charges from the ledger it is given, then measures.
        ledger: pays; its own charges show what an interrupted process paid.
        checkpoint: keeps the result; without one nothing is kept, and every call measures.
    """
    if checkpoint is None:
        return measure(ledger)
    made = list_own_charges(ledger)
    kept = checkpoint.load_tensors(name)
    if kept is not None:
        if any(charge not in made for charge in charges):
            raise _make_short_ledger_error(checkpoint)
        return kept
    unseen = list(itertools.dropwhile(lambda charge: charge not in charges, made))
    if any(charge not in charges for charge in unseen):
        raise _make_lost_results_error(checkpoint)
    found = _measure_with(unseen, name, measure, ledger, checkpoint)
    made = list_own_charges(ledger)
    if any(charge not in made for charge in charges):
        raise RuntimeError(f"the measurement {name!r} was made without spending all of its charges")
    checkpoint.save_tensors(name, found)
    return found


@dataclass(frozen=True)
class Stage:
    """The result of one stage of a fit.

    Args:
        result: what it found, as plain JSON values.
        paid: how many of the run's charges have paid for this stage and all stages before it.
    """

    result: Document
    paid: int


def measure_stage(
    name: str, measure: Callable[[Ledger], Document], ledger: Ledger, checkpoint: Checkpoint | None, *, paid: int
) -> Stage:
    """Return the result of a stage of a fit: like `measure_once`, if its charges are not known beforehand.

    All charges after those of the earlier stages must be its own. A `DataError` is kept and raised again like any other
    result: it was paid for, and must not be measured twice.

    >>> measure_stage("records", lambda ledger: {"count": 100}, Ledger(epsilon=1.0, delta=1e-6), None, paid=0)
    Stage(result={'count': 100}, paid=0)

    Args:
        name: of the stage in the checkpoint.
        measure: spends from the ledger it is given, then measures.
        ledger: pays.
        checkpoint: keeps the result; without one nothing is kept, and every call measures.
        paid: how many of the run's charges have paid for earlier stages.
    """
    if checkpoint is None:
        return Stage(measure(ledger), len(list_own_charges(ledger)))
    kept = load_stage(name, ledger, checkpoint)
    if kept is not None:
        return kept

    def measure_or_fail(paying: Ledger) -> tuple[Document, str | None]:
        try:
            return measure(paying), None
        except DataError as error:
            return {}, str(error)

    found, error = _measure_with(list_own_charges(ledger)[paid:], name, measure_or_fail, ledger, checkpoint)
    keep_stage(name, found, ledger, checkpoint, error=error)
    if error is not None:
        raise DataError(error)
    return Stage(found, len(list_own_charges(ledger)))


def load_stage(name: str, ledger: Ledger, checkpoint: Checkpoint | None) -> Stage | None:
    """Return the kept result of a stage, or None; raise if the ledger lacks the charges that paid for it."""
    kept = None if checkpoint is None else checkpoint.load_json(name, "result", "error", "charges")
    if checkpoint is None or kept is None:
        return None
    if len(list_own_charges(ledger)) < kept["charges"]:
        raise _make_short_ledger_error(checkpoint)
    if kept["error"] is not None:
        raise DataError(str(kept["error"]))
    return Stage(dict(kept["result"]), int(kept["charges"]))


def keep_stage(
    name: str, result: Document, ledger: Ledger, checkpoint: Checkpoint | None, *, error: str | None = None
) -> None:
    """Keep the result of a stage; all charges made so far have paid for it or for earlier stages."""
    if checkpoint is not None:
        checkpoint.save_json(name, {"result": result, "error": error, "charges": len(list_own_charges(ledger))})


def count_paid_steps(training: Charge, kept: int, ledger: Ledger, checkpoint: Checkpoint) -> int:
    """Return how many steps of a training the run has paid for; raise if results of paid steps were lost.

    A block is charged only once the steps before it were kept. So a single block may be without a kept result, if it
    is the last charge of the run; its steps are run again for that charge.

    Args:
        training: the charge for all steps.
        kept: how many steps are in the kept state.
        ledger: has the charges of the run.
        checkpoint: has the state.
    """
    made = list_own_charges(ledger)
    blocks = [charge.count if is_part_of(charge, training) else 0 for charge in made]
    paid = sum(blocks)
    if paid < kept:
        raise _make_short_ledger_error(checkpoint)
    if paid > training.count:
        raise _make_lost_results_error(checkpoint)
    since = [charge for charge, steps in zip(made, itertools.accumulate(blocks), strict=True) if steps > kept]
    if len(since) > 1:
        raise _make_lost_results_error(checkpoint)
    return paid


def check_unpaid(charges: Sequence[Charge], ledger: Ledger) -> None:
    """Raise BudgetExceededError if the ledger cannot pay for those charges that an interrupted run has not made."""
    made = list_own_charges(ledger)
    rest = []
    for charge in charges:
        left = charge.count - sum(each.count for each in made if is_part_of(each, charge))
        if left > 0:
            rest.append(charge.model_copy(update={"count": left}))
    if rest:
        ledger.check(*rest)


def is_part_of(charge: Charge, whole: Charge) -> bool:
    """Return whether two charges have the same event and purpose, whatever their counts."""
    return (charge.event, charge.purpose) == (whole.event, whole.purpose)


def list_own_charges(ledger: Ledger) -> list[Charge]:
    """Return the charges of this run, oldest first, without those of other runs of the same ledger."""
    return [charge for entry in ledger.own_entries for charge in entry.charges]


def _measure_with(
    unseen: Sequence[Charge], name: str, measure: Callable[[Ledger], R], ledger: Ledger, checkpoint: Checkpoint
) -> R:
    """Measure, paid for by charges whose result nobody has seen; each of them must be needed again.

    Test noise has a stream for each measurement, which does not depend on what was measured before or kept.
    """
    paying = Prepaid(ledger, unseen)
    paying.noise = ledger.noise.derive_stream(name, 0)
    found = measure(paying)
    if paying.unused:
        raise _make_lost_results_error(checkpoint)
    return found


def _make_lost_results_error(checkpoint: Checkpoint) -> BudgetExceededError:
    return BudgetExceededError(
        f"{checkpoint.folder}: measurements of the interrupted fit were lost, and their budget stays spent; delete the "
        "folder and fit again with a new budget"
    )


def _make_short_ledger_error(checkpoint: Checkpoint) -> LedgerError:
    return LedgerError(
        f"{checkpoint.folder}: the ledger lacks what the interrupted fit spent; resume with the ledger it began with"
    )
