"""The patches of an image that the filters of a convolution see, written down for each example."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional


def patches(
    images: Tensor,
    *,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """A row for each position: (B, channels, height, width) to (B, positions, channels · kernel).

    >>> import torch
    >>> image = torch.arange(6.0).view(1, 1, 2, 3)
    >>> patches(image, kernel_size=(2, 2), stride=(1, 1), padding=(0, 0), dilation=(1, 1)).tolist()
    [[[0.0, 1.0, 3.0, 4.0], [1.0, 2.0, 4.0, 5.0]]]
    """
    if not images.is_cuda:
        return functional.unfold(images, *(tuple(pair) for pair in (kernel_size, dilation, padding, stride))).mT
    return strided(images, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


def strided(
    images: Tensor,
    *,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """The same by one copy of a view: on a GPU `unfold` launches a kernel for every example."""
    view = functional.pad(images, (padding[1], padding[1], padding[0], padding[0]))
    for axis in (0, 1):
        reach = (kernel_size[axis] - 1) * dilation[axis] + 1
        view = view.unfold(2 + axis, reach, stride[axis])[..., :: dilation[axis]]
    batch, channels, height, width, *kernel = view.shape
    return view.permute(0, 2, 3, 1, 4, 5).reshape(batch, height * width, channels * kernel[0] * kernel[1])
