"""A fitted model as a release file holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True)
class State:
    """A fitted model as plain arrays and JSON values."""

    tensors: dict[str, npt.NDArray[Any]]
    config: dict[str, Any]
