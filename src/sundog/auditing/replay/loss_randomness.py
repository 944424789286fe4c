"""Random numbers of private losses that do not depend on who else is in the batch.

A loss draws from torch's generator for a whole batch at once, so one more record in the batch changes the numbers of
the others. Nobody knows these numbers, and each record may as well have its own. Only then can two fits be compared.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from sundog.privacy.transcript import Stream, Transcript


class LossRandomness(TorchFunctionMode):
    """Inside it, `rand` and `randn` of a private loss return numbers by their place in the batch.

    A slice of the first dimension has a stream of its own, and of this its first numbers. So a batch that is longer,
    whether in its first dimension or (in a stack of models) its second, begins with the same numbers.

    Args:
        transcript: says whether a private loss is being computed, and in which step.
    """

    def __init__(self, transcript: Transcript) -> None:
        super().__init__()
        self._transcript = transcript
        self._step: Stream | None = None
        self._calls = 0

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Replace random numbers of private losses; call everything else."""
        options = kwargs or {}
        loss = self._transcript.loss
        if loss is None or function not in _DRAWN or options.get("generator") is not None:
            return function(*args, **options)
        if loss != self._step:
            self._step, self._calls = loss, 0
        self._calls += 1
        with torch._C.DisableTorchFunction():
            wanted = function(*args, **options)
            return _fill(wanted, (*loss, self._calls), is_normal=_DRAWN[function])


_DRAWN = {torch.rand: False, torch.rand_like: False, torch.randn: True, torch.randn_like: True}


def _fill(wanted: torch.Tensor, key: Stream, *, is_normal: bool) -> torch.Tensor:
    """Return a tensor like the one that is wanted, filled slice by slice."""
    if wanted.dim() == 0:
        return wanted
    size = math.prod(wanted.shape[1:])
    rows = []
    for place in range(len(wanted)):
        digest = hashlib.sha256(repr((key, place)).encode()).digest()
        generator = np.random.Generator(np.random.SFC64(int.from_bytes(digest[:16], "little")))
        rows.append(generator.standard_normal(size) if is_normal else generator.random(size))
    values = np.array(rows, np.float32).reshape(wanted.shape)
    if not is_normal:
        values = np.minimum(values, np.float32(1 - 2.0**-24))  # rounding may reach 1
    return torch.from_numpy(values).to(wanted)
