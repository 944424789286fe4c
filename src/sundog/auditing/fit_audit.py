"""What an audit is that repeats the fit of a release, on its model, settings and budget.

Attacks look at what was released. These audits look at the program that made it, and see leaks that no attack on one
release can show.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from sundog.auditing.finding import Finding
from sundog.auditing.fit_recipe import FitRecipe
from sundog.data.records import Records
from sundog.progress import Progress


@dataclass(frozen=True, eq=False)
class RepeatedFit:
    """A fit that is repeated, and how.

    Args:
        recipe: of the fit.
        source: of the members, as it was given.
        labels: class labels of the members, if they are not part of it.
        members: those that are used.
        quick: whether to take seconds only.
        seed: of everything but the noise of canaries.
        progress: is called with the current stage and the share done.
    """

    recipe: FitRecipe
    source: Any
    labels: Any
    members: Records
    quick: bool
    seed: int
    progress: Progress


class FitAudit(ABC):
    """An audit that repeats a fit.

    Args:
        name: as `--audit` takes it.
        is_random: whether it may accuse a correct fit, with a probability that it is given.
    """

    name: ClassVar[str]
    is_random: ClassVar[bool] = True

    def find_obstacle(self, recipe: FitRecipe) -> str | None:  # noqa: ARG002  none by default
        """Return why it cannot be run, or None if it can."""
        return None

    def find_delay(self, recipe: FitRecipe) -> str | None:  # noqa: ARG002  none by default
        """Return why it is only run if it is asked for, or None if it is quick."""
        return None

    @abstractmethod
    def run(self, fit: RepeatedFit, *, failure: float) -> Finding:
        """Return what it finds; a correct fit is accused with this probability at most."""
