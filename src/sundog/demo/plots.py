"""Plots of marginals and of images, real beside synthetic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sundog.data.bins import Bins, make_bins
from sundog.data.columns import Column, Scale
from sundog.data.records import Records
from sundog.evaluation.total_variation import compute_marginal

_REAL, _SYNTHETIC = "#b8bec9", "#e07b39"


def draw_marginals(real: Records, synthetic: Records, names: Sequence[str], path: Path, epsilon: float) -> None:
    """Draw one panel per column: grey bars are the real data, orange ones the synthetic data."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.6), layout="constrained")
    panels = np.atleast_1d(figure.subplots(2, (len(names) + 1) // 2)).ravel()
    for panel, name in zip(panels, names, strict=False):
        _draw_marginal(panel, real, synthetic, name)
    panels[0].legend(frameon=False, fontsize=9)
    figure.suptitle(f"Real and synthetic, ε = {epsilon:g}", fontsize=12)
    figure.savefig(path, dpi=110)


def draw_images(rows: Sequence[tuple[Any, Any]], path: Path, title: str) -> None:
    """Draw rows of images: synthetic ones on the left, real ones on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.5 * len(rows) + 0.5), layout="constrained")
    sides: Any = figure.subfigures(1, 2, wspace=0.06)
    for number, (side, name) in enumerate(zip(sides, ("synthetic", "real"), strict=True)):
        side.suptitle(name if number else f"{title}: {name}", fontsize=11)
        panels = side.subplots(len(rows), max(len(row[number]) for row in rows), squeeze=False)
        for panel in panels.ravel():
            panel.axis("off")
        for line, row in zip(panels, rows, strict=True):
            for panel, image in zip(line, row[number], strict=False):
                panel.imshow(image, cmap="gray_r", vmin=0)
    figure.savefig(path, dpi=110)


def _draw_marginal(panel: Any, real: Records, synthetic: Records, name: str) -> None:
    column = real.schema.columns[name]
    bins = make_bins(column)
    p, q = compute_marginal(real, name), compute_marginal(synthetic, name)
    labels = _label_bins(column, bins)
    is_listed = column.scale in (Scale.NOMINAL, Scale.ORDINAL)
    order = np.argsort(-p) if is_listed else np.arange(len(p))
    at = np.arange(len(p))
    panel.bar(at - 0.2, p[order], 0.42, color=_REAL, label="real")
    panel.bar(at + 0.2, q[order], 0.42, color=_SYNTHETIC, label="synthetic")
    panel.set_title(name, fontsize=10, loc="left")
    every = max(1, len(at) // 16)
    turned = {"rotation": 60, "ha": "right"} if is_listed else {}
    panel.set_xticks(at[::every], [labels[i] for i in order[::every]], fontsize=7, **turned)
    panel.tick_params(axis="y", labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)


def _label_bins(column: Column, bins: Bins) -> list[str]:
    """Return the first value of each bin."""
    values = [str(value) for value in column.decode(bins.starts).to_pylist()]
    return values + ["missing"] * column.nullable
