"""Performance options. None of them is a privacy parameter.

With less precise matrix products a clipped gradient could exceed its bound by rounding. `rounding` bounds the error,
and the engine increases norms by it (docs/training.md).
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
    """Performance options of a step.

    Args:
        precision: of the factors in matrix products; sums are always float32. Hardware without faster products of this
            precision uses float32.
        compiled: compile the step, which takes half a minute and about 100 MB. On a GPU it is then replayed as a CUDA
            graph and many times faster; on a processor it needs a C++ compiler and saves up to a third of the time.
            None: compile on a GPU, and on a processor if the first steps show that it saves more time than it takes
            and there are no convolutions.
    """

    precision: Precision = "float32"
    compiled: bool | None = None

    def bound_rounding(self, dtype: torch.dtype) -> float:
        """Return a bound on the relative error of a product of two vectors.

        Factors have 24, 11 or 8 bits; the bound is several times the unit roundoff, for two factors and a sum.
        """
        return _ROUNDING[self.precision] if dtype == torch.float32 else 4 * torch.finfo(dtype).eps

    @contextlib.contextmanager
    def use_precision(self) -> Iterator[None]:
        """Use this precision for matrix products inside the block."""
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision(_TORCH_NAMES[self.precision])
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)


EXACT = Speed()
