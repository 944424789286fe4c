"""The audits that repeat a fit, by name, and which of them apply to what is audited."""

from __future__ import annotations

from collections.abc import Sequence

from sundog.auditing.fit_audit import FitAudit
from sundog.auditing.fit_recipe import FitRecipe
from sundog.data.validation_errors import suggest
from sundog.errors import ArgumentError

MEMBERSHIP, ALL = "membership", "all"
NO_RELEASE = "it repeats the fit of a release, and this is not one"


def list_fit_audits() -> Sequence[FitAudit]:
    """Return all audits that repeat a fit; they are imported when they are asked for, as some need torch.

    >>> [each.name for each in list_fit_audits()]
    ['replay', 'canaries', 'game']
    """
    from sundog.auditing.canaries.twin_audit import TwinAudit
    from sundog.auditing.games.game_audit import GameAudit
    from sundog.auditing.replay.replay_audit import ReplayAudit

    return (ReplayAudit(), TwinAudit(), GameAudit())


def check_names(names: Sequence[str], *, attack: str) -> None:
    """Raise if there is no audit of one of these names, or if an attack is named and membership is not audited.

    >>> check_names(["replay", "gmae"], attack="all")
    Traceback (most recent call last):
    ...
    sundog.errors.ArgumentError: there is no audit 'gmae'; did you mean 'game'?
    """
    known = [MEMBERSHIP, *(each.name for each in list_fit_audits()), ALL]
    for name in (name for name in names if name not in known):
        raise ArgumentError(f"there is no audit {name!r}; {suggest(name, known)}")
    if names and attack != ALL and not {MEMBERSHIP, ALL} & set(names):
        raise ArgumentError(f"attack {attack!r} is on membership; add --audit {MEMBERSHIP}, or leave one of them out")


def choose_fit_audits(
    names: Sequence[str], recipe: FitRecipe | None, *, attack: str
) -> tuple[list[FitAudit], dict[str, str]]:
    """Return the audits to run, and why the others are not, by their names.

    Without names, all are run that apply and are quick; if one attack is named, none. One that is asked for by its name
    and cannot be run is an error.

    Args:
        names: that are asked for.
        recipe: of the fit; None for what is no release.
        attack: the name of one attack, or `all`.
    """
    chosen, untried = [], {}
    for each in list_fit_audits():
        obstacle = NO_RELEASE if recipe is None else recipe.find_obstacle() or each.find_obstacle(recipe)
        if obstacle is not None and each.name in names:
            raise ArgumentError(f"{each.name}: {obstacle}; leave out --audit {each.name}")
        if obstacle is not None or recipe is None:
            untried[each.name] = str(obstacle)
        elif each.name in names or ALL in names:
            chosen.append(each)
        elif names or attack != ALL:
            untried[each.name] = f"not asked for; ask for --audit {each.name}"
        elif (delay := each.find_delay(recipe)) is not None:
            untried[each.name] = f"{delay}; ask for --audit {each.name}"
        else:
            chosen.append(each)
    return chosen, untried
