"""Ledgers as somebody sees them who need not pay for everything he measures.

Each is a ledger like any other to the mechanism that spends from it, and charges the ledger behind it for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable

from sundog.errors import LedgerError
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger


class _View(Ledger):
    """The ledger itself, under its own name."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(epsilon=ledger.budget.epsilon, delta=ledger.budget.delta, noise=ledger.noise)
        self._parent = self._behind = ledger
        self.name = ledger.name

    def spend(self, *charges: Charge) -> None:
        """Charges the ledger behind, which may be a view itself."""
        self._behind.spend(*charges)


class Prepaid(_View):
    """A ledger in which some charges were made before, by a process that died with what they had paid for.

    Nobody has seen that result, so the same charge pays for another one; each of them once.

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
        ledger: who pays for the rest.
        charges: what was charged and lost unseen.
    """

    def __init__(self, ledger: Ledger, charges: Iterable[Charge]) -> None:
        super().__init__(ledger)
        self._unused = list(charges)

    @property
    def unused(self) -> list[Charge]:
        """What has not paid for anything yet."""
        return list(self._unused)

    def spend(self, *charges: Charge) -> None:
        """Charges what was not charged before."""
        due, unused = [], list(self._unused)
        for charge in charges:
            if charge in unused:
                unused.remove(charge)
            else:
                due.append(charge)
        if due:
            super().spend(*due)
        self._unused = unused  # all or none: a refusal uses nothing up


class Disjoint(_View):
    """The ledger of one of several parts of the data, of which each record is in one (parallel composition).

    Which part a record is in follows from the record and what is public. Then adding or removing it changes what one
    part measures and nothing else, so equal measurements of all parts cost as much as that of one. The first part to
    make a charge pays for it; the others must make the same charges in the same order.

    >>> from sundog.privacy.events import Pure
    >>> ledger, count = Ledger(epsilon=1.0, delta=1e-6), Charge(event=Pure(epsilon=0.1), purpose="a count")
    >>> for part in Disjoint.parts(ledger, 3):
    ...     part.spend(count)
    >>> len(ledger.charges)
    1
    """

    def __init__(self, ledger: Ledger, made: list[tuple[Charge, ...]]) -> None:
        super().__init__(ledger)
        self._made, self._place = made, 0

    @classmethod
    def parts(cls, ledger: Ledger, count: int) -> list[Disjoint]:
        """A ledger for each part."""
        made: list[tuple[Charge, ...]] = []
        return [cls(ledger, made) for _ in range(count)]

    def spend(self, *charges: Charge) -> None:
        """Charges what no other part has charged yet."""
        if self._place == len(self._made):
            super().spend(*charges)
            self._made.append(charges)
        elif self._made[self._place] != charges:
            raise LedgerError("parts of the data that share one charge must measure the same things in the same order")
        self._place += 1

    def check(self, *charges: Charge) -> None:
        """Raises if the charges could not be made, unless another part has made them all."""
        made = [charge for charges in self._made[self._place :] for charge in charges]
        if not all(charge in made for charge in charges):
            super().check(*charges)
