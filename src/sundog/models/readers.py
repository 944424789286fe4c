"""What a reader of releases has to know of each model: no network is built, and torch is not imported.

A reader checks that arrays and configuration are those of the model, from their shapes, before anything is made of
them. `Model.from_state` begins with the same check. A model without a reader here is its own.
"""

from __future__ import annotations

from importlib import import_module

from sundog.data.schema import Schema
from sundog.models.model_state import State
from sundog.models.registry import get_model
from sundog.models.released_model import ReleasedModel

_READERS = {
    "independent": "sundog.models.independent.released:ReleasedIndependent",
    "rbm": "sundog.models.rbm.released:ReleasedRbm",
    "vae": "sundog.models.vae.released:ReleasedVae",
    "gan": "sundog.models.gan.released:ReleasedGan",
    "mixture": "sundog.mixture.released:ReleasedMixture",
}


def read_model(name: str, schema: Schema, state: State) -> ReleasedModel:
    """The model that a release holds, checked; raises ReleaseError if it cannot be one."""
    if name not in _READERS:
        return get_model(name).from_state(schema, state)
    module, _, attribute = _READERS[name].partition(":")
    reader = getattr(import_module(module), attribute)
    found: ReleasedModel = reader(schema, state)
    return found
