"""The result of one part of an evaluation: measures, their descriptions, details and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sundog.evaluation.measure import Measure, Metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure of the report, drawn only when a page is made.

    Args:
        title: the heading.
        caption: how to read the figure.
        draw: makes the figure; the page sets colours, fonts and backgrounds (`report/plot_style.py`).
        wide: whether it takes the full width of the page.
    """

    title: str
    caption: str
    draw: Callable[[], Figure]
    wide: bool = False


@dataclass(frozen=True)
class Listing:
    """A short table of texts beside the figures of the report.

    Args:
        title: the heading.
        caption: what is listed.
        heads: of the columns.
        rows: of the table; a row's second text names it.
    """

    title: str
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """One part of a report.

    Args:
        title: the heading.
        measures: by stable dotted names.
        metrics: the description of each measure, by the same names.
        details: further JSON-compatible figures: by column, by pair, by query.
        pictures: in reading order.
        notes: what a reader must know, such as rows that were left out.
        listings: tables after the pictures.
    """

    title: str
    measures: Mapping[str, Measure]
    metrics: Mapping[str, Metric]
    details: Mapping[str, Any] = field(default_factory=dict)
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    listings: Sequence[Listing] = ()
