"""The decoder of a variational autoencoder as it is in a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.neural.layout import Layout
from sundog.models.protocol import State
from sundog.models.released import (
    LATENT,
    MOST_RECORDS,
    ReleasedModel,
    check_finite,
    check_shapes,
    find_missing_charges,
    find_unpaid_means,
    find_unpaid_training,
    is_size,
    is_whole,
)
from sundog.privacy.events import Charge

MOST_LAYERS = 4
MOST_MEASURED = 64  # latent variables: the second moments of more are too many to measure well


class ReleasedVae(ReleasedModel):
    """The decoder; the encoder is not released."""

    records: int

    def __init__(self, schema: Schema, state: State) -> None:
        config = state.config
        if not _is_config(config, schema):
            raise ReleaseError("the configuration is not that of a `vae` model")
        layout = Layout(schema)
        values = layout.count(config["condition"])
        shapes: dict[str, tuple[int, ...]] = {"prior": (values,)} if values else {}
        for place, (size, after) in enumerate(pairwise([config["latent"] + values, *config["hidden"], layout.width])):
            shapes |= {f"{2 * place}.weight": (after, size), f"{2 * place}.bias": (after,)}
        check_shapes("a `vae`", state, shapes)
        check_finite("`vae`", state.tensors)
        self.latent: int = config["latent"]
        self.records = config["records"]

    def find_unpaid(self, charges: Sequence[Charge]) -> list[str]:
        """Name the means, the moments of latent variables and the weights, unless charges paid for them."""
        missing = find_missing_charges(charges, {LATENT: "gaussian"}) if self.latent <= MOST_MEASURED else []
        return [
            *find_unpaid_means(charges),
            *(f"moments of {what}" for what in missing),
            *find_unpaid_training(charges),
        ]


def _is_config(config: Mapping[str, Any], schema: Schema) -> bool:
    if set(config) != {"hidden", "latent", "condition", "records"}:
        return False
    hidden, condition = config["hidden"], config["condition"]
    return (
        isinstance(hidden, list)
        and 1 <= len(hidden) <= MOST_LAYERS
        and all(is_size(size) for size in [*hidden, config["latent"]])
        and is_whole(config["records"], MOST_RECORDS)
        and (condition is None or (type(condition) is str and condition in schema.scalars))
    )
