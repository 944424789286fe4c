"""Plots of two tables: columns, distances by column, associations, and density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sundog.data.bins import Bins
from sundog.data.columns import ScalarColumn, Scale
from sundog.evaluation.bootstrap import Floats
from sundog.evaluation.measure import Measures
from sundog.evaluation.section import Picture
from sundog.evaluation.tables.associations import Associations
from sundog.evaluation.tables.table_pair import TablePair, choose_bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS, BARS, CATEGORIES, STEPS = 16, 30, 8, 64  # the most that one picture shows
SQUARE, PIXELS = 40, 48


def plot_tables(tables: TablePair, columns: Measures, associations: Associations) -> list[Picture]:
    """Return all plots of these tables; they keep what they draw, not the tables."""
    found = [_plot_distances(columns), _plot_overlays(tables, columns)]
    if len(associations.names) > 1:
        found.append(_plot_associations(associations))
    if 2 <= len(tables.numeric) <= 3 and len(tables.columns) <= 4:
        density = _plot_density(tables)
        found += [] if density is None else [density]
    return found


def _find_worst(columns: Measures, most: int) -> list[str]:
    return sorted(columns, key=lambda name: -columns[name].value)[:most]


# --- distances by column -------------------------------------------------------------------------------------------


def _plot_distances(columns: Measures) -> Picture:
    names = _find_worst(columns, BARS)[::-1]  # bars are drawn bottom up

    def draw() -> Figure:
        from matplotlib.figure import Figure

        from sundog.evaluation.report.plot_style import ACCENT, compute_error_bars

        found = [columns[name] for name in names]
        figure = Figure(figsize=(6, 0.8 + 0.24 * len(names)), layout="constrained")
        axes = figure.subplots()
        axes.barh(range(len(names)), [each.value for each in found], color=ACCENT, xerr=compute_error_bars(found))
        axes.set_yticks(range(len(names)), [shorten(name, 28) for name in names])
        axes.set_xlabel("total variation distance")
        axes.margins(y=0.01)
        return figure

    some = f" The {len(names)} worst of {len(columns)} columns." if len(names) < len(columns) else ""
    caption = (
        "The share of rows that would have to change for a column to have the real distribution, worst first; "
        "the lines are 95% intervals." + some
    )
    return Picture("Distance of each column", caption, draw)


# --- columns -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Panel:
    """The shares of a column in both tables, by category or by bin, with names."""

    title: str
    real: Floats
    synthetic: Floats
    names: dict[int, str]
    ordered: bool


def _plot_overlays(tables: TablePair, columns: Measures) -> Picture:
    panels = [_build_panel(tables, name) for name in _find_worst(columns, PANELS)]

    def draw() -> Figure:
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        across = min(4, len(panels))
        down = -(-len(panels) // across)
        figure = Figure(figsize=(max(3.0 * across, 4.5), 2.4 * down + 0.3), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            (_draw_steps if panel.ordered else _draw_bars)(axes, panel)
            shares = axes.yaxis if panel.ordered else axes.xaxis
            shares.set_major_locator(MaxNLocator(4))
            shares.set_major_formatter(PercentFormatter(1.0))
            axes.set_title(shorten(panel.title, 28))
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
        return figure

    some = f" The {len(panels)} worst of {len(columns)} columns." if len(panels) < len(columns) else ""
    caption = "The share of rows with each value, real and synthetic, columns with the greatest distance first." + some
    return Picture("Real and synthetic columns", caption, draw, wide=True)


def _draw_steps(axes: Axes, panel: _Panel) -> None:
    from sundog.evaluation.report.plot_style import REAL, SYNTHETIC

    edges = np.arange(len(panel.real) + 1) - 0.5
    axes.stairs(panel.real, edges, fill=True, color=REAL, alpha=0.45, label="real")
    axes.stairs(panel.synthetic, edges, color=SYNTHETIC, label="synthetic")
    axes.set_xticks(list(panel.names), list(panel.names.values()))
    axes.set_ylim(bottom=0)


def _draw_bars(axes: Axes, panel: _Panel) -> None:
    from sundog.evaluation.report.plot_style import REAL, SYNTHETIC

    places = np.arange(len(panel.real))
    axes.barh(places - 0.2, panel.real, 0.4, color=REAL, label="real")
    axes.barh(places + 0.2, panel.synthetic, 0.4, color=SYNTHETIC, label="synthetic")
    axes.set_yticks(list(panel.names), [shorten(name, 16) for name in panel.names.values()])
    axes.invert_yaxis()


def _build_panel(tables: TablePair, name: str) -> _Panel:
    column = tables.columns[name]
    bins = choose_bins(column)
    real, synthetic = (np.bincount(side, minlength=bins.count) / len(side) for side in tables.split(tables.bins[name]))
    if column.is_numeric:
        return _build_steps(name, column, bins, real, synthetic)
    return _build_bars(name, column, real, synthetic)


def _build_steps(name: str, column: ScalarColumn, bins: Bins, real: Floats, synthetic: Floats) -> _Panel:
    """Build a panel of bins in order, merged where there are too many; nulls are last."""
    count = len(bins.starts)
    steps = min(count, STEPS)
    starts = np.arange(steps) * count // steps
    named = sorted({0, steps // 2, steps - 1}) if not bins.nullable else sorted({0, steps // 2})
    names = {place: column.label(bins.starts[starts[place]]) for place in named}
    if bins.nullable:
        starts = np.append(starts, count)
        names[steps] = "missing"
    return _Panel(name, np.add.reduceat(real, starts), np.add.reduceat(synthetic, starts), names, ordered=True)


def _build_bars(name: str, column: ScalarColumn, real: Floats, synthetic: Floats) -> _Panel:
    """Build a panel of the most frequent categories, in order if they have one, and one bar for the others."""
    order = np.argsort(-(real + synthetic), kind="stable")
    most = CATEGORIES if len(order) > CATEGORIES + 1 else len(order)  # a single other category is shown by name
    shown, rest = order[:most], order[most:]
    if column.scale is Scale.ORDINAL:
        shown = np.sort(shown)
    names = [column.label(code) for code in shown]
    found = [side[shown] for side in (real, synthetic)]
    if len(rest):
        names.append(f"{len(rest)} others")
        found = [np.append(shares, side[rest].sum()) for shares, side in zip(found, (real, synthetic), strict=True)]
    return _Panel(name, found[0], found[1], dict(enumerate(names)), ordered=False)


# --- associations --------------------------------------------------------------------------------------------------


def _plot_associations(associations: Associations) -> Picture:
    difference = associations.synthetic - associations.real
    shown = np.sort(np.argsort(-np.abs(difference).mean(axis=0), kind="stable")[:SQUARE])
    names = [associations.names[place] for place in shown]
    matrices = {
        title: matrix[np.ix_(shown, shown)]
        for title, matrix in (
            ("real", associations.real),
            ("synthetic", associations.synthetic),
            ("synthetic − real", difference),
        )
    }

    def draw() -> Figure:
        from matplotlib.figure import Figure

        side = 2.2 + 0.12 * len(names)
        figure = Figure(figsize=(3 * side + 1.5, side + 1.2), layout="constrained")
        grid = figure.subplots(1, 3, sharey=True)
        labels = [shorten(name, 20) for name in names]
        for axes, (title, matrix) in zip(grid, matrices.items(), strict=True):
            image = axes.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1)
            axes.set_title(title)
            axes.set_xticks(range(len(labels)), labels, rotation=90)
            axes.set_yticks(range(len(labels)), labels)
        figure.colorbar(image, ax=grid, shrink=0.8)
        return figure

    few = len(names) < len(associations.names)
    some = f" The {len(names)} columns with the greatest differences of {len(associations.names)}." if few else ""
    caption = (
        "The association of each pair: correlation of two numeric columns, bias-corrected Cramér's V of two others, "
        "correlation ratio of one of each. In the third square, pale is good." + some
    )
    return Picture("Associations between columns", caption, draw, wide=True)


# --- density -------------------------------------------------------------------------------------------------------


def _plot_density(tables: TablePair) -> Picture | None:
    """Plot the density of the first two numeric columns, real beside synthetic."""
    names = tables.numeric[:2]
    points = np.column_stack([tables.scale(name) for name in names])
    sides = [side[np.isfinite(side).all(axis=1)] for side in tables.split(points)]
    if not all(len(side) for side in sides):
        return None
    ends = np.stack([np.concatenate(sides).min(axis=0), np.concatenate(sides).max(axis=0)], axis=1)
    ends[:, 1] = np.where(ends[:, 1] > ends[:, 0], ends[:, 1], ends[:, 0] + 1)
    least = min(1 / len(side) for side in sides)
    shares = [np.histogram2d(side[:, 0], side[:, 1], bins=PIXELS, range=ends)[0] / len(side) for side in sides]
    ticks = [_choose_ticks(tables.columns[name], *ends[place]) for place, name in enumerate(names)]

    def draw() -> Figure:
        from matplotlib.colors import LogNorm
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 4.2), layout="constrained")
        grid = figure.subplots(1, 2, sharex=True, sharey=True)
        norm = LogNorm(least, max(2 * least, *(share.max() for share in shares)))
        for axes, title, share in zip(grid, ("real", "synthetic"), shares, strict=True):
            shown = np.ma.masked_equal(share.T, 0)
            image = axes.imshow(shown, norm=norm, cmap="viridis", origin="lower", extent=ends.ravel(), aspect="auto")
            axes.set_title(title)
            axes.set_xlabel(shorten(names[0], 40))
            axes.set_xticks(*ticks[0])
            axes.set_yticks(*ticks[1])
        grid[0].set_ylabel(shorten(names[1], 40))
        figure.colorbar(image, ax=grid, label="share of rows", format="%g")
        return figure

    caption = "The share of records by value: brighter is more, on a logarithmic scale."
    return Picture(f"{names[0]} and {names[1]}", caption, draw, wide=True)


def _choose_ticks(column: ScalarColumn, low: float, high: float) -> tuple[list[float], list[str]]:
    places = np.linspace(low, high, 4).tolist()
    last = column.lattice_size - 1
    return places, [column.label(min(last, max(0, round(place * last)))) for place in places]


# --- text ----------------------------------------------------------------------------------------------------------


def shorten(text: str, most: int) -> str:
    """Return a text with an ellipsis for what is beyond so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
