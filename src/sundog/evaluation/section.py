"""What one part of an evaluation hands on: measures, what to say about them, details and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sundog.evaluation.measure import Measure, Metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """Something to look at, drawn when a page is made and not before.

    Args:
        title: a few words above it.
        caption: what to see in it, for somebody who never saw one.
        draw: makes the figure; colours, fonts and backgrounds are the page's (`report/style.py`).
        wide: whether it takes the whole width of the page.
    """

    title: str
    caption: str
    draw: Callable[[], Figure]
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """One part of a report.

    Args:
        title: its heading.
        measures: by their stable dotted names.
        metrics: what to say about each of them, by the same names.
        details: more figures for machines, JSON-able: by column, by pair, by query.
        pictures: in the order they should be seen.
        notes: what a reader must know, such as rows that were left out.
    """

    title: str
    measures: Mapping[str, Measure]
    metrics: Mapping[str, Metric]
    details: Mapping[str, Any] = field(default_factory=dict)
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
