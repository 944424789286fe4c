"""Plots of time series, real and synthetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sundog.evaluation.bootstrap import Floats, PairedAverages
from sundog.evaluation.section import Picture
from sundog.evaluation.total_variation import normalise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CURVES = 2000  # series are enough for bands


def plot_profiles(real: Floats, synthetic: Floats, label: str) -> Picture:
    """Plot mean curves with bands."""
    return Picture(
        "A typical series",
        "The mean over all series at each position, and the band that holds nine of ten values.",
        lambda: _draw_profiles(real, synthetic, label),
        wide=True,
    )


def plot_autocorrelations(lags: PairedAverages) -> Picture:
    """Plot mean autocorrelation functions."""
    return Picture(
        "Autocorrelation",
        "The mean correlation of a series with itself at each lag.",
        lambda: _draw_curves(lags.real, lags.synthetic, xlabel="lag", ylabel="autocorrelation"),
    )


def plot_spectra(powers: PairedAverages) -> Picture:
    """Plot normalised mean power spectra."""
    return Picture(
        "Power spectrum",
        "The share of power at each frequency: a daily rhythm is a peak.",
        lambda: _draw_spectra(powers.real, powers.synthetic),
    )


def plot_neighbours(synthetic: Floats, real: Floats, label: str) -> Picture:
    """Plot synthetic series, each with the nearest real one."""
    return Picture(
        "Synthetic series and the real ones nearest to them",
        "Under dynamic time warping. They should be similar; a series that coincides with its neighbour is a copy.",
        lambda: _draw_neighbours(synthetic, real, label),
        wide=True,
    )


def _draw_profiles(real: Floats, synthetic: Floats, label: str) -> Figure:
    figure, axes = _create_axes(width=8.0)
    for values, colour, name in _pair_with_colours(real, synthetic):
        low, high = np.quantile(values[:: max(1, len(values) // _CURVES)], [0.05, 0.95], axis=0)
        places = np.arange(values.shape[1])
        axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(places, values.mean(axis=0), color=colour, label=name)
    axes.set(xlabel="position", ylabel=label)
    axes.legend()
    return figure


def _draw_curves(real: Floats, synthetic: Floats, **labels: str) -> Figure:
    figure, axes = _create_axes(width=5.0)
    for values, colour, name in _pair_with_colours(real, synthetic):
        axes.plot(np.arange(1, len(values) + 1), values, color=colour, label=name)
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.set(**labels)
    axes.legend()
    return figure


def _draw_spectra(real: Floats, synthetic: Floats) -> Figure:
    from sundog.evaluation.report.plot_style import label_percent

    shares = [normalise(power, empty=0.0) for power in (real, synthetic)]
    figure = _draw_curves(*shares, xlabel="cycles per series", ylabel="share of power")
    figure.axes[0].set(yscale="log" if all(share.all() for share in shares) else "linear")
    label_percent(figure.axes[0].yaxis)
    return figure


def _draw_neighbours(synthetic: Floats, real: Floats, label: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    grid: Any = figure.subplots(2, 3, sharex=True)
    for axes, *pair in zip(grid.flat, real, synthetic, strict=False):
        for values, colour, name in _pair_with_colours(*pair):
            axes.plot(values, color=colour, linewidth=1.1, label=name)
    for axes in grid.flat[len(synthetic) :]:
        axes.set_axis_off()
    grid[0, 0].legend()
    figure.supylabel(label, fontsize="medium")
    return figure


def _create_axes(*, width: float) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 3.2), layout="constrained")
    return figure, figure.subplots()


def _pair_with_colours(real: Floats, synthetic: Floats) -> list[tuple[Floats, str, str]]:
    from sundog.evaluation.report.plot_style import REAL, SYNTHETIC

    return [(real, REAL, "real"), (synthetic, SYNTHETIC, "synthetic")]
