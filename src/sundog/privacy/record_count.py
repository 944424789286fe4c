"""Accounting of the noisy number of records: its ε is added to the ε of everything else.

The count is measured first, and its result decides δ, the sampling rate and the model. The rest is calibrated for each
possible count, so the two are composed by basic composition: see docs/privacy.md, "The count".
"""

from __future__ import annotations

from collections.abc import Iterable

from sundog.privacy.accountant import Method, compute_epsilon, is_within_budget
from sundog.privacy.events import Charge, DiscreteLaplace, Pure

COUNT = "number of records"


def is_count(charge: Charge) -> bool:
    """Return whether the charge paid for the number of records.

    >>> is_count(Charge(event=DiscreteLaplace(rate=0.02), purpose=COUNT))
    True
    """
    return charge.purpose == COUNT and isinstance(charge.event, DiscreteLaplace | Pure)


def compute_count_epsilon(charges: Iterable[Charge]) -> float:
    """Return the ε of all counts of records among the charges."""
    events = ((charge.event, charge.count) for charge in charges if is_count(charge))
    return sum(event.epsilon * times for event, times in events if isinstance(event, DiscreteLaplace | Pure))


def exclude_counts(charges: Iterable[Charge]) -> list[Charge]:
    """Return the charges without the counts of records."""
    return [charge for charge in charges if not is_count(charge)]


def compute_rest_epsilon(charges: Iterable[Charge], *, delta: float, method: Method = "pld") -> float:
    """Return the ε of the charges without the counts of records."""
    return compute_epsilon(exclude_counts(charges), delta=delta, method=method)


def compute_fit_epsilon(charges: Iterable[Charge], *, delta: float, method: Method = "pld") -> float:
    """Return the ε of one or several fits: the ε of the counts plus the ε of the rest at δ.

    >>> count = Charge(event=DiscreteLaplace(rate=0.02), purpose=COUNT)
    >>> round(compute_fit_epsilon([count, Charge(event=Pure(epsilon=0.5), purpose="a median")], delta=1e-6), 4)
    0.52
    """
    charges = tuple(charges)
    return compute_count_epsilon(charges) + compute_rest_epsilon(charges, delta=delta, method=method)


def is_fit_within_budget(charges: Iterable[Charge], *, epsilon: float, delta: float) -> bool:
    """Return whether `compute_fit_epsilon` is at most ε, with as little work as possible.

    >>> count = Charge(event=DiscreteLaplace(rate=0.02), purpose=COUNT)
    >>> [is_fit_within_budget([count] * n, epsilon=0.03, delta=1e-6) for n in (1, 2)]
    [True, False]
    """
    charges = tuple(charges)
    return is_within_budget(exclude_counts(charges), epsilon=epsilon - compute_count_epsilon(charges), delta=delta)
