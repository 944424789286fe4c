"""What a release tells of its fit: enough to repeat it, and to notice that settings are not those of the release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.auditing.replay.replay_cases import CASES

from sundog.auditing.fit_recipe import FitRecipe
from sundog.errors import ArgumentError
from sundog.fit.synthesizer import Synthesizer
from sundog.release.release import Release

pytestmark = pytest.mark.usefixtures("no_fsync", "remembered_answers")

QUICK = ("independent", "refined", "vae", "clusters of rbm", "sets, clusters")


def fit(name: str) -> tuple[Release, dict[str, Any]]:
    case = CASES[name]
    options = {"epsilon": 1.0, **case.settings}
    return Synthesizer(case.model, seed=0, **options).fit(case.data, case.schema).release_, options


@pytest.mark.filterwarnings("ignore:epsilon = 50")
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_the_charges_of_a_release_follow_from_its_settings(name: str) -> None:
    release, options = fit(name)
    settings = options.get("settings", {})
    recipe = FitRecipe(release, settings)
    assert recipe.clusters == options.get("clusters", 1)
    assert CASES[name].model in (recipe.model, "auto")
    if "public" in options:
        assert recipe.find_obstacle() == "the fit used public records, which are not in the release"
        return
    assert recipe.find_obstacle() is None
    assert recipe.reproduces_charges()
    assert FitRecipe(release).reproduces_charges() == (not settings)


def test_what_was_learned_is_learned_again() -> None:
    release, _ = fit("learned")
    schema = FitRecipe(release).undo_learning()
    columns: list[Any] = list(schema.columns.values())
    ages, sizes, jobs, ranks = columns
    assert not any(column.complete for column in (ages, sizes, jobs))
    assert (ages.min, ages.learn, jobs.values, jobs.nullable) == (None, True, None, True)
    assert (ranks.min, ranks.max, ranks.awaits_quantiles) == (0, 99, True)
    declared, _ = fit("independent")
    assert FitRecipe(declared).undo_learning() == declared.schema


def test_the_number_of_records_and_delta_are_those_of_the_plan() -> None:
    case = CASES["vae"]
    counted = FitRecipe(fit("vae")[0])  # both follow from a noisy count
    assert counted.requested_delta is None
    assert counted.delta <= counted.release.certificate.delta
    assert counted.records == counted.release.certificate.conditional.records  # type: ignore[union-attr]
    given = FitRecipe(Synthesizer("vae", delta=1e-6, **case.settings).fit(case.data, case.schema).release_)
    assert (given.requested_delta, given.delta) == (1e-6, 1e-6)
    assert given.records == given.release.records


def test_a_release_of_another_version_is_not_fitted_again() -> None:
    release, _ = fit("independent")
    other = replace(release, libraries={**release.libraries, "sundog": "0.0.7"})
    assert "made by sundog 0.0.7" in (FitRecipe(other).find_obstacle() or "")


def test_a_wrong_setting_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="has no setting 'epochs'"):
        FitRecipe(fit("independent")[0], {"epochs": 3}).reproduces_charges()
