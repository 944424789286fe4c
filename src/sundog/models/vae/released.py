"""The decoder of a variational autoencoder as it is in a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.model_state import State
from sundog.models.neural.layout import Layout
from sundog.models.released_model import MOST_RECORDS, check_finite, check_shapes, is_size, is_whole
from sundog.models.unpaid import LATENT, unpaid, unpaid_means, unpaid_training
from sundog.privacy.events import Charge

MOST_LAYERS = 4
MOST_MEASURED = 64  # latent variables: the second moments of more are too many to measure well


class ReleasedVae:
    """The decoder: the encoder has done its work."""

    counts_records: ClassVar[bool] = True
    assumptions: Sequence[str] = ()

    def __init__(self, schema: Schema, state: State) -> None:
        config = state.config
        if not _is_config(config, schema):
            raise ReleaseError("the configuration is not that of a `vae` model")
        layout = Layout(schema)
        told = layout.count(config["condition"])
        shapes: dict[str, tuple[int, ...]] = {"prior": (told,)} if told else {}
        for place, (size, after) in enumerate(pairwise([config["latent"] + told, *config["hidden"], layout.width])):
            shapes |= {f"{2 * place}.weight": (after, size), f"{2 * place}.bias": (after,)}
        check_shapes("a `vae`", state, shapes)
        check_finite("`vae`", state.tensors)
        self.latent: int = config["latent"]
        self.records: int = config["records"]

    def unexplained(self, charges: Sequence[Charge]) -> list[str]:
        """The means, the moments and the weights, unless they were paid for."""
        return unpaid_vae(charges, latent=self.latent)


def unpaid_vae(charges: Sequence[Charge], *, latent: int) -> list[str]:
    """The means, the moments of latent variables where these are few, and the weights, unless they were paid for."""
    missing = unpaid(charges, {LATENT: "gaussian"}) if latent <= MOST_MEASURED else []
    return [*unpaid_means(charges), *(f"moments of {what}" for what in missing), *unpaid_training(charges)]


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
