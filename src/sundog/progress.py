"""Progress callbacks."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]  # what is being done, and how much of it is (0 … 1)


def silent(stage: str, done: float) -> None:
    """Ignores progress."""
