"""The generative models by name. A model's file is imported when it is asked for, and not before."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from sundog.errors import SundogError

if TYPE_CHECKING:
    from sundog.models.base import Model

MODELS = {
    "independent": "sundog.models.independent:Independent",
    "rbm": "sundog.models.rbm:Rbm",
    "vae": "sundog.models.vae:Vae",
    "gan": "sundog.models.gan.gan:Gan",
    "mixture": "sundog.mixture.mixture:Mixture",  # of any other, by asking for clusters
}

AUTO = "auto"  # one of them, by the schema: models/choice.py


def get_model(name: str) -> type[Model]:
    """The model class of that name.

    >>> get_model("independent").name
    'independent'
    """
    try:
        module, _, attribute = MODELS[name].partition(":")
    except KeyError:
        raise SundogError(f"there is no model {name!r}; choose {AUTO} or one of: {', '.join(MODELS)}") from None
    model: type[Model] = getattr(import_module(module), attribute)
    return model
