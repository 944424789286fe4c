"""What readers of releases share: the protocol's base class, checks of arrays, and which charges pay for what.

A reader checks by their shapes that arrays and configuration are those of its model, before anything is built from
them. It builds no network and does not import torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sundog.errors import ReleaseError
from sundog.models.protocol import State
from sundog.privacy.events import Charge, normalize_purpose

LARGEST_SIZE = 2**16  # of a layer
MOST_RECORDS = 10**12 - 1

# The purposes of charges.
NORM, MEANS = "length of records", "means of features"
TRAINING = "training"
CLASSIFIER = "naming"  # what certificates call the training of the label classifier
LATENT = "latent variables"
PEOPLE = "number of people"
WIDTH, MOMENTS, CENTRES, COUNTS = (f"clustering: {what}" for what in ("kernel width", "space", "centres", "counts"))


@dataclass(frozen=True)
class MeasuredMarginal:
    """A marginal that was measured by a charge that does not name its columns.

    Args:
        columns: the names of its columns.
        deviation: the standard deviation of the noise in each cell, in records, of all its measurements together.
        cluster: the component of a mixture that it belongs to.
        is_fine: whether its cells are smaller than those of other marginals.
    """

    columns: tuple[str, ...]
    deviation: float
    cluster: int | None = None
    is_fine: bool = False


class ReleasedModel(ABC):
    """A model in a release, as far as it must be known to check the release and to ask for records.

    A reader is called with the schema and the `State` of the release, and raises ReleaseError if that is not a state of
    its model.
    """

    counts_records: ClassVar[bool] = True  # whether the plan needed the number of records
    records: int | None  # about how many records the model was fitted on, declared or paid for
    assumptions: Sequence[str] = ()  # what was taken to be public besides the schema; the certificate says so
    choices: Mapping[str, int] = {}  # what a condition may name besides columns, and how many values it has

    @abstractmethod
    def find_unpaid(self, charges: Sequence[Charge]) -> list[str]:
        """Name the parts that the model learned from private data and that no charge paid for."""

    def list_measured(self, charges: Sequence[Charge]) -> list[MeasuredMarginal]:  # noqa: ARG002  none by default
        """Return the marginals that were measured by charges for many of them; the certificate lists them."""
        return []


# --- arrays and configuration ---


def is_whole(value: object, most: int) -> bool:
    """Return whether it is a whole number from 1 to `most`."""
    return type(value) is int and 0 < value <= most


def is_size(value: object) -> bool:
    """Return whether a layer can have this size."""
    return is_whole(value, LARGEST_SIZE)


def check_shapes(model: str, state: State, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ReleaseError unless the arrays have these names and shapes."""
    if {name: tensor.shape for name, tensor in state.tensors.items()} != shapes:
        raise ReleaseError(f"the weights are not those of {model} model of this schema")


def check_finite(model: str, tensors: Mapping[str, Any]) -> None:
    """Raise ReleaseError unless the arrays are finite float32 numbers."""
    if not all(tensor.dtype == np.float32 and np.isfinite(tensor).all() for tensor in tensors.values()):
        raise ReleaseError(f"the weights of the {model} model are not all finite numbers")


# --- charges ---


def find_missing_charges(charges: Sequence[Charge], due: dict[str, str]) -> list[str]:
    """Return the purposes that have no charge of their kind of event.

    >>> find_missing_charges([], {MEANS: "gaussian"})
    ['means of features']
    """
    paid = {(charge.purpose, charge.event.kind) for charge in charges}
    return [purpose for purpose, kind in due.items() if (purpose, kind) not in paid]


@dataclass(frozen=True)
class DueCharge:
    """A charge for noisy counts that a release must have: what it pays for, its purpose and its count."""

    part: str
    purpose: str
    count: int


def find_unpaid_counts(charges: Sequence[Charge], due: Sequence[DueCharge]) -> list[str]:
    """Return what noisy counts were learned without a charge of their purpose and count.

    >>> find_unpaid_counts([], [DueCharge("marginal of 'age'", "marginal of age", 1)])
    ["marginal of 'age'"]
    """
    measured = [charge for charge in charges if charge.event.kind == "discrete_gaussian"]
    paid = Counter((charge.purpose, charge.count) for charge in measured)
    missing = []
    for each in due:
        key = normalize_purpose(each.purpose), each.count
        paid[key] -= 1
        if paid[key] < 0:
            missing.append(each.part)
    return missing


def find_unpaid_means(charges: Sequence[Charge]) -> list[str]:
    """Name the means that a network starts from, and the norm of records, if no charge paid for them."""
    return find_missing_charges(charges, {NORM: "pure", MEANS: "gaussian"})


def find_unpaid_training(charges: Sequence[Charge]) -> list[str]:
    """Name the weights, if no charge paid for them."""
    return ["training of the weights"] if find_missing_charges(charges, {TRAINING: "sampled_gaussian"}) else []
