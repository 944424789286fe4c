"""Colours of data and matplotlib settings of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sundog.evaluation.measure import Measure

# Each has a contrast of at least 3 : 1 on light and dark pages.
REAL = "#3b6fb6"
SYNTHETIC = "#cf7a22"
ACCENT = "#2a9d8f"
_MORE = ("#8a63a8", "#808890", "#b5506a")

_SETTINGS: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "black",
    "axes.labelcolor": "black",
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.0,
    "axes.titleweight": "normal",
    "figure.titlesize": 10.0,
    "font.size": 9.5,
    "grid.alpha": 0.15,
    "grid.color": "black",
    "grid.linewidth": 0.5,
    "image.interpolation": "nearest",
    "legend.fontsize": 9.0,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",  # text stays text, in the page's font
    "svg.hashsalt": "sundog",  # the same figure gives the same bytes
    "text.color": "black",
    "text.parse_math": False,  # a column may be named `$a_$`
    "xtick.color": "black",
    "xtick.labelsize": 9.0,
    "xtick.major.width": 0.6,
    "ytick.color": "black",
    "ytick.labelsize": 9.0,
    "ytick.major.width": 0.6,
}


@contextmanager
def use_page_style() -> Iterator[None]:
    """Apply the page's style to figures drawn inside the context, and restore matplotlib's settings."""
    import matplotlib
    from cycler import cycler

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a user's own settings must not change the page
        matplotlib.rcParams.update(_SETTINGS)
        matplotlib.rcParams["axes.prop_cycle"] = cycler(color=[REAL, SYNTHETIC, ACCENT, *_MORE])
        yield


def compute_error_bars(measures: Sequence[Measure]) -> list[list[float]]:
    """Return the lengths of error bars below and above each value, as matplotlib takes them."""
    return [[each.value - each.low for each in measures], [each.high - each.value for each in measures]]


def label_percent(axis: Any) -> None:
    """Label the major ticks of an axis of shares as percentages, and no others."""
    axis.set_major_formatter(lambda share, _: f"{100 * share:g}%")
    axis.set_minor_formatter(lambda *_: "")
