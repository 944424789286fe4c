"""What all readers have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from sundog.errors import ReleaseError
from sundog.models.model_state import State
from sundog.privacy.events import Charge

LARGEST_SIZE = 2**16  # of a layer
MOST_RECORDS = 10**12 - 1


class ReleasedModel(Protocol):
    """A model in a release, as far as it must be known to check the release."""

    counts_records: ClassVar[bool]  # whether its plan needed the number of records

    @property
    def records(self) -> int | None:
        """About how many records it was fitted on, as far as the budget told."""

    @property
    def assumptions(self) -> Sequence[str]:
        """What it took to be public besides the schema."""

    def unexplained(self, charges: Sequence[Charge]) -> list[str]:
        """What the model learned from private data and none of the charges paid for."""


def is_whole(value: object, most: int) -> bool:
    """Whether it is a whole number from 1 to `most`."""
    return type(value) is int and 0 < value <= most


def is_size(value: object) -> bool:
    """Whether a layer can have this size."""
    return is_whole(value, LARGEST_SIZE)


def check_shapes(model: str, state: State, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuses arrays of other names or shapes."""
    if {name: tensor.shape for name, tensor in state.tensors.items()} != shapes:
        raise ReleaseError(f"the weights are not those of {model} model of this schema")


def check_finite(model: str, tensors: Mapping[str, Any]) -> None:
    """Refuses arrays that are not finite float32 numbers."""
    if not all(tensor.dtype == np.float32 and np.isfinite(tensor).all() for tensor in tensors.values()):
        raise ReleaseError(f"the weights of the {model} model are not all finite numbers")
