"""A mixture as it is in a release: the arrays of all components, stacked where all have the same shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
    MeasuredMarginal,
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
        own = [PUBLIC_RECORDS] if state.config["public"] else []
        self.assumptions = list(dict.fromkeys([*own, *(line for each in self.components for line in each.assumptions)]))
        self.choices = {CLUSTER: len(self.components)}

    def find_unpaid(self, charges: Sequence[Charge]) -> list[str]:
        """Name the clusters and the parts of components, unless charges paid for them."""
        clusters = find_unpaid_clustering(charges, public=self.config["public"])
        # Components are fitted to disjoint records with the same charges, but need not have used them alike.
        return clusters + list(dict.fromkeys(what for each in self.components for what in each.find_unpaid(charges)))

    def list_measured(self, charges: Sequence[Charge]) -> list[MeasuredMarginal]:
        """Return what each component measured."""
        return [
            replace(marginal, cluster=number)
            for number, each in enumerate(self.components)
            for marginal in each.list_measured(charges)
        ]


def find_unpaid_clustering(charges: Sequence[Charge], *, public: bool) -> list[str]:
    """Name what a clustering learned from private records and no charge paid for."""
    of_records = {} if public else {WIDTH: "pure", MOMENTS: "gaussian"}
    return find_missing_charges(charges, {CENTRES: "gaussian", COUNTS: "gaussian", **of_records})


Tensors = Mapping[str, npt.NDArray[Any]]


def join_components(tensors: Sequence[Tensors]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of all components: one for all where they have the same shape, or one for each.

    >>> join_components([{"a": np.zeros(2), "b": np.zeros(3)}, {"a": np.ones(2), "b": np.ones(4)}]).keys()
    dict_keys(['a', '0/b', '1/b'])
    """
    found: dict[str, npt.NDArray[Any]] = {}
    for name in dict.fromkeys(name for each in tensors for name in each):
        own = {place: each[name] for place, each in enumerate(tensors) if name in each}
        if len(own) == len(tensors) and len({array.shape for array in own.values()}) == 1:
            found[name] = np.stack(list(own.values()))
        else:
            found |= {f"{place}/{name}": array for place, array in own.items()}
    return found


def split_components(state: State) -> list[State]:
    """Return the state of each component; raise ReleaseError if the state is not that of a mixture."""
    config, tensors = state.config, dict(state.tensors)
    weights = tensors.pop("weights", np.zeros(0))
    if not _is_config(config):
        raise ReleaseError("the configuration is not that of a mixture")
    configs = config["components"]
    if weights.dtype != np.float64 or weights.shape != (len(configs),) or not _are_chances(weights):
        raise ReleaseError("the weights of the mixture are not probabilities")
    parts: list[dict[str, npt.NDArray[Any]]] = [{} for _ in configs]
    numbers = {str(place): [place] for place in range(len(configs))}
    for key, tensor in tensors.items():
        number, apart, name = key.rpartition("/")
        places = numbers.get(number, []) if apart else range(len(configs))
        if not places or not (apart or (tensor.ndim and len(tensor) == len(configs))):
            raise ReleaseError("the arrays of the mixture are not one for each component")
        for place in places:
            parts[place][name] = tensor if apart else tensor[place]
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
