"""The state of a training on disk: weights, optimiser, averages, clipping bounds, and the number of steps done.

All of it is computed from noisy sums that were charged, and from nothing else that is private: no batch, no loss, no
state of the noise generator. The file is therefore as public as the release.

It is one safetensors file: tensors by name, and the structure around them as JSON in its metadata. Nothing in it is
executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from sundog.errors import SundogError
from sundog.privacy.checkpoint import Checkpoint

_VERSION = 1
Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class TrainingState:
    """A training after some of its steps.

    Args:
        plan: of the training.
        done: the number of steps done.
        seed: of the public randomness.
        parts: nested dicts, lists, tuples, numbers, strings and tensors.
    """

    plan: dict[str, Any]
    done: int
    seed: int
    parts: dict[str, Any]


def save_state(checkpoint: Checkpoint, name: str, state: TrainingState) -> None:
    """Replace the saved state; it is on disk when this returns."""
    tensors: Tensors = {}
    structure = {
        "version": _VERSION,
        "plan": state.plan,
        "done": state.done,
        "seed": state.seed,
        "parts": pack(state.parts, tensors),
    }
    checkpoint.save_bytes(_name_file(name), safetensors.torch.save(tensors, {"state": json.dumps(structure)}))


def load_state(checkpoint: Checkpoint, name: str) -> TrainingState | None:
    """Return the saved state, or None if there is none."""
    raw = checkpoint.load_bytes(_name_file(name))
    if raw is None:
        return None
    try:
        tensors = safetensors.torch.load(raw)
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        found = json.loads(header["__metadata__"]["state"])
        if found["version"] != _VERSION or type(found["done"]) is not int or found["done"] < 1:
            raise ValueError("not a state")
        return TrainingState(found["plan"], found["done"], int(found["seed"]), unpack(found["parts"], tensors))
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise make_damage_error(checkpoint, name) from None


def make_damage_error(checkpoint: Checkpoint, name: str) -> SundogError:
    """Return the error for an unreadable state."""
    return checkpoint.make_unreadable_error(_name_file(name))


def _name_file(name: str) -> str:
    return f"{name}.safetensors"


def pack(value: Any, tensors: Tensors, place: str = "") -> Any:
    """Return the value as JSON, with its tensors moved to `tensors` and replaced by their names.

    >>> import torch
    >>> moved: Tensors = {}
    >>> pack({"betas": (0.9, 0.99), "state": {0: torch.zeros(2)}}, moved)
    {'dict': [['betas', {'tuple': [0.9, 0.99]}], ['state', {'dict': [[0, {'tensor': '/state/0'}]]}]]}
    >>> unpack(_, moved)
    {'betas': (0.9, 0.99), 'state': {0: tensor([0., 0.])}}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        if place in tensors:
            raise ValueError(f"two tensors have the name {place!r}")
        tensors[place] = value.detach().to("cpu", copy=True).contiguous()  # a copy: parameters may share memory
        return {"tensor": place}
    if isinstance(value, Mapping):
        return {"dict": [[key, pack(item, tensors, f"{place}/{key}")] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        items = [pack(item, tensors, f"{place}/{number}") for number, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    raise TypeError(f"{place}: a {type(value).__name__} cannot be saved")


def unpack(value: Any, tensors: Tensors) -> Any:
    """Return the value that `pack` was given."""
    if isinstance(value, list):
        return [unpack(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "tuple":
        return tuple(unpack(item, tensors) for item in content)
    if kind == "dict":
        return {key: unpack(item, tensors) for key, item in content}
    raise ValueError(f"unknown kind {kind!r}")
