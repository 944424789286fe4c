"""Canaries as a part of an audit: a twin of the fit of a release, with canaries among its members."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from sundog.auditing.canaries.canary_audit import OF_MARGINALS, CanaryFinding, audit_with_canaries
from sundog.auditing.finding import Finding, Verdict, describe_bound
from sundog.auditing.fit_audit import FitAudit, RepeatedFit
from sundog.auditing.fit_recipe import FitRecipe


class TwinAudit(FitAudit):
    """A twin of the fit with canaries, about which an attacker guesses."""

    name: ClassVar[str] = "canaries"

    def find_obstacle(self, recipe: FitRecipe) -> str | None:
        """Return that a mixture of networks has no place for canaries, if so."""
        if recipe.clusters > 1 and recipe.model not in OF_MARGINALS:
            return f"they cannot be planted in a mixture of {recipe.model}"
        return None

    def find_delay(self, recipe: FitRecipe) -> str | None:
        """Return that training takes long, if so."""
        return None if recipe.model in OF_MARGINALS else "a twin takes as long to train as the release did"

    def run(self, fit: RepeatedFit, *, failure: float) -> Finding:
        """Fit the twin, and test what guesses about its canaries show."""
        recipe, count = fit.recipe, len(fit.members)
        schema = recipe.release.schema.model_copy(update={"records": count})
        fit.progress("canaries", 0.0)
        found = audit_with_canaries(
            fit.members,
            schema,
            model=recipe.model,
            epsilon=recipe.epsilon,
            delta=recipe.delta,
            settings=recipe.settings,
            clusters=recipe.clusters,
            confidence=1 - failure,
            seed=fit.seed,
            progress=lambda stage, done: fit.progress(f"canaries: {stage}", done),
        )
        return _conclude(found, count)


def _conclude(found: CanaryFinding, members: int) -> Finding:
    guesses = found.guesses
    summary = (
        f"{guesses.correct:,} of {guesses.guesses:,} guesses about {guesses.canaries:,} canaries are right, which "
        f"{'refutes' if found.refutes else 'does not contradict'} the curve of what the twin was charged; "
        f"{describe_bound(found.steinke_bound, found.delta)} (ε ≥ {found.epsilon_bound:.2f} if the noise is Gaussian)."
    )
    details = {
        "members": members,
        "canaries": guesses.canaries,
        "guesses": guesses.guesses,
        "right": guesses.correct,
        "gaussian_bound": found.epsilon_bound,
        "steinke_bound": found.steinke_bound,
        "p_value": found.p_value,
        "confidence": found.confidence,
    }
    verdict = Verdict.BROKEN if found.refutes else Verdict.HOLDS
    best = replace(guesses, correct=guesses.guesses)
    return Finding(
        TwinAudit.name,
        summary,
        bound=found.steinke_bound,
        promise=found.epsilon,
        delta=found.delta,
        verdict=verdict,
        details=details,
        provable=best.bound_epsilon(delta=found.delta, confidence=found.confidence),
    )
