"""How long work tells what it is doing."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]  # what is being done, and how much of it is (0 … 1)


def silent(stage: str, done: float) -> None:
    """The progress of whoever does not want to know."""
