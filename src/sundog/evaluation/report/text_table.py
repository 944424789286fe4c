"""Measures as a plain-text table, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sundog.evaluation.measure import Measure, Measures

_NAME, _CELL = 34, 27  # characters


def format_measure(measure: Measure | None) -> str:
    """Return a value with its interval; empty where there is none.

    >>> format_measure(Measure(0.5, 0.4, 0.6))
    '0.5000 (0.4000 to 0.6000)'
    """
    return "" if measure is None else f"{measure.value:.4f} ({measure.low:.4f} to {measure.high:.4f})"


def format_table(names: Iterable[str], columns: Sequence[tuple[str, Measures]]) -> str:
    """Return a table with one measure per row and one titled set of measures per column."""
    head = f"  {'':{_NAME}}" + "".join(f" {title:>{_CELL}.{_CELL}}" for title, _ in columns)
    rows = [
        f"  {name:{_NAME}}" + "".join(f" {format_measure(measures.get(name)):>{_CELL}}" for _, measures in columns)
        for name in names
    ]
    return "\n".join([head, *rows])
