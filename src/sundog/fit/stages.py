"""The stages of a fit: each is measured, paid for and kept once, however often the fit is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sundog.errors import DataError, LedgerError
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.ledger_views import Prepaid

Result = dict[str, Any]


class Stages:
    """What the stages before the model found, kept as they are finished.

    >>> stages = Stages(None, Ledger(epsilon=1.0, delta=1e-6))
    >>> stages.measured("records", lambda ledger: {"count": 100})
    {'count': 100}

    Args:
        checkpoint: where results are kept; without one, each is just measured.
        ledger: who pays.
    """

    def __init__(self, checkpoint: Checkpoint | None, ledger: Ledger) -> None:
        self.checkpoint, self.ledger = checkpoint, ledger
        self._paid = 0  # how many charges the results of finished stages stand for

    @property
    def charges(self) -> Sequence[Charge]:
        """What the finished stages were charged."""
        return self.ledger.charges if self.checkpoint is None else self.ledger.charges[: self._paid]

    def measured(self, name: str, measure: Callable[[Ledger], Result]) -> Result:
        """The result of a stage: from the checkpoint where it was finished before, measured and kept otherwise.

        Nothing is shown before it is kept. So if an interrupted fit was charged for this stage and did not keep the
        result, nobody has seen it, and the same charges pay for another one.
        """
        if self.checkpoint is None:
            return measure(self.ledger)
        found = self.finished(name)
        if found is None:
            paying = Prepaid(self.ledger, self.ledger.charges[self._paid :])
            try:
                found = {"result": measure(paying)}
            except DataError as error:  # a result like any other: it was paid for, and must not be had twice
                found = {"error": str(error)}
            if paying.unused:  # something was charged after this stage, so there is a result of it somewhere
                raise self.checkpoint.lost()
            self.finish(name, found)
        if "error" in found:
            raise DataError(str(found["error"]))
        return dict(found["result"])

    def finished(self, name: str) -> Result | None:
        """What was kept of a stage, if the ledger has what it was charged for."""
        found = None if self.checkpoint is None else self.checkpoint.load(name, "charges")
        if self.checkpoint is not None and found is not None:
            if len(self.ledger.charges) < found["charges"]:
                raise LedgerError(
                    f"{self.checkpoint.folder}: the ledger lacks what the interrupted fit spent; resume with the "
                    "ledger it began with"
                )
            self._paid = found["charges"]
        return found

    def finish(self, name: str, found: Result) -> None:
        """Keeps the result of a stage."""
        if self.checkpoint is not None:
            self._paid = len(self.ledger.charges)
            self.checkpoint.save(name, {**found, "charges": self._paid})
