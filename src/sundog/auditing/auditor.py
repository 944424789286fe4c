"""An audit of a release, or of any synthetic data: attacks on it, and what they prove about its guarantee."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundog.auditing.attacks.attack_list import ALL, choose_attacks, list_untried_attacks
from sundog.auditing.audit_inputs import AuditInputs, AuditRequest, RealData, read_audit_inputs
from sundog.auditing.audit_result import Audit
from sundog.auditing.candidates import make_folds
from sundog.auditing.finding import Finding, Verdict, reach_verdict
from sundog.auditing.membership import MembershipResults, run_attacks
from sundog.auditing.similarity import measure_similarity
from sundog.auditing.worst_records import find_worst_records
from sundog.data.schema import Schema
from sundog.evaluation.comparison import make_rng
from sundog.privacy.record_count import compute_fit_epsilon
from sundog.progress import Progress, silent

NOT_TRIED = (
    "shadow models: fits on other data of the same population, which sharpen every attack",
    "records made to be remembered (canaries), and many fits on neighbouring data",
)


SMALL_DELTA = 1e-9  # at which m·δ is negligible for any number of candidates
_MUCH = 2.0  # times the ε of the certificate
_SURE = 1.7  # times the arm of a 95% interval is that of one of 99.9%


def audit(
    synthetic: Any,
    *,
    members: Any,
    nonmembers: Any,
    reference: Any = None,
    private: str | Path | None = None,
    schema: Schema | None = None,
    labels: Any = None,
    nonmember_labels: Any = None,
    attack: str = ALL,
    n: int | None = None,
    rows: int | None = None,
    quick: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> Audit:
    """Attack a release, or any synthetic data, and say what was found. The figures are as private as the real data.

    >>> import pandas as pd
    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 10**6}}})
    >>> tables = [pd.DataFrame({"age": range(start, 10**6, 5000)}) for start in (1, 2)]
    >>> found = audit(tables[0], members=tables[0], nonmembers=tables[1], schema=schema, attack="exact-match")
    >>> found.findings[0].verdict.value, found.findings[0].bound > 1
    ('records leak; nothing was promised', True)

    Args:
        synthetic: a release or the path of one, or the synthetic records of any tool: a file, a table, arrays.
        members: records that it was fitted on.
        nonmembers: other records of the same population; whether a record is a member must be a matter of chance.
        reference: further records, for attackers who hold some; by default non-members serve each other.
        private: the curator's file of the fit, for attackers who hold it.
        schema: the schema of data that is not a release; drafted from the members by default.
        labels: class labels of the members, when they are not part of them.
        nonmember_labels: those of the non-members.
        attack: the name of one attack, or `all`.
        n: how many records to draw from a release; by default as many as it was fitted on.
        rows: the most members and non-members to use; of more, a random subset is used.
        quick: use 5,000 of each only.
        seed: the same seed gives the same figures.
        progress: is called with the current stage and the share done.
    """
    real = RealData(members, nonmembers, reference, labels, nonmember_labels)
    return run_audit(AuditRequest(synthetic, real, private, schema, attack, n, rows, quick, seed, progress))


def run_audit(request: AuditRequest) -> Audit:
    """Read the inputs, run the attacks, and collect the findings."""
    attacks = choose_attacks(request.attack)
    inputs = read_audit_inputs(request)
    promise = find_promise(inputs)
    folds = make_folds(inputs, request.seed)
    results = run_attacks(attacks, folds, delta=promise.delta, seed=request.seed, progress=request.progress)
    request.progress("similarity", 1.0)
    return Audit(
        name=inputs.name,
        findings=(judge_membership(results, promise),),
        membership=results,
        similarity=measure_similarity(
            inputs.held.synthetic,
            inputs.members.records,
            inputs.nonmembers.records,
            make_rng(request.seed, "similarity"),
        ),
        worst=tuple(find_worst_records(results.scores, inputs.members)),
        not_tried=(*_list_skipped(results, request.attack), *NOT_TRIED),
        about=_describe_audit(inputs, request, promise),
        notes=(*inputs.notes, *_note_doubts(inputs, results)),
        certificate=None if inputs.release is None else inputs.release.certificate,
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


def judge_membership(results: MembershipResults, promise: Promise) -> Finding:
    """Return the finding of all attacks together: the best bound, corrected for their number."""
    best = results.best
    bound = 0.0 if best is None else best.bound.epsilon
    verdict = reach_verdict(bound, promise.epsilon, blind=results.blind.bound.epsilon)
    details: dict[str, Any] = {"delta": promise.delta, "confidence": 0.95, "blind_bound": results.blind.bound.epsilon}
    if best is not None and bound > 0:
        details |= {"attack": best.name, "guesses": best.bound.guesses, "right": best.bound.right}
    return Finding("membership", _summarise(results, promise, verdict), bound, promise.epsilon, verdict, details)


def _summarise(results: MembershipResults, promise: Promise, verdict: Verdict) -> str:
    best = results.best
    if best is None:
        return "No attack could be run."
    promised = "nothing is promised"
    if promise.epsilon is not None:
        promised = f"at most ε = {promise.epsilon:.3g} is promised at δ = {promise.delta:.1g}"
    if best.bound.epsilon == 0:
        return f"No attack proves a leak; {promised}. This is no proof of privacy: see what was not tried."
    hits = f"{best.bound.right:,} of {best.bound.guesses:,} guesses of {best.name} are members"
    chance = best.bound.members / best.bound.candidates
    found = f"{hits} ({chance:.0%} by chance), which proves ε ≥ {best.bound.epsilon:.2f}; {promised}"
    if verdict is Verdict.UNUSABLE:
        return (
            f"{found}. But a classifier that never sees the release distinguishes members from non-members too, so "
            "this may be no leak. Set aside a random part of the records before you fit, and audit with it."
        )
    return f"{found}."


def _list_skipped(results: MembershipResults, attack: str) -> Sequence[str]:
    found = [f"{name}: {why}" for name, why in results.skipped.items()]
    if attack != ALL:
        found.append(f"all attacks but {attack}: ask for --attack all")
    found += [f"{each.name}: takes long; ask for --attack {each.name}" for each in list_untried_attacks(attack)]
    return found


def _note_doubts(inputs: AuditInputs, results: MembershipResults) -> list[str]:
    notes = []
    area = results.blind.measures["auc"]
    if area.value - _SURE * (area.value - area.low) > 0.5 or results.blind.bound.epsilon > 0:
        notes.append(
            "Members and non-members can be told apart without the release, so they are not a random split of one "
            "population. What the attacks find may be this difference."
        )
    if any(result.control_bound.epsilon > 0 for result in results.attacks):
        notes.append("An attack distinguishes one half of the members from the other, which is chance; doubt it.")
    if inputs.release is not None and find_promise(inputs).epsilon is None:
        notes.append("Some columns are public: the certificate does not promise to hide who is in the data.")
    if inputs.schema.unit is not None:
        notes.append(f"A candidate is a person ({inputs.schema.unit}); a person's score is that of their worst record.")
    return notes


def _describe_audit(
    inputs: AuditInputs, request: AuditRequest, promise: Promise
) -> dict[str, str | int | float | None]:
    versions = {name: importlib.metadata.version(name) for name in ("sundog", "numpy", "scikit-learn", "torch")}
    return {
        "members": len(inputs.members.records),
        "non-members": len(inputs.nonmembers.records),
        "synthetic records": len(inputs.held.synthetic),
        "attack": request.attack,
        "quick": "yes" if request.quick else "no",
        "δ": promise.delta,
        "seed": request.seed,
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "python": platform.python_version(),
    }
