"""A restricted Boltzmann machine as it is in a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.neural.layout import Layout
from sundog.models.protocol import State
from sundog.models.released import (
    MOST_RECORDS,
    ReleasedModel,
    check_finite,
    check_shapes,
    find_unpaid_means,
    find_unpaid_training,
    is_size,
    is_whole,
)
from sundog.privacy.events import Charge

LEAST_DEVIATION = 1e-3
KEPT = 4096  # particles, from which chains begin


class ReleasedRbm(ReleasedModel):
    """The weights, the centre, and the particles where chains start."""

    records: int

    def __init__(self, schema: Schema, state: State) -> None:
        config = state.config
        if set(config) != set(_CONFIG) or not all(_CONFIG[name](config[name]) for name in _CONFIG):
            raise ReleaseError("the configuration is not that of an `rbm` model")
        width, hidden = Layout(schema).width, config["hidden"]
        shapes = {
            "hidden.weight": (hidden, width),
            "hidden.bias": (hidden,),
            "visible.weight": (1, width),
            "centre": (1, width),
            "particles": (config["chains"], width),
        }
        check_shapes("an `rbm`", state, shapes)
        weights = {name: tensor for name, tensor in state.tensors.items() if name != "particles"}
        check_finite("`rbm`", weights)
        centre = weights["centre"]
        if state.tensors["particles"].dtype != np.uint8:
            raise ReleaseError("the weights of the `rbm` model are not all finite numbers")
        if not ((centre >= 0) & (centre <= 1)).all():
            raise ReleaseError("the centre of the `rbm` model has values outside of 0 to 1")
        self.records = config["records"]

    def find_unpaid(self, charges: Sequence[Charge]) -> list[str]:
        """Name the means and the weights, unless charges paid for them."""
        return find_unpaid_means(charges) + find_unpaid_training(charges)


def is_deviation(value: object) -> bool:
    """Return whether Gaussian units can have this standard deviation."""
    return type(value) in (int, float) and LEAST_DEVIATION <= value <= 1  # type: ignore[operator]


_CONFIG: Mapping[str, Callable[[Any], bool]] = {
    "hidden": is_size,
    "chains": lambda value: is_whole(value, KEPT),
    "deviation": lambda value: value is None or is_deviation(value),
    "records": lambda value: is_whole(value, MOST_RECORDS),
}
