"""What a reader of releases has to know of each model: no network is built, and torch is not imported.

A reader checks that arrays and configuration are those of the model, from their shapes, before anything is made of
them. `Model.from_state` begins with the same check. A model without a reader here is its own.
"""

from __future__ import annotations

from importlib import import_module

from sundog.data.schema import Schema
from sundog.models import get_model
from sundog.models.released.base import ReleasedModel
from sundog.models.state import State

_READERS = {
    "independent": "independent:ReleasedIndependent",
    "rbm": "rbm:ReleasedRbm",
    "vae": "vae:ReleasedVae",
    "gan": "gan:ReleasedGan",
    "mixture": "mixture:ReleasedMixture",
}


def read_model(name: str, schema: Schema, state: State) -> ReleasedModel:
    """The model that a release holds, checked; raises ReleaseError if it cannot be one."""
    if name not in _READERS:
        return get_model(name).from_state(schema, state)
    module, _, attribute = _READERS[name].partition(":")
    reader = getattr(import_module(f"{__name__}.{module}"), attribute)
    found: ReleasedModel = reader(schema, state)
    return found
