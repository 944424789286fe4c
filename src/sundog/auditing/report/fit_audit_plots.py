"""Plots of audits that repeat a fit: bounds from canaries, and the errors of a game."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sundog.auditing.finding import Finding
from sundog.evaluation.report.plot_style import REAL, SYNTHETIC
from sundog.evaluation.section import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BEYOND = 1.3  # how far an axis goes beyond the largest number
_CANARIES = (
    "Dots are lower bounds on ε, and lines what they leave possible. The vertical line is what the fit was charged. "
    "Bounds from a single fit are loose: a correct one may have dots far to the left of the line."
)
_GAME = (
    "The rate of misses against the rate of false alarms, at each threshold of each attack, with 95% intervals of "
    "single rates. The line follows from what was charged: below it is what no attack may reach."
)
_MU = (
    "How far apart the scores with and without the record are, in standard deviations, with its interval. The "
    "vertical line is what the charges claim. Close to it, the noise is not much larger than it has to be; the "
    "estimate raises no alarm."
)


def plot_canary_bounds(finding: Finding) -> Picture:
    """Plot both lower bounds beside the promise."""
    return Picture("What guesses about canaries prove", _CANARIES, lambda: _draw_bounds(finding))


def list_game_plots(finding: Finding) -> list[Picture]:
    """Return the plot of errors, and that of μ if it is finite."""
    figures = finding.details
    found = [Picture("Errors of the attacker", _GAME, lambda: _draw_errors(figures))]
    if figures["mu"]["value"] is not None:
        found.append(Picture("Strength of the attack", _MU, lambda: _draw_mu(figures)))
    return found


def _draw_bounds(finding: Finding) -> Figure:
    figure, axes = _make_axes(height=1.9)
    promise = finding.promise or 0.0
    bounds = {"Steinke et al.": finding.details["steinke_bound"], "f-DP (Gaussian)": finding.details["gaussian_bound"]}
    most = _BEYOND * max(promise, *bounds.values())
    for place, bound in enumerate(bounds.values()):
        axes.plot([bound, most], [place, place], color=SYNTHETIC, linewidth=1.2)
        axes.plot([bound], [place], "o", color=SYNTHETIC)
    _finish_rows(axes, list(bounds), claim=promise, most=most, label="ε")
    return figure


def _draw_mu(figures: Mapping[str, Any]) -> Figure:
    figure, axes = _make_axes(height=1.5)
    mu, claim = figures["mu"], figures["promised_mu"]
    most = _BEYOND * max(claim, mu["high"], 0.1)
    axes.plot([mu["low"], mu["high"]], [0, 0], color=SYNTHETIC, linewidth=1.2)
    axes.plot([mu["value"]], [0], "o", color=SYNTHETIC)
    _finish_rows(axes, ["estimate"], claim=claim, most=most, label="μ")
    axes.set_xlim(min(0.0, _BEYOND * mu["low"]), most)
    return figure


def _draw_errors(figures: Mapping[str, Any]) -> Figure:
    figure, axes = _make_axes(height=4.0)
    curve = figures["curve"]
    axes.plot(curve["false_alarms"], curve["misses"], color=REAL, label="what was charged")
    axes.plot([0, 1], [1, 0], color="black", linestyle=":", linewidth=1, label="guessing")
    for place, errors in enumerate(figures["errors"]):
        x, y = errors["false_alarms"], errors["misses"]
        axes.errorbar(
            [x["value"]],
            [y["value"]],
            xerr=[[x["value"] - x["low"]], [x["high"] - x["value"]]],
            yerr=[[y["value"] - y["low"]], [y["high"] - y["value"]]],
            fmt="o",
            color=SYNTHETIC,
            linewidth=1,
            label="an attack at a threshold" if place == 0 else None,
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("false alarms")
    axes.set_ylabel("misses")
    axes.legend(loc="upper right")
    return figure


def _make_axes(*, height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4, height), layout="constrained")
    return figure, figure.subplots()


def _finish_rows(axes: Axes, names: list[str], *, claim: float, most: float, label: str) -> None:
    axes.axvline(claim, color=REAL)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlim(0, most)
    axes.set_xlabel(label)
