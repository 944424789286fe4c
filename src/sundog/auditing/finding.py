"""Findings: what one way of auditing proved, beside what was promised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sundog.evaluation.report.number_text import format_power


class Verdict(StrEnum):
    """What a finding means."""

    HOLDS = "no violation found"
    BROKEN = "the promise is broken"
    LEAKS = "records leak; nothing was promised"
    SILENT = "nothing was promised, and no leak was found"
    UNUSABLE = "cannot be judged: members and non-members differ even without the release"


@dataclass(frozen=True)
class Finding:
    """The result of one way of auditing.

    Args:
        name: of the audit, such as `membership`.
        summary: one sentence.
        bound: the lower bound on ε that was proven, whatever the mechanism; 0 where nothing was.
        promise: the ε of the certificate; None where nothing was promised.
        delta: the δ at which both hold.
        verdict: what it means.
        details: further JSON-compatible figures; none of an audit that ended before it had any.
        provable: the ε that would be proven if all guesses were right: what the audit could have found at most; None
            where it proves no ε, but finds a difference or nothing.
    """

    name: str
    summary: str
    bound: float
    promise: float | None
    delta: float
    verdict: Verdict
    details: Mapping[str, Any] = field(default_factory=dict)
    provable: float | None = None

    @property
    def is_unusable(self) -> bool:
        """Whether the real records do not allow a verdict."""
        return self.verdict is Verdict.UNUSABLE

    @property
    def is_violation(self) -> bool:
        """Whether a promise is broken."""
        return self.verdict is Verdict.BROKEN

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "name": self.name,
            "summary": self.summary,
            "bound": self.bound,
            "provable": self.provable,
            "promise": self.promise,
            "delta": self.delta,
            "verdict": self.verdict.value,
            "violation": self.is_violation,
            "details": dict(self.details),
        }


def describe_bound(bound: float, delta: float) -> str:
    """Return what is proven, as a clause.

    >>> describe_bound(1.234, 1e-6), describe_bound(0.0, 1e-6)
    ('ε ≥ 1.23 is proven at δ = 10⁻⁶', 'nothing is proven at δ = 10⁻⁶')
    """
    proven = "nothing" if bound == 0 else f"ε ≥ {bound:.2f}"
    return f"{proven} is proven at δ = {format_power(delta)}"


def reach_verdict(bound: float, promise: float | None, *, blind: float = 0.0) -> Verdict:
    """Return the verdict on a lower bound on ε.

    >>> reach_verdict(1.6, 1.0).value
    'the promise is broken'

    Args:
        bound: the proven lower bound.
        promise: the ε that was promised; None for none.
        blind: what is "proven" without any look at the release. If it is anything, candidates are not a random split,
            which bounds assume, and what exceeds the promise may be their difference.
    """
    if bound <= (promise or 0.0):
        return Verdict.SILENT if promise is None else Verdict.HOLDS
    if blind > 0:
        return Verdict.UNUSABLE
    return Verdict.LEAKS if promise is None else Verdict.BROKEN
