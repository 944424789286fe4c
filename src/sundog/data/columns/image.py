"""Images: a grid of pixels, each one of a few levels."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from sundog.data.columns.array import ArrayColumn
from sundog.data.columns.forms import Form
from sundog.data.columns.grids import find_first, to_grid
from sundog.data.columns.ordered import BinCount, Whole
from sundog.errors import DataError

Pixels = Annotated[Whole, Field(ge=1)]


class ImageColumn(ArrayColumn):
    """An image of height × width or height × width × channels, with pixels 0 … levels - 1.

    With `tones`, only that many evenly spaced levels are kept: two tones turn any image into black and white.

    >>> digit = ImageColumn(shape=[2, 2], levels=16, tones=2)
    >>> codes = digit.encode(np.array([[[0, 15], [7, 8]]]), where="digits.npz: column 'image'")
    >>> codes.tolist(), digit.decode(codes).tolist()
    ([[[0, 1], [0, 1]]], [[[0, 15], [0, 15]]])
    """

    form: ClassVar[Literal[Form.IMAGE]] = Form.IMAGE
    default_bins: ClassVar[int] = 16

    type: Literal["image"] = "image"
    shape: tuple[Pixels, ...]  # no other type declares its shape
    levels: Annotated[Whole, Field(ge=2, le=2**16)] = 256
    tones: Annotated[Whole, Field(ge=2, le=2**16)] | None = None
    bins: BinCount | None = None

    @model_validator(mode="after")
    def _check_declaration(self) -> Self:
        if len(self.shape) not in (2, 3):
            raise ValueError(f"shape has {len(self.shape)} numbers; write [height, width] or [height, width, channels]")
        if self.nullable or self.learn:
            key = "nullable" if self.nullable else "learn"
            raise ValueError(f"an image column cannot be `{key}`; remove it")
        if self.tones is not None and self.tones > self.levels:
            raise ValueError(f"tones ({self.tones}) is above levels ({self.levels}); lower it")
        return self

    @property
    def lattice_size(self) -> int:
        """The number of values of one pixel."""
        return self.levels if self.tones is None else self.tones

    @property
    def text_problem(self) -> str | None:
        """Images cannot be written as text."""
        return "images do not fit a csv; write .npz or .parquet"

    def to_text(self, codes: Any) -> list[Any]:  # noqa: ARG002
        """Raise DataError: images cannot be written as text."""
        raise DataError(str(self.text_problem))

    def to_frame(self, name: str, codes: Any) -> dict[str, Any]:  # noqa: ARG002
        """Raise DataError: a cell cannot hold an image."""
        raise DataError(f"column {name!r}: images do not fit a DataFrame; sample(…, as_='arrays'), or write .npz")

    def relax(self) -> Self:
        """Return the column itself: all pixel values are declared."""
        return self

    def encode(self, values: Any, *, where: str) -> NDArray[Any]:
        """Return the codes of the pixels, one array of shape (records, height, width[, channels])."""
        pixels = to_grid(values, self.shape, where=where)
        wrong = ~((pixels >= 0) & (pixels < self.levels))
        if pixels.dtype.kind == "f":
            wrong |= pixels != np.floor(pixels)
        if wrong.any():
            row, value = find_first(pixels, wrong)
            fix = "scale the pixels to whole numbers, or declare `levels`"
            raise DataError(f"{where}: row {row}: pixel {value} is not a whole number in 0 … {self.levels - 1}; {fix}")
        if self.tones is not None:
            pixels = pixels.astype(np.int64) * self.tones // self.levels
        return pixels.astype(self.dtype)

    def decode(self, codes: Any) -> NDArray[Any]:
        """Return the pixels, in the smallest type that holds them."""
        pixels = self._check_codes(codes)
        if self.tones is not None:
            # Round up: with n tones, c(levels − 1)/(n − 1) lies between c·levels/n and (c + 1)·levels/n − 1, also after
            # rounding up, and every level in that interval is encoded as c again.
            pixels = -(pixels.astype(np.int64) * (1 - self.levels) // (self.tones - 1))
        return pixels.astype(np.min_scalar_type(self.levels - 1))
