"""The generative models by name. The files of a model are imported when they are needed.

A configuration and a reader of releases do not import torch; the model itself may.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sundog.data.schema import Schema
from sundog.data.validation_errors import suggest
from sundog.errors import ArgumentError

if TYPE_CHECKING:
    from sundog.models.configuration import Configuration
    from sundog.models.protocol import Model, State
    from sundog.models.released import ReleasedModel

AUTO = "auto"  # one of them, by the schema: models/auto.py
MIXTURE = "mixture"  # of any other that accepts clusters


@dataclass(frozen=True)
class Registration:
    """Where the three classes of a model are, each as `module:class`."""

    configuration: str
    model: str
    released: str


def _locate(module: str, stem: str) -> Registration:
    """Return the usual places of a model's classes: configuration.py, NAME.py and released.py in its folder."""
    name = module.rpartition(".")[2]
    return Registration(
        f"{module}.configuration:{stem}Configuration", f"{module}.{name}:{stem}", f"{module}.released:Released{stem}"
    )


MODELS = {
    "independent": _locate("sundog.models.independent", "Independent"),
    "marginals": _locate("sundog.models.marginals", "Marginals"),
    "rbm": _locate("sundog.models.rbm", "Rbm"),
    "vae": _locate("sundog.models.vae", "Vae"),
    "gan": _locate("sundog.models.gan", "Gan"),
    MIXTURE: _locate("sundog.mixture", "Mixture"),
}


def get_model(name: str) -> type[Model]:
    """Return the model class of that name.

    >>> get_model("independent").name
    'independent'
    """
    refuse_unknown(name)
    model: type[Model] = _import_class(MODELS[name].model)
    return model


def get_configuration(name: str) -> type[Configuration]:
    """Return the configuration class of the model of that name."""
    refuse_unknown(name)
    configuration: type[Configuration] = _import_class(MODELS[name].configuration)
    return configuration


def configure(name: str, settings: Mapping[str, Any], *, clusters: int = 1, public: bool = False) -> Configuration:
    """Return the configuration of a model, or of a mixture of it; raise ArgumentError if a setting is wrong.

    >>> configure("vae", {"latent": 4}).name, configure("vae", {"latent": 4}, clusters=3).name
    ('vae', 'mixture')

    Args:
        name: of the model.
        settings: values by name.
        clusters: more than one for a mixture.
        public: whether there are public records.
    """
    kind = get_configuration(name)
    if name == MIXTURE:
        raise ArgumentError("model 'mixture': say of what, such as --model vae --clusters 10")
    if clusters == 1:
        return kind.parse(settings, public=public)
    mixture: Configuration = _import_class(MODELS[MIXTURE].configuration).of(
        kind, settings, clusters=clusters, public=public
    )
    return mixture


def read_model(name: str, schema: Schema, state: State) -> ReleasedModel:
    """Return the model that a release holds, checked; raise ReleaseError if the state is not one of that model."""
    refuse_unknown(name)
    released: ReleasedModel = _import_class(MODELS[name].released)(schema, state)
    return released


def refuse_unknown(name: str) -> None:
    """Raise ArgumentError if there is no model of that name.

    >>> refuse_unknown("rbmm")
    Traceback (most recent call last):
    ...
    sundog.errors.ArgumentError: there is no model 'rbmm'; did you mean 'rbm'?
    """
    if name not in MODELS:
        raise ArgumentError(f"there is no model {name!r}; {suggest(name, [AUTO, *MODELS])}")


def _import_class(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
