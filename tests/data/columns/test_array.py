"""Image and series columns: round trips, and what is refused or clamped."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.data.columns.round_trips import catch_message, encode

from sundog.data.columns import ImageColumn, SeriesColumn


@given(
    st.sampled_from([(3, 4), (3, 4, 2), (3, 4, 1)]), st.sampled_from([2, 16, 256, 1000]), st.integers(0, 5), st.data()
)
def test_images_survive(shape: tuple[int, ...], levels: int, count: int, data: st.DataObject) -> None:
    column = ImageColumn(shape=shape, levels=levels)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    images = rng.integers(0, levels, (count, *shape))
    for given_as in (
        images,
        images.astype(float),
        images.reshape(count, math.prod(shape)),
        pa.array(images.tolist(), pa.list_(pa.list_(pa.int64() if len(shape) == 2 else pa.list_(pa.int64())))),
    ):
        codes = encode(column, given_as)
        assert codes.dtype == column.dtype
        assert (column.decode(codes) == images).all()


TONES = [(levels, tones) for levels in range(2, 65) for tones in range(2, levels + 1)]
TONES += [(256, tones) for tones in (2, 3, 4, 7, 8, 16, 100, 128, 129, 200, 254, 255, 256)] + [(2**16, 2**16 - 1)]


def test_every_tone_is_a_pixel_that_is_this_tone_again() -> None:
    for levels, tones in TONES:
        column = ImageColumn.model_construct(shape=(1, tones), levels=levels, tones=tones)
        codes = np.arange(tones).astype(column.dtype).reshape(1, 1, tones)
        pixels = column.decode(codes)
        assert (pixels[0, 0, 0], pixels[0, 0, -1]) == (0, levels - 1)
        np.testing.assert_array_equal(encode(column, pixels), codes, err_msg=f"{tones} tones of {levels} levels")


def test_images_refuse() -> None:
    column = ImageColumn(shape=(2, 2), levels=16)
    good = np.zeros((2, 2, 2))
    for bad in (16, -1, 0.5, np.nan, np.inf):
        wrong = good.copy()
        wrong[1, 0, 1] = bad
        assert f"row 2: pixel {float(bad)} is not a whole number in 0 … 15" in catch_message(column, wrong)
    assert "its records have shape [3, 3], the schema says [2, 2]" in catch_message(column, np.zeros((1, 3, 3)))
    assert "give it an array of numbers" in catch_message(column, np.array([["a", "b"]]))
    assert "row 2 has 3 numbers, the schema says 4" in catch_message(column, pa.array([[1, 2, 3, 4], [1, 2, 3]]))


@given(st.integers(1, 6), st.sampled_from([0.01, 0.5, 3.0]), st.integers(0, 2**32))
def test_series_survive(length: int, resolution: float, seed: int) -> None:
    column = SeriesColumn(length=length, min=-10, max=10, resolution=resolution, nullable=True)
    values = np.random.default_rng(seed).uniform(-10, 10, (7, length))
    values[0, 0] = np.nan
    codes = encode(column, values)
    kept = column.decode(codes)
    assert codes.shape == kept.shape == (7, length)
    assert np.nanmax(np.abs(kept - values)) <= resolution / 2 + 1e-9
    assert (np.isnan(kept) == np.isnan(values)).all()
    assert (encode(column, kept) == codes).all()
    assert (encode(column, pa.array(list(values))) == codes).all()


def test_series_refuse_and_clamp() -> None:
    column = SeriesColumn(length=2, min=0, max=1, resolution=0.1)
    assert "row 2 has a gap but the column is not nullable" in catch_message(column, np.array([[0, 1], [0, np.nan]]))
    assert "row 1: 2.0 is above max (1.0)" in catch_message(column, np.array([[0, 2.0]]))
    assert "row 1: inf is above max" in catch_message(column, np.array([[0, np.inf]]))
    assert "its records have shape [3]" in catch_message(column, np.zeros((1, 3)))
    clamping = column.model_copy(update={"out_of_bounds": "clamp"})
    assert encode(clamping, np.array([[-np.inf, 7]])).tolist() == [[0, 10]]
