"""The generative models by name. A model's file is imported when it is asked for, and not before."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from sundog.data.validation_errors import did_you_mean
from sundog.errors import ArgumentError

if TYPE_CHECKING:
    from sundog.models.protocol import Model

MODELS = {
    "independent": "sundog.models.independent.independent:Independent",
    "rbm": "sundog.models.rbm.rbm:Rbm",
    "vae": "sundog.models.vae.vae:Vae",
    "gan": "sundog.models.gan.gan:Gan",
    "mixture": "sundog.mixture.mixture:Mixture",  # of any other, by asking for clusters
}

AUTO = "auto"  # one of them, by the schema: models/auto.py


def get_model(name: str) -> type[Model]:
    """The model class of that name.

    >>> get_model("independent").name
    'independent'
    """
    refuse_unknown(name)
    module, _, attribute = MODELS[name].partition(":")
    model: type[Model] = getattr(import_module(module), attribute)
    return model


def refuse_unknown(name: str) -> None:
    """Raises if there is no model of that name.

    >>> refuse_unknown("rbmm")
    Traceback (most recent call last):
    ...
    sundog.errors.ArgumentError: there is no model 'rbmm'; did you mean 'rbm'?
    """
    if name not in MODELS:
        raise ArgumentError(f"there is no model {name!r}; {did_you_mean(name, [AUTO, *MODELS])}")
