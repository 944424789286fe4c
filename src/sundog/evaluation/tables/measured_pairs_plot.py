"""The triangle of all pairs of columns: how strongly they are associated, and with what noise they were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sundog.evaluation.section import Picture
from sundog.evaluation.tables.table_plots import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sundog.evaluation.tables.measured_pairs import MeasuredPairs

_SMALL_CELL, _LARGE_CELL = 0.27, 0.42  # inches
_SIDE = 3.8  # inches of the triangle, unless that makes its cells too small or too large
_WIDE = 20  # columns, from which on the figure takes the width of the page
_LEAST_DOT, _LARGEST_DOT = 4.5, 12.0  # the diameter in points
_LEAST_RANGE = 5.0  # of the noise, from the largest to the smallest dot: a small difference should look small
_STEPS = (0.25, 0.5, 1.0)  # of associations, in the key
_FAINT = 0.05  # the tone of a cell without an association


def plot_matrix(pairs: MeasuredPairs, drawn: Sequence[int]) -> Picture:
    """Return the figure of the pairs of some columns."""
    count = len(drawn)
    cell = min(_LARGE_CELL, max(_SMALL_CELL, _SIDE / max(1, count - 1)))

    def draw() -> Figure:
        from matplotlib.figure import Figure

        side = cell * (count - 1)
        figure = Figure(figsize=(side, side))  # labels are outside, and the page makes room for them
        axes = figure.add_axes((0, 0, 1, 1))
        labels = [shorten(pairs.names[place], 20) for place in drawn]
        axes.set_xlim(-0.5, count - 1.5)
        axes.set_ylim(count - 1.5, -0.5)
        axes.set_xticks(range(count - 1), labels[:-1], rotation=90)
        axes.set_yticks(range(count - 1), labels[1:])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        _draw_cells(axes, pairs, drawn)
        _draw_dots(axes, pairs, drawn)
        _draw_numbers(axes, pairs, drawn)
        _draw_key(axes, pairs, inside=side >= _SIDE - 0.1)
        return figure

    return Picture(
        "Associations in the real data, and measured pairs", _write_caption(pairs, count), draw, wide=count > _WIDE
    )


def format_noise(deviation: float) -> str:
    """Return a standard deviation for a reader.

    >>> format_noise(14.37), format_noise(1234.5), format_noise(0.123)
    ('14', '1,234', '0.12')
    """
    return f"{deviation:,.0f}" if deviation >= 10 else f"{deviation:.2g}"


def _write_caption(pairs: MeasuredPairs, count: int) -> str:
    said = ["Each square is a pair of columns: the stronger its tone, the stronger the association in the real data."]
    if pairs.noise:
        said.append("A dot is a pair that was measured: the larger, the less noise.")
    if any(each.in_part for each in pairs.noise.values()):
        clusters = "in some of the clusters, or " if pairs.clusters > 1 else ""
        said.append(f"A ring was measured only {clusters}as part of three columns.")
    if pairs.listed:
        said.append("Numbers are the largest associations that were not measured, as in the table.")
    if count < len(pairs.names):
        said.append(f"The {count} of {len(pairs.names):,} columns with the largest associations are drawn.")
    return " ".join(said)


def _place_pairs(drawn: Sequence[int]) -> dict[tuple[int, int], tuple[int, int]]:
    """Return where each pair is drawn: its place across and down."""
    return {(drawn[j], drawn[i]): (j, i - 1) for i in range(len(drawn)) for j in range(i)}


def _draw_cells(axes: Axes, pairs: MeasuredPairs, drawn: Sequence[int]) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    from sundog.evaluation.report.plot_style import REAL

    places = _place_pairs(drawn)
    squares = [Rectangle((x - 0.46, y - 0.46), 0.92, 0.92) for x, y in places.values()]
    colours = [_shade(REAL, pairs.real[pair]) for pair in places]
    axes.add_collection(PatchCollection(squares, facecolors=colours, linewidths=0))


def _shade(colour: str, association: float) -> tuple[float, float, float, float]:
    """Return a tone of a colour, which suits light and dark pages."""
    from matplotlib.colors import to_rgba

    return to_rgba(colour, _FAINT + (1 - _FAINT) * min(1.0, abs(association)))


def _draw_dots(axes: Axes, pairs: MeasuredPairs, drawn: Sequence[int]) -> None:
    places = _place_pairs(drawn)
    for in_part in (False, True):
        shown = {pair: each for pair, each in pairs.noise.items() if each.in_part == in_part and pair in places}
        if shown:
            x, y = zip(*(places[pair] for pair in shown), strict=True)
            areas = [_measure_dot(each.deviation, pairs) ** 2 for each in shown.values()]
            axes.scatter(x, y, s=areas, **_style_dot(in_part=in_part))


def _style_dot(*, in_part: bool) -> dict[str, Any]:
    ring = {"facecolors": "none", "edgecolors": "black", "linewidths": 1.2}
    return ring if in_part else {"color": "black", "linewidths": 0}


def _measure_dot(deviation: float, pairs: MeasuredPairs) -> float:
    """Return the diameter of a dot in points, by the logarithm of the noise."""
    low, high = pairs.noise_range
    share = math.log(deviation / low) / math.log(max(high / low, _LEAST_RANGE))
    return _LARGEST_DOT - (_LARGEST_DOT - _LEAST_DOT) * share


def _draw_numbers(axes: Axes, pairs: MeasuredPairs, drawn: Sequence[int]) -> None:
    from matplotlib.patches import Rectangle

    from sundog.evaluation.report.plot_style import SYNTHETIC

    places = _place_pairs(drawn)
    for number, pair in enumerate(pairs.listed, start=1):
        x, y = places[pair]
        axes.add_patch(Rectangle((x - 0.44, y - 0.44), 0.88, 0.88, fill=False, edgecolor=SYNTHETIC, linewidth=1.8))
        axes.text(x, y, str(number), ha="center", va="center_baseline", fontsize=8, fontweight="bold")


def _draw_key(axes: Axes, pairs: MeasuredPairs, *, inside: bool) -> None:
    """Explain tones and dots in the empty half of the square, or beside it where it is small."""
    from matplotlib.lines import Line2D

    from sundog.evaluation.report.plot_style import REAL, SYNTHETIC

    def make(label: str, **style: Any) -> Line2D:
        return Line2D([], [], linestyle="none", label=label, **style)

    square = {"marker": "s", "markersize": 11.0}
    handles = [
        make(f"association {step:g}", markerfacecolor=_shade(REAL, step), markeredgewidth=0, **square)
        for step in _STEPS
    ]
    for deviation in _choose_steps(pairs):
        size = _measure_dot(deviation, pairs)
        label = f"measured, ±{format_noise(deviation)} records"
        handles.append(make(label, marker="o", markersize=size, color="black", markeredgewidth=0))
    if any(each.in_part for each in pairs.noise.values()):
        style = {"markerfacecolor": "none", "markeredgecolor": "black", "markeredgewidth": 1.2}
        handles.append(make("measured in part", marker="o", markersize=8.0, **style))
    if pairs.listed:
        style = {"markerfacecolor": "none", "markeredgecolor": SYNTHETIC, "markeredgewidth": 1.8}
        handles.append(make("largest not measured", **square, **style))
    place: dict[str, Any] = {"loc": "upper right", "bbox_to_anchor": (1.0, 1.0)}
    if not inside:
        place = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
    axes.legend(handles=handles, borderaxespad=0.0, handletextpad=0.6, labelspacing=0.55, **place)


def _choose_steps(pairs: MeasuredPairs) -> list[float]:
    """Return the least and the most noise, and one between them if they are far apart."""
    if not pairs.noise:
        return []
    low, high = pairs.noise_range
    if high > 3 * low:
        return [low, math.sqrt(low * high), high]
    return [low, high] if high > 1.1 * low else [low]
