"""A measurement that is made once, however often the fit that needs it is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from sundog.models.protocol import FitContext
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.ledger_views import Prepaid

Arrays = dict[str, npt.NDArray[Any]]


def kept(
    name: str, charges: Sequence[Charge], measure: Callable[[Ledger], Arrays], ledger: Ledger, context: FitContext
) -> Arrays:
    """What was measured: from the checkpoint if it was finished before; if it was paid for and lost, measured again.

    Args:
        name: of the measurement, in the checkpoint.
        charges: what it costs.
        measure: measures, and charges the ledger that it is given.
        ledger: who pays.
        context: has the checkpoint, if there is one.
    """
    checkpoint = context.checkpoint
    if checkpoint is None:
        return measure(ledger)
    if checkpoint.load_bytes(f"{name}.safetensors") is None:
        made = _lost(charges, ledger, checkpoint)
        checkpoint.save_tensors(name, measure(_paying(ledger, name, made)))  # whole or not at all
    return dict(checkpoint.load_tensors(name))


def _lost(charges: Sequence[Charge], ledger: Ledger, checkpoint: Checkpoint) -> list[Charge]:
    """What was charged for this measurement by a process that died in the middle of it.

    Had it been finished, something else would have been charged next: then there is a result somewhere, and the same
    charge cannot pay for another.
    """
    entries = [[charge for charge in entry.charges if charge in charges] for entry in ledger.own_entries]
    paying = [place for place, found in enumerate(entries) if found]
    if paying and paying[-1] != len(entries) - 1:
        raise checkpoint.lost()
    return [charge for found in entries for charge in found]


def _paying(ledger: Ledger, name: str, made: Sequence[Charge]) -> Ledger:
    """With a stream of noise of its own: test noise is the same whatever was measured before, or read from a file."""
    view = Prepaid(ledger, made)
    view.noise = ledger.noise.stream(name, 0)
    return view


def refuse_early(charges: Sequence[Charge], ledger: Ledger) -> None:
    """Raises if the ledger cannot pay for all of the charges, or for what an interrupted fit has left of them."""
    made = [charge for entry in ledger.own_entries for charge in entry.charges]
    rest = []
    for charge in charges:
        alike = (each.count for each in made if (each.event, each.purpose) == (charge.event, charge.purpose))
        left = charge.count - sum(alike)
        if left > 0:
            rest.append(charge.model_copy(update={"count": left}))
    if rest:
        ledger.check(*rest)
