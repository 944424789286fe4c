"""How the noisy count of records is accounted for: its ε is added to the ε of everything else.

The count is measured first, and its result decides δ, the sampling rate and the model. The rest is calibrated for each
possible count, so the two are composed by basic composition: see docs/privacy.md, "The count".
"""

from __future__ import annotations

from collections.abc import Iterable

from sundog.privacy.accountant import Method, epsilon_spent, fits
from sundog.privacy.events import Charge, DiscreteLaplace, Pure

COUNT = "number of records"


def is_count(charge: Charge) -> bool:
    """Return whether the charge paid for the number of records.

    >>> is_count(Charge(event=DiscreteLaplace(rate=0.02), purpose=COUNT))
    True
    """
    return charge.purpose == COUNT and isinstance(charge.event, DiscreteLaplace | Pure)


def epsilon_of_counts(charges: Iterable[Charge]) -> float:
    """Return the ε of all counts of records among the charges."""
    events = ((charge.event, charge.count) for charge in charges if is_count(charge))
    return sum(event.epsilon * times for event, times in events if isinstance(event, DiscreteLaplace | Pure))


def without_counts(charges: Iterable[Charge]) -> list[Charge]:
    """Everything but the counts of records."""
    return [charge for charge in charges if not is_count(charge)]


def epsilon_of_rest(charges: Iterable[Charge], *, delta: float, method: Method = "pld") -> float:
    """Return the ε of everything but the counts of records."""
    return epsilon_spent(without_counts(charges), delta=delta, method=method)


def epsilon_of_fit(charges: Iterable[Charge], *, delta: float, method: Method = "pld") -> float:
    """Return the ε of one or several fits: the ε of the counts plus the ε of the rest at δ.

    >>> count = Charge(event=DiscreteLaplace(rate=0.02), purpose=COUNT)
    >>> round(epsilon_of_fit([count, Charge(event=Pure(epsilon=0.5), purpose="a median")], delta=1e-6), 4)
    0.52
    """
    charges = tuple(charges)
    return epsilon_of_counts(charges) + epsilon_of_rest(charges, delta=delta, method=method)


def fit_within(charges: Iterable[Charge], *, epsilon: float, delta: float) -> bool:
    """Return whether `epsilon_of_fit` is at most ε, with as little work as possible.

    >>> count = Charge(event=DiscreteLaplace(rate=0.02), purpose=COUNT)
    >>> fit_within([count], epsilon=0.02, delta=1e-6), fit_within([count, count], epsilon=0.03, delta=1e-6)
    (True, False)
    """
    charges = tuple(charges)
    return fits(without_counts(charges), epsilon=epsilon - epsilon_of_counts(charges), delta=delta)
