"""A mixture as it is in a release: the stacked arrays of all components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.data.schema import Schema
from sundog.errors import ReleaseError
from sundog.models.protocol import State
from sundog.models.registry import MIXTURE, MODELS, read_model
from sundog.models.released import (
    CENTRES,
    COUNTS,
    MOMENTS,
    MOST_RECORDS,
    WIDTH,
    ReleasedModel,
    find_missing_charges,
    is_whole,
)
from sundog.privacy.events import Charge

PUBLIC_RECORDS = "the records that were given as public, with which the clustering began"
MOST_CLUSTERS = 500
CLUSTER = "cluster"  # what a condition calls the number of a component


class ReleasedMixture(ReleasedModel):
    """Components of one kind, and their weights."""

    records: int

    def __init__(self, schema: Schema, state: State) -> None:
        self.config = state.config
        private = make_all_private(schema)
        self.components: list[ReleasedModel] = [
            read_model(state.config["of"], private, part) for part in split_components(state)
        ]
        self.records = state.config["records"]
        self.assumptions = [PUBLIC_RECORDS] if state.config["public"] else []
        self.choices = {CLUSTER: len(self.components)}

    def find_unpaid(self, charges: Sequence[Charge]) -> list[str]:
        """Name the clusters and the parts of components, unless charges paid for them."""
        clusters = find_unpaid_clustering(charges, public=self.config["public"])
        return clusters + self.components[0].find_unpaid(charges)


def find_unpaid_clustering(charges: Sequence[Charge], *, public: bool) -> list[str]:
    """Name what a clustering learned from private records and no charge paid for."""
    of_records = {} if public else {WIDTH: "pure", MOMENTS: "gaussian"}
    return find_missing_charges(charges, {CENTRES: "gaussian", COUNTS: "gaussian", **of_records})


def split_components(state: State) -> list[State]:
    """Return the state of each component; raise ReleaseError if the state is not that of a mixture."""
    config, tensors = state.config, dict(state.tensors)
    weights = tensors.pop("weights", np.zeros(0))
    if not _is_config(config):
        raise ReleaseError("the configuration is not that of a mixture")
    configs = config["components"]
    if weights.dtype != np.float64 or weights.shape != (len(configs),) or not _are_chances(weights):
        raise ReleaseError("the weights of the mixture are not probabilities")
    if any(not len(tensor.shape) or len(tensor) != len(configs) for tensor in tensors.values()):
        raise ReleaseError("the arrays of the mixture are not one for each component")
    parts = [{name: tensor[place] for name, tensor in tensors.items()} for place in range(len(configs))]
    return [State(part, each) for part, each in zip(parts, configs, strict=True)]


def make_all_private(schema: Schema) -> Schema:
    """Return the schema with all columns private: public values are not public for the records of one cluster."""
    columns = {name: column.model_copy(update={"public": False}) for name, column in schema.columns.items()}
    return schema.model_copy(update={"columns": columns})


def _is_config(config: Mapping[str, Any]) -> bool:
    of, configs = config.get("of"), config.get("components")
    return (
        set(config) == {"of", "records", "public", "components"}
        and type(of) is str
        and of in MODELS
        and of != MIXTURE
        and type(config["public"]) is bool
        and isinstance(configs, list)
        and 1 <= len(configs) <= MOST_CLUSTERS
        and all(isinstance(each, dict) for each in configs)
        and is_whole(config["records"], MOST_RECORDS)
    )


def _are_chances(weights: npt.NDArray[Any]) -> bool:
    return bool(np.isfinite(weights).all() and (weights >= 0).all() and abs(weights.sum() - 1) < 1e-6)
