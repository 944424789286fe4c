"""Games as a part of an audit: many small fits of the model of a release at its budget."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from sundog.auditing.epsilon_bounds import bound_corrected_epsilon
from sundog.auditing.error_test import Errors
from sundog.auditing.finding import Finding, Verdict, describe_bound
from sundog.auditing.fit_audit import FitAudit, RepeatedFit
from sundog.auditing.fit_recipe import FitRecipe
from sundog.auditing.games.game import (
    ChargeDependenceError,
    GameResult,
    Scores,
    count_all_errors,
    judge_scores,
    play_game,
)
from sundog.auditing.games.model_games import list_model_games, make_model_game
from sundog.auditing.membership_measures import measure_exactly
from sundog.auditing.tradeoff_curve import compute_tradeoff_curve
from sundog.errors import BudgetExceededError, NotApplicableError
from sundog.models.registry import MIXTURE

_RUNS, _QUICK_RUNS = 1000, 200
_POINTS = 100  # of the curve, for the page


class GameAudit(FitAudit):
    """Many fits on a worst-case pair for the model, which differ in one record."""

    name: ClassVar[str] = "game"

    def find_obstacle(self, recipe: FitRecipe) -> str | None:
        """Return that there is no game for the model, if so."""
        if recipe.clusters > 1 and recipe.model != "independent":
            return f"there is none for a mixture of {recipe.model}"
        return None if recipe.model in list_model_games() else f"there is none for {recipe.model}"

    def run(self, fit: RepeatedFit, *, failure: float) -> Finding:
        """Play the game, and test the errors of its attacks."""
        recipe = fit.recipe
        name = recipe.model if recipe.clusters == 1 else MIXTURE
        try:
            game = make_model_game(name, epsilon=recipe.epsilon, delta=recipe.delta)
        except BudgetExceededError as error:  # nothing is spent yet: only a refused charge breaks a promise
            raise NotApplicableError(f"it cannot be planned: {error}") from None
        runs = _QUICK_RUNS if fit.quick else _RUNS
        try:
            scores = play_game(game, runs=runs, seed=fit.seed, progress=fit.progress)
        except ChargeDependenceError as error:
            return Finding(self.name, f"{error}.", 0.0, recipe.epsilon, recipe.delta, Verdict.BROKEN)
        found = judge_scores(name, scores, delta=recipe.delta, confidence=1 - failure)
        return _conclude(found, scores, confidence=1 - failure)


def _conclude(found: GameResult, scores: Scores, *, confidence: float) -> Finding:
    verdict = Verdict.BROKEN if found.alarm else Verdict.HOLDS
    summary = (
        f"In {found.runs:,} fits of {found.name} with and without a record, the errors of an attacker "
        f"{'contradict' if found.alarm else 'are within'} the curve of what was charged; "
        f"{describe_bound(found.threshold_bound, found.delta)} (ε ≥ {found.lower_bound:.2f} if only the scale of the "
        "noise may be wrong)."
    )
    errors = count_all_errors(scores)
    best = Errors(0, errors[0].absent, 0, errors[0].present)
    alarms = np.linspace(0, 1, _POINTS)
    misses = compute_tradeoff_curve(scores.charges)(alarms)
    details = {
        "model": found.name,
        "runs": found.runs,
        "curve_bound": found.lower_bound,
        "threshold_bound": found.threshold_bound,
        "p_value": found.p_value,
        "promised_mu": found.promised_mu,
        "mu": {key: value if math.isfinite(value) else None for key, value in vars(found.mu).items()},
        "errors": [_describe_errors(each) for each in errors],
        "curve": {"false_alarms": alarms.round(4).tolist(), "misses": misses.round(4).tolist()},
        "confidence": confidence,
    }
    return Finding(
        GameAudit.name,
        summary,
        bound=found.threshold_bound,
        promise=found.promise,
        delta=found.delta,
        verdict=verdict,
        details=details,
        provable=bound_corrected_epsilon([best] * len(errors), delta=found.delta, confidence=confidence),
    )


def _describe_errors(errors: Errors) -> dict[str, Any]:
    """Return both error rates, with intervals of 95% each."""
    return {
        "false_alarms": measure_exactly(errors.false_alarms, errors.absent).to_dict(),
        "misses": measure_exactly(errors.misses, errors.present).to_dict(),
    }
