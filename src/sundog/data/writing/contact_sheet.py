"""A picture of records: images and series side by side, grouped by a label if there is one."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sundog.data.columns import Form, ImageColumn
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.untrusted_text import replace_unprintable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENOUGH, MOST = 100, 1000  # records in a picture
_LABELS = 20  # the most values of a label
_DPI = 150
_CELL = 0.45  # width of a cell in inches
_LARGEST = 30.0  # largest width or height of the sheet in inches
_FINEST = 128  # most pixels along a cell
_LONGEST = 40  # most characters of a label

Floats = NDArray[np.float32]  # (count, channels, height, width), from 0 to 1
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """The place of each record in a grid.

    Args:
        rows: the row of each record.
        columns: the column of each record.
        names: the labels of rows.
    """

    rows: Whole
    columns: Whole
    names: dict[int, str]

    @property
    def size(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        rows = max(int(self.rows.max(initial=0)), *self.names, 0)
        return rows + 1, int(self.columns.max(initial=0)) + 1


def list_drawable(schema: Schema) -> list[str]:
    """Return the columns that a picture can show: images and series."""
    return [name for name, column in schema.columns.items() if column.form in (Form.IMAGE, Form.SERIES)]


def refuse_many(count: int, name: str) -> None:
    """Raise DataError, naming the file, if there are too many records for one picture."""
    if count > MOST:
        raise DataError(f"{name}: a picture shows at most {MOST:,} records; ask for fewer, or end the name in .npz")


def refuse_picture(schema: Schema, name: str) -> None:
    """Raise DataError, naming the file, if the schema has no column to draw."""
    if not list_drawable(schema):
        raise DataError(f"{name}: a picture shows images or series, and the schema has neither; end the name in .csv")


def draw(records: Records, file: BinaryIO) -> None:
    """Write a picture of all records, with a panel for each column of images or series."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    names, places = list_drawable(records.schema), arrange(records)
    rows, across = places.size
    cell = min(_CELL, _LARGEST / max(rows * len(names), across))
    size = (max(2.0, cell * across + 0.8), max(1.0, (cell * rows + 0.4) * len(names)))
    style: dict[Any, Any] = {"text.parse_math": False, "axes.titlesize": 9, "ytick.labelsize": 8}  # `$a_$` is a name
    with rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # missing glyphs, labels that are too long
        figure = Figure(figsize=size, layout="constrained")
        for axes, name in zip(figure.subplots(len(names), squeeze=False).flat, names, strict=True):
            column = records.schema.columns[name]
            if column.form is Form.IMAGE:
                show_images(axes, to_pixels(column, records.codes[name], finest=_FINEST), places)
                axes.set_title(_shorten(name))
            else:
                _show_series(axes, column.decode(records.codes[name]), places, name)
        figure.savefig(file, format="png", dpi=_DPI, metadata={"Software": None})


def arrange(records: Records) -> Places:
    """Arrange the records in a square, or in one or more rows for each value of the label."""
    label = _find_label(records.schema)
    codes = np.zeros(len(records), np.int64) if label is None else np.asarray(records.codes[label], np.int64)
    found, counts = np.unique(codes, return_counts=True)
    side = math.ceil(math.sqrt(len(records)))
    across = max(1, side, min(int(counts.max(initial=0)), 2 * side) if len(found) > 1 else 0)
    rows, columns, names, top = np.zeros_like(codes), np.zeros_like(codes), {}, 0
    for code, count in zip(found, counts, strict=True):
        rows[codes == code], columns[codes == code] = top + np.arange(count) // across, np.arange(count) % across
        if label is not None:
            names[top] = _spell_code(records.schema.columns[label], int(code))
        top += math.ceil(count / across)
    return Places(rows, columns, names)


def _find_label(schema: Schema) -> str | None:
    """Return the name of the only scalar column, if it has few categories."""
    scalars = schema.scalars
    if len(scalars) != 1:
        return None
    ((name, column),) = scalars.items()
    return name if column.is_categorical and column.lattice_size <= _LABELS else None


def _spell_code(column: Any, code: int) -> str:
    return "missing" if code == column.lattice_size else _shorten(column.decode(np.array([code])).to_pylist()[0])


def _shorten(value: Any) -> str:
    text = replace_unprintable(str(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def to_pixels(column: ImageColumn, codes: Any, *, finest: int | None = None) -> Floats:
    """Return images with values from 0 to 1, at full size, or for showing with less than 2·`finest` pixels a side."""
    height, width, channels = (*column.shape, 1)[:3]
    every = 1 if finest is None else max(1, max(height, width) // finest)
    some = np.asarray(codes).reshape(-1, height, width, channels)[:, ::every, ::every]
    levels = some.astype(np.float32) / np.float32(max(1, column.lattice_size - 1))
    return np.ascontiguousarray(levels.transpose(0, 3, 1, 2))


def show_images(axes: Axes, images: Floats, places: Places) -> None:
    """Show all images as one, with a transparent pixel between them."""
    _, _, height, width = images.shape
    (rows, across), (tall, wide) = places.size, (height + 1, width + 1)
    canvas = np.zeros((rows * tall, across * wide, 4), np.uint8)
    for image, row, column in zip(images, places.rows, places.columns, strict=True):
        y, x = row * tall, column * wide
        canvas[y : y + height, x : x + width] = _colour(image)
    axes.imshow(canvas, extent=(0, across, rows, 0), interpolation="nearest", aspect=tall / wide)
    _strip_axes(axes, places)


def _colour(image: Floats) -> NDArray[Any]:
    """Return red, green, blue and opacity; images without three channels become grey."""
    colours = image if len(image) == 3 else np.repeat(image.mean(axis=0, keepdims=True), 3, axis=0)
    opaque = np.concatenate([colours, np.ones_like(colours[:1])])
    bytes_: NDArray[Any] = np.rint(255 * opaque.transpose(1, 2, 0)).astype(np.uint8)
    return bytes_


def _show_series(axes: Axes, values: NDArray[Any], places: Places, name: str) -> None:
    """Draw all series on one scale, each above a line at the lowest value."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    heights = (values - low) / (high - low or 1.0)
    rows, across = places.size
    length = values.shape[1]
    x = places.columns[:, None] + np.linspace(0.05, 0.95, length) if length > 1 else places.columns[:, None] + 0.5
    y = places.rows[:, None] + 0.9 - 0.8 * heights
    gap = np.full((len(values), 1), np.nan)
    axes.hlines(places.rows + 0.9, places.columns + 0.05, places.columns + 0.95, colors="0.8", linewidth=0.4)
    axes.plot(np.hstack([x, gap]).ravel(), np.hstack([y, gap]).ravel(), color="0.15", linewidth=0.7, marker=",")
    axes.set(xlim=(0, across), ylim=(rows, 0), aspect="equal")
    axes.set_title(f"{_shorten(name)}, from {low:g} to {high:g}")
    _strip_axes(axes, places)


def _strip_axes(axes: Axes, places: Places) -> None:
    axes.set_xticks([])
    axes.set_yticks([row + 0.5 for row in places.names], list(places.names.values()))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
