"""Membership as a part of an audit: all attacks on what was released, and what they prove together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sundog.auditing.attack import Attack
from sundog.auditing.audit_inputs import AuditInputs
from sundog.auditing.candidates import make_control_folds, make_folds
from sundog.auditing.finding import Finding, Verdict, reach_verdict
from sundog.auditing.membership import MembershipResults, run_attacks
from sundog.auditing.similarity import measure_similarity
from sundog.auditing.worst_records import WorstRecord, find_worst_records
from sundog.evaluation.comparison import make_rng
from sundog.evaluation.measure import Measure
from sundog.evaluation.report.number_text import format_power
from sundog.privacy.record_count import compute_fit_epsilon
from sundog.progress import Progress

SMALL_DELTA = 1e-9  # at which m·δ is negligible for any number of candidates
_MUCH = 2.0  # times the ε of the certificate


@dataclass(frozen=True, eq=False)
class MembershipAudit:
    """What attacks on membership found.

    Args:
        finding: of all attacks together.
        results: the attacks in detail.
        similarity: the share of synthetic records nearer to a member than to a non-member, which is no evidence.
        worst: the members that attacks recognise best, for the curator's eyes.
    """

    finding: Finding
    results: MembershipResults
    similarity: Measure
    worst: tuple[WorstRecord, ...]


def audit_membership(
    attacks: Sequence[Attack], inputs: AuditInputs, *, failure: float, seed: int, progress: Progress
) -> MembershipAudit:
    """Run attacks, and compare what they prove with what is promised.

    Args:
        attacks: to run.
        inputs: what the attackers hold, and the candidates.
        failure: the probability with which a correct release may be accused.
        seed: fixes all random choices.
        progress: is called with the current stage and the share done.
    """
    promise = find_promise(inputs)
    folds = make_folds(inputs, seed)
    results = run_attacks(
        attacks,
        folds,
        delta=promise.delta,
        seed=seed,
        progress=progress,
        failure=failure,
        control_folds=make_control_folds(inputs, seed),
    )
    progress("similarity", 1.0)
    held, members, nonmembers = inputs.held.synthetic, inputs.members, inputs.nonmembers
    return MembershipAudit(
        finding=judge_membership(results, promise, failure=failure),
        results=results,
        similarity=measure_similarity(held, members.records, nonmembers.records, make_rng(seed, "similarity")),
        worst=tuple(find_worst_records(results.scores, members)),
    )


@dataclass(frozen=True)
class Promise:
    """The ε that is promised for membership at a δ; None where nothing is promised."""

    epsilon: float | None
    delta: float


def find_promise(inputs: AuditInputs) -> Promise:
    """Return what is promised at a δ at which attacks can prove something.

    One fit shows something about each of m candidates at once, so that a bound allows for m·δ failures. The charges of
    a certificate also promise some ε at a smaller δ, where this is negligible; it is used unless it is much larger. The
    choice does not depend on what attacks find. If columns are public, only the private values of a record are
    protected, not that there is such a record.
    """
    if inputs.release is None or any(column.public for column in inputs.schema.columns.values()):
        return Promise(None, SMALL_DELTA)
    certificate = inputs.release.certificate
    if certificate.delta > SMALL_DELTA:
        epsilon = compute_fit_epsilon(certificate.charges, delta=SMALL_DELTA)
        if epsilon <= _MUCH * certificate.epsilon:
            return Promise(epsilon, SMALL_DELTA)
    return Promise(certificate.epsilon, certificate.delta)


def judge_membership(results: MembershipResults, promise: Promise, *, failure: float) -> Finding:
    """Return the finding of all attacks together: the best bound, corrected for their number.

    Args:
        results: of all attacks.
        promise: of the release.
        failure: the probability with which the bound may be wrong.
    """
    best = results.best
    bound = 0.0 if best is None else best.bound.epsilon
    verdict = reach_verdict(bound, promise.epsilon, blind=results.blind.bound.epsilon)
    details: dict[str, Any] = {"confidence": 1 - failure, "blind_bound": results.blind.bound.epsilon}
    if best is not None and bound > 0:
        details |= {"attack": best.name, "guesses": best.bound.guesses, "right": best.bound.right}
    summary = _summarise(results, promise, verdict)
    return Finding("membership", summary, bound, promise.epsilon, promise.delta, verdict, details, results.provable)


def _summarise(results: MembershipResults, promise: Promise, verdict: Verdict) -> str:
    best = results.best
    if best is None:
        return "No attack could be run."
    promised = "nothing is promised"
    if promise.epsilon is not None:
        promised = f"at most ε = {promise.epsilon:.3g} is promised at δ = {format_power(promise.delta)}"
    if best.bound.epsilon == 0:
        return f"No attack proves a leak; {promised}. This is no proof of privacy: see what was not tried."
    hits = f"{best.bound.right:,} of {best.bound.guesses:,} guesses of {best.name} are members"
    chance = best.bound.members / best.bound.candidates
    where = f" at δ = {format_power(promise.delta)}" if promise.epsilon is None else ""
    found = f"{hits} ({chance:.0%} by chance), which proves ε ≥ {best.bound.epsilon:.2f}{where}; {promised}"
    if verdict is Verdict.UNUSABLE:
        return (
            f"{found}. But a classifier that never sees the release distinguishes members from non-members too, so "
            "this may be no leak. Set aside a random part of the records before you fit, and audit with it."
        )
    return f"{found}."
