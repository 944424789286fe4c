"""Plots of images: grids by class, synthetic images above their nearest real ones, a confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.writing.contact_sheet import Places, show_images
from sundog.evaluation.images.image_classifiers import Images
from sundog.evaluation.images.image_sample import ImageSample
from sundog.evaluation.section import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS, ACROSS = 8, 10  # of a grid without classes
MOST_CLASSES = 20  # rows of a grid with classes, and of a confusion matrix with figures


def plot_grids(synthetic: ImageSample, real: ImageSample, classes: Sequence[str]) -> Picture:
    """Plot synthetic images beside real ones, one row per class."""
    rows = classes[:MOST_CLASSES]
    panels = {"synthetic": _arrange_rows(synthetic, len(rows)), "real (test)": _arrange_rows(real, len(rows))}

    def draw() -> Figure:
        from matplotlib.figure import Figure

        count = len(rows) or ROWS
        figure = Figure(figsize=(9, 0.6 + 0.42 * count), layout="constrained")
        for axes, (title, cells) in zip(figure.subplots(1, 2), panels.items(), strict=True):
            _show_rows(axes, cells, rows)
            axes.set_title(title)
        return figure

    which = "Each row is a class, with images drawn at random." if classes else "Images drawn at random."
    left_out = f" The first {MOST_CLASSES} classes are shown." if len(classes) > MOST_CLASSES else ""
    return Picture("Synthetic and real images", f"{which}{left_out} Empty cells: no such image.", draw, wide=True)


def plot_nearest_pairs(synthetic: Images, nearest: Images, *, out_of: int, ratio: float) -> Picture:
    """Plot synthetic images above the nearest training images."""
    cells = [list(synthetic), list(nearest)]

    def draw() -> Figure:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 2.6), layout="constrained")
        axes = figure.subplots()
        _show_rows(axes, cells, ["synthetic", "nearest real"])
        return figure

    caption = f"Of {out_of} synthetic images, those nearest to a training image, and that image below."
    if np.isfinite(ratio):
        caption += (
            f" The median distance of synthetic images to the nearest is {ratio:.2f} times that of real test images: "
            "far below 1 they would be copies."
        )
    return Picture("Nearest real images", caption, draw, wide=True)


def plot_confusion(counts: NDArray[Any], classes: Sequence[str]) -> Picture:
    """Plot the confusion matrix of real test images, for the network trained on synthetic ones."""
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))

    def draw() -> Figure:
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.figure import Figure

        from sundog.evaluation.report.plot_style import ACCENT

        figure = Figure(figsize=(5, 4.6), layout="constrained")
        axes = figure.subplots()
        axes.imshow(shares, vmin=0, vmax=1, cmap=LinearSegmentedColormap.from_list("", [f"{ACCENT}00", ACCENT]))
        axes.set(xlabel="predicted", ylabel="true class")
        if len(classes) <= MOST_CLASSES:
            axes.set_xticks(range(len(classes)), classes, rotation=90 if max(map(len, classes)) > 3 else 0)
            axes.set_yticks(range(len(classes)), classes)
            for row, column in np.argwhere(shares >= 0.005):
                share = f"{100 * shares[row, column]:.0f}"
                axes.text(column, row, share, ha="center", va="center", fontsize=8)
        return figure

    caption = (
        "A convolutional network was trained on synthetic images and labels. Each row: the percentage of the real test "
        "images of a class that it predicts as each class. A dark diagonal is good."
    )
    return Picture("What a network learns from synthetic images", caption, draw)


def _arrange_rows(sample: ImageSample, classes: int) -> list[list[Images]]:
    if not classes:
        return [list(sample.pixels[row * ACROSS : (row + 1) * ACROSS]) for row in range(ROWS)]
    return [list(sample.pixels[sample.labels == label][:ACROSS]) for label in range(classes)]


def _show_rows(axes: Axes, cells: Sequence[Sequence[Images]], names: Sequence[str] = ()) -> None:
    """Show images in rows, with a name beside each."""
    where = [(row, column) for row, images in enumerate(cells) for column in range(len(images))]
    rows, columns = np.array(where).T
    places = Places(rows, columns, dict(enumerate(names)))
    show_images(axes, np.stack([image for images in cells for image in images]), places)
