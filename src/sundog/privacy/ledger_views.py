"""Views of a ledger, in which some charges are already paid.

A mechanism spends from a view as from any ledger; the view charges the underlying ledger only for what is not paid yet.
"""

from __future__ import annotations

from collections.abc import Iterable

from sundog.errors import LedgerError
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger


class _View(Ledger):
    """A ledger that records its charges in another one."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(epsilon=ledger.budget.epsilon, delta=ledger.budget.delta, noise=ledger.noise)
        self._parent = self._behind = ledger
        self.name = ledger.name

    def spend(self, *charges: Charge) -> None:
        """Charge the underlying ledger, which may be a view itself."""
        self._behind.spend(*charges)


class Prepaid(_View):
    """A view in which some charges were made before, such as by a process that died before it kept the result.

    Each of them pays for one measurement; everything else is charged.

    >>> from sundog.privacy.events import Pure
    >>> ledger, count = Ledger(epsilon=1.0, delta=1e-6), Charge(event=Pure(epsilon=0.1), purpose="a count")
    >>> ledger.spend(count)
    >>> again = Prepaid(ledger, [count])
    >>> again.spend(count)
    >>> len(ledger.charges)
    1
    >>> again.spend(count)
    >>> len(ledger.charges)
    2

    Args:
        ledger: pays for everything else.
        charges: what was charged before.
    """

    def __init__(self, ledger: Ledger, charges: Iterable[Charge]) -> None:
        super().__init__(ledger)
        self._unused = list(charges)

    @property
    def unused(self) -> list[Charge]:
        """The earlier charges that have not paid for a measurement yet."""
        return list(self._unused)

    def spend(self, *charges: Charge) -> None:
        """Charge the underlying ledger for what was not charged before."""
        due, unused = [], list(self._unused)
        for charge in charges:
            if charge in unused:
                unused.remove(charge)
            else:
                due.append(charge)
        if due:
            super().spend(*due)
        self._unused = unused  # all or none: a refused charge uses up nothing
        self.noise.note_charges(charges, paid=False)


class Disjoint(_View):
    """The view of one of several disjoint parts of the data (parallel composition).

    Each record is in one part, which follows from the record and what is public. So adding or removing a record changes
    the measurement of one part only, and equal measurements of all parts cost as much as one. The first part to make a
    charge pays for it; the others must make the same charges in the same order.

    >>> from sundog.privacy.events import Pure
    >>> ledger, count = Ledger(epsilon=1.0, delta=1e-6), Charge(event=Pure(epsilon=0.1), purpose="a count")
    >>> for part in Disjoint.split(ledger, 3):
    ...     part.spend(count)
    >>> len(ledger.charges)
    1
    """

    def __init__(self, ledger: Ledger, made: list[tuple[Charge, ...]]) -> None:
        super().__init__(ledger)
        self._made, self._place = made, 0

    @classmethod
    def split(cls, ledger: Ledger, count: int) -> list[Disjoint]:
        """Return one view for each part."""
        made: list[tuple[Charge, ...]] = []
        return [cls(ledger, made) for _ in range(count)]

    def spend(self, *charges: Charge) -> None:
        """Charge the underlying ledger for what no other part has charged yet."""
        if self._place == len(self._made):
            super().spend(*charges)
            self._made.append(charges)
        elif self._made[self._place] != charges:
            raise LedgerError("parts of the data that share one charge must measure the same things in the same order")
        self._place += 1
        self.noise.note_charges(charges, paid=False)

    def check(self, *charges: Charge) -> None:
        """Raise if the charges could not be made, unless other parts have made all of them."""
        made = [charge for charges in self._made[self._place :] for charge in charges]
        if not all(charge in made for charge in charges):
            super().check(*charges)
