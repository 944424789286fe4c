"""Images and their classes, taken from records as input of networks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.data.writing.contact_sheet import to_pixels
from sundog.errors import DataError
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.images.image_classifiers import Images, Labels

FEWEST = 20  # images of each kind
NUMBERS = 2**26  # the most pixels of a sample, four bytes each: 85,000 images of MNIST, 5,000 of 64 × 64 colours


@dataclass(frozen=True)
class ImageSample:
    """Some images.

    Args:
        pixels: (count, channels, height, width), from 0 to 1.
        labels: the number of the class of each; all are 0 where there are no classes.
    """

    pixels: Images
    labels: Labels

    def __len__(self) -> int:
        return len(self.pixels)


@dataclass(frozen=True)
class ImageView:
    """Where images and their classes are in records.

    Args:
        name: the image column.
        target: the column of the classes, or None.
        classes: their names.
    """

    name: str
    target: str | None
    classes: tuple[str, ...]

    def sample(self, records: Records, most: int, rng: np.random.Generator) -> ImageSample:
        """Return at most `most` images that have a class, in random order; fewer if they are large."""
        column = records.schema.columns[self.name]
        assert column.form is Form.IMAGE  # noqa: S101
        rows = rng.permutation(len(records))
        if self.target is not None:
            rows = rows[records.codes[self.target][rows] < len(self.classes)]  # the code of null is the last
        records = records.take(rows[: min(most, max(1, NUMBERS // math.prod(column.shape)))])
        labels = np.zeros(len(records)) if self.target is None else records.codes[self.target]
        return ImageSample(to_pixels(column, records.codes[self.name]), labels.astype(np.int64))


def find_images(comparison: Comparison, name: str) -> ImageView:
    """Return where the images of a column are, and their classes if the target has classes."""
    schema = comparison.real.schema
    column = schema.columns.get(name)
    if column is None or column.form is not Form.IMAGE:
        raise DataError(f"column {name!r} holds no images; name an image column of the schema")
    target = schema.scalars.get(comparison.target or "")
    if target is None or not target.is_categorical or target.lattice_size < 2:
        return ImageView(name, None, ())
    values = target.decode(np.arange(target.lattice_size)).to_pylist()
    return ImageView(name, comparison.target, tuple(str(value) for value in values))
