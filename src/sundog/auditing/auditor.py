"""An audit of a release, or of any synthetic data: attacks on it, and audits that repeat its fit.

plan what is published, choose the audits, read the inputs
replay, canaries, game        of a release: its fit is repeated                fit_audit_list.py
membership                    attacks on what was released                     attacks/attack_list.py
a finding each; audits that may accuse a correct release share the probability of 5%
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sundog.auditing.attacks.attack_list import ALL, choose_attacks, list_untried_attacks
from sundog.auditing.audit_inputs import AuditInputs, AuditRequest, read_audit_inputs
from sundog.auditing.audit_publication import AuditPublication
from sundog.auditing.audit_result import Audit
from sundog.auditing.finding import Finding, Verdict
from sundog.auditing.fit_audit import FitAudit, RepeatedFit
from sundog.auditing.fit_audit_list import MEMBERSHIP, check_names, choose_fit_audits
from sundog.auditing.fit_recipe import FitRecipe
from sundog.auditing.membership import FAILURE, MembershipResults
from sundog.auditing.membership_finding import MembershipAudit, audit_membership, find_promise
from sundog.data.schema import Schema
from sundog.errors import ArgumentError, BudgetExceededError, DataError, LedgerError, NotApplicableError
from sundog.evaluation.inputs import load_release
from sundog.evaluation.publication import describe_price
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import FAST
from sundog.progress import Progress, silent
from sundog.release.release import Release

NOT_TRIED = ("shadow models: fits on other data of the same population, which sharpen every attack",)

_FAR, _NOISE = 0.2, 100  # as a share of the records, and in records: what noise does not explain
_SURE = 1.7  # times the arm of a 95% interval is that of one of 99.9%


def audit(  # noqa: D417  some are described together
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
    audits: Sequence[str] = (),
    device: str = "cpu",
    settings: Mapping[str, Any] | None = None,
    n: int | None = None,
    rows: int | None = None,
    quick: bool = False,
    seed: int = 0,
    publish: float | None = None,
    ledger: Ledger | str | Path | None = None,
    progress: Progress = silent,
) -> Audit:
    """Attack a release, or any synthetic data, and say what was found. The figures are as private as the real data.

    >>> members, others = ({"age": list(range(start, 10**6, 5000))} for start in (1, 2))
    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 10**6}}})
    >>> audit(members, members=members, nonmembers=others, schema=schema, attack="exact-match").verdict.value
    'records leak; nothing was promised'

    Args:
        synthetic: a release or the path of one, or the synthetic records of any tool: a file, a table, arrays.
        members: records that it was fitted on.
        nonmembers: other records of the same population; whether a record is a member must be a matter of chance.
        reference: further records, for attackers who hold some; by default non-members serve each other.
        private: the curator's file of the fit, for attackers who hold it.
        schema: the schema of data that is not a release; drafted from the members by default.
        labels, nonmember_labels: class labels of the members and of the non-members, if they are not part of them.
        attack: the name of one attack on membership, or `all`.
        audits: `membership`, `replay`, `canaries`, `game` or `all`; by default all that apply and are quick.
        device: where attacks that train networks do so: `cpu` or `cuda`.
        settings: of the model of a release, as they were when it was fitted; a release does not hold them.
        n: how many records to draw from a release; by default as many as it was fitted on.
        rows: the most members and non-members to use; of more, a random subset is used.
        quick: use 5,000 of each only, and few repeated fits.
        seed: the same seed gives the same figures, except for canaries, whose noise is fresh.
        publish, ledger: the ε to spend on figures that may be published, and the ledger of the real data that pays.
        progress: is called with the current stage and the share done.
    """
    given = (synthetic, members, nonmembers, reference, private, schema, labels, nonmember_labels, attack, audits)
    return run_audit(AuditRequest(*given, device, settings or {}, n, rows, quick, seed, publish, ledger, progress))


def run_audit(request: AuditRequest) -> Audit:
    """Read the inputs, run all audits, and collect their findings."""
    check_names(request.audits, attack=request.attack)
    attacks, release = choose_attacks(request.attack, request.device), load_release(request.synthetic)
    publication = _plan_publication(request, release)
    recipe = _recall_fit(request, release)
    chosen, untried = choose_fit_audits(request.audits, recipe, attack=request.attack)
    inputs = read_audit_inputs(request)
    is_attacked = not request.audits or bool({MEMBERSHIP, ALL} & set(request.audits))
    failure = FAILURE / max(1, is_attacked + sum(each.is_random for each in chosen))
    repeated = _repeat_fit(chosen, recipe, request, inputs, untried, failure=failure)
    attacked = None
    if is_attacked:
        attacked = audit_membership(attacks, inputs, failure=failure, seed=request.seed, progress=request.progress)
        _refuse_skipped(attacked, request.attack)
    findings = (*(() if attacked is None else (attacked.finding,)), *repeated)
    published = {} if publication is None else publication.measure(request.real)
    return Audit(
        name=inputs.name,
        findings=findings,
        attacked=attacked,
        not_tried=(*_list_skipped(attacked, request.attack), *_list_untried(untried, release, repeated), *NOT_TRIED),
        about=_describe_audit(inputs, request),
        notes=(
            *inputs.notes,
            *_note_doubts(inputs, attacked),
            *_note_settings(recipe, repeated),
            *([] if publication is None else [describe_price(publication.run.budget)]),
        ),
        certificate=None if release is None else release.certificate,
        published=published,
    )


def _refuse_skipped(attacked: MembershipAudit, attack: str) -> None:
    """Raise if the one attack that was asked for could not be run: no attack finds nothing."""
    if attack in attacked.results.skipped:
        raise ArgumentError(f"attack {attack!r} cannot be run: {attacked.results.skipped[attack]}")


def _plan_publication(request: AuditRequest, release: Release | None) -> AuditPublication | None:
    """Plan what will be published, before any real record is read."""
    if (request.publish is None) != (request.ledger is None):
        raise DataError("publish needs both an ε and a ledger of the real data to charge it to; give both or neither")
    if request.publish is None or request.ledger is None:
        return None
    ledger = request.ledger if isinstance(request.ledger, Ledger) else Ledger.open(request.ledger)
    return AuditPublication.plan(release, epsilon=request.publish, ledger=ledger)


def _recall_fit(request: AuditRequest, release: Release | None) -> FitRecipe | None:
    """Return how the release was fitted; raise if a setting is wrong."""
    if release is None:
        if request.settings:
            raise ArgumentError("settings are those of the fit of a release, and this is not one; leave them out")
        return None
    recipe = FitRecipe(release, request.settings)
    if request.settings:
        recipe.configuration  # noqa: B018  raises
    return recipe


def _repeat_fit(
    chosen: Sequence[FitAudit],
    recipe: FitRecipe | None,
    request: AuditRequest,
    inputs: AuditInputs,
    untried: dict[str, str],
    *,
    failure: float,
) -> list[Finding]:
    """Return the findings of audits that repeat the fit; those that turn out to be impossible are added as untried."""
    found: list[Finding] = []
    for each in chosen:
        assert recipe is not None  # noqa: S101  or none would apply
        fit = RepeatedFit(
            *(recipe, request.real.members, request.real.labels, inputs.members.records),
            *(request.quick, request.seed, request.progress),
        )
        try:
            found.append(each.run(fit, failure=failure))
        except NotApplicableError as error:
            if each.name in request.audits:
                raise ArgumentError(f"{each.name}: {error}") from None
            untried[each.name] = str(error)
        except (BudgetExceededError, LedgerError) as error:
            summary = f"The repeated fit does not keep to its budget: {error}."
            found.append(Finding(each.name, summary, 0.0, recipe.epsilon, recipe.delta, Verdict.BROKEN))
    return found


def _list_skipped(attacked: MembershipAudit | None, attack: str) -> Sequence[str]:
    if attacked is None:
        return [f"attacks on {MEMBERSHIP}: ask for --audit {MEMBERSHIP}"]
    found = [f"{name}: {why}" for name, why in attacked.results.skipped.items()]
    if attack != ALL:
        found.append(f"all attacks but {attack}: ask for --attack all")
    found += [f"{each.name}: takes long; ask for --attack {each.name}" for each in list_untried_attacks(attack)]
    return found


def _list_untried(untried: Mapping[str, str], release: Release | None, repeated: Sequence[Finding]) -> list[str]:
    """Return the audits that were not run, and what those that repeat a fit leave out."""
    found = [f"{name}: {why}" for name, why in untried.items()]
    if release is None or not repeated:
        return found
    if release.certificate.noise == FAST:
        found.append("what is different on a GPU, where the release was fitted: repeated fits run on the processor")
    if any(finding.details.get("learned_schema_again") is False for finding in repeated):
        found.append("how the schema was learned: a few members are too few to learn it again")
    found += [each for finding in repeated for each in finding.details.get("not_tried", ())]
    return found


def _note_doubts(inputs: AuditInputs, attacked: MembershipAudit | None) -> list[str]:
    notes = []
    if attacked is not None:
        notes += _note_power(attacked.finding) + _note_control_failures(attacked.results)
    if inputs.release is not None and find_promise(inputs).epsilon is None:
        notes.append("Some columns are public: the certificate does not promise to hide who is in the data.")
    fitted = None if inputs.release is None else inputs.release.records
    if fitted is not None and _are_far_apart(inputs.members.count, fitted):
        notes.append(
            f"{inputs.members.count:,} members were given, and the release was fitted on about {fitted:,} records. If "
            "these are a part of them, it must be a random one; of other records, the attacks find nothing."
        )
    if inputs.schema.unit is not None:
        notes.append(f"A candidate is a person ({inputs.schema.unit}); a person's score is that of their worst record.")
    return notes


def _are_far_apart(given: int, fitted: int) -> bool:
    """Return whether two numbers of records differ by much more than noise does."""
    return abs(given - fitted) > max(_FAR * max(given, fitted), _NOISE)


def _note_power(finding: Finding) -> list[str]:
    """Return that attacks could not have proven a violation, whatever was released, if so."""
    if finding.promise is None or finding.provable is None or finding.provable > finding.promise:
        return []
    return [
        f"Even if all guesses about members were right, they would prove no more than ε = {finding.provable:.2f}, and "
        f"ε = {finding.promise:.3g} is promised: with so few records, attacks cannot show that it is broken."
    ]


def _note_control_failures(results: MembershipResults) -> list[str]:
    notes = []
    area = results.blind.measures["auc"]
    if area.value - _SURE * (area.value - area.low) > 0.5 or results.blind.bound.epsilon > 0:
        notes.append(
            "Members and non-members can be told apart without the release, so they are not a random split of one "
            "population. What the attacks find may be this difference."
        )
    doubtful = [each.name for each in results.attacks if each.control is not None and each.control.bound.epsilon > 0]
    if doubtful:
        notes.append(
            "Between two random halves of the members there is no membership to find, but some attacks tell them apart "
            f"({', '.join(doubtful)}). It is a fault of these attacks, or chance: do not trust what they find."
        )
    return notes


def _note_settings(recipe: FitRecipe | None, repeated: Sequence[Finding]) -> list[str]:
    """Return that the fit was repeated with other settings than the release's, if the certificate shows it."""
    is_repeated = any(finding.name != "game" for finding in repeated)  # a game is played on fits of its own
    if recipe is None or not is_repeated or recipe.reproduces_charges():
        return []
    return [
        "The fit was repeated with other settings than those of the release, whose charges they do not lead to. Repeat "
        "the settings of the fit with --set."
    ]


def _describe_audit(inputs: AuditInputs, request: AuditRequest) -> dict[str, str | int | float | None]:
    versions = {name: importlib.metadata.version(name) for name in ("sundog", "numpy", "scikit-learn", "torch")}
    return {
        "members": len(inputs.members.records),
        "non-members": len(inputs.nonmembers.records),
        "synthetic records": len(inputs.held.synthetic),
        "audits": ", ".join(request.audits) or "all that are quick",
        "attack": request.attack,
        "device": request.device,
        "settings": ", ".join(f"{name}={value}" for name, value in request.settings.items()) or None,
        "quick": "yes" if request.quick else "no",
        "δ": find_promise(inputs).delta,
        "seed": request.seed,
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "python": platform.python_version(),
    }
