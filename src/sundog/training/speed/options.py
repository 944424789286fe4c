"""What may be traded for speed. Nothing here is a privacy parameter, and no privacy parameter is here.

Fewer digits in a matrix product would make a clipped gradient a little longer than its norm says. `rounding` bounds by
how much, and the engine takes norms that much longer (docs/training.md).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch

Precision = Literal["float32", "tf32", "bf16"]

_TORCH_NAMES: dict[Precision, str] = {"float32": "highest", "tf32": "high", "bf16": "medium"}
_ROUNDING: dict[Precision, float] = {"float32": 2**-21, "tf32": 2**-9, "bf16": 2**-6}


@dataclass(frozen=True)
class Speed:
    """How training may be made faster.

    Args:
        precision: of the factors in matrix products; sums are always float32. Hardware that has no faster product for
            it uses float32.
        compiled: compile the step: about 100 MB, and half a minute. On a GPU it is then replayed as one CUDA graph
            and many times as fast; on a processor it needs a C++ compiler and saves up to a third.
            None: on a GPU; on a processor where the first steps show that this saves more time than it takes, and
            there are no convolutions.
    """

    precision: Precision = "float32"
    compiled: bool | None = None

    def rounding(self, dtype: torch.dtype) -> float:
        """By how much a product of two vectors may be too long, at most, as a part of its length.

        Each factor is rounded to 24, 11 or 8 bits; several times that, for two factors and what a sum adds.
        """
        return _ROUNDING[self.precision] if dtype == torch.float32 else 4 * torch.finfo(dtype).eps

    @contextlib.contextmanager
    def products(self) -> Iterator[None]:
        """Matrix products inside the block have this precision."""
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(_TORCH_NAMES[self.precision])
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


EXACT = Speed()
