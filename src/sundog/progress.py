"""Progress callbacks."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]  # the stage, and the fraction done (0 … 1); with a line break it is a message


def silent(stage: str, done: float) -> None:
    """Ignores progress."""
