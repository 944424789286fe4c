"""Patches by a view are those of `unfold`."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from sundog.training.per_example.convolution import Window, extract_by_view, extract_patches

_PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))


@given(
    kernel=_PAIR,
    stride=_PAIR,
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    dilation=_PAIR,
    batch=st.integers(0, 3),
    channels=st.integers(1, 3),
)
def test_both_ways_are_equal(
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    batch: int,
    channels: int,
) -> None:
    images = torch.randn(batch, channels, 8, 9)
    window = Window(kernel, stride, padding, dilation)
    wanted = functional.unfold(images, **window._asdict()).mT if batch else torch.zeros(0, 1, 1)
    found = extract_by_view(images, window)
    if batch:
        assert torch.equal(found, wanted)
        assert torch.equal(extract_patches(images, window), wanted)
    else:
        assert len(found) == 0
