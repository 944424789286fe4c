"""A training on disk: weights, optimiser, averages, bounds, and how many steps are in them.

All of it was computed from noisy sums that the ledger paid for, and from nothing else that is private: no batch, no
loss, no random state of the noise. So the file is as public as the release that will be made of it.

One safetensors file: tensors by name, and the structure that holds them as JSON in its metadata. Nothing in it is ever
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
        plan: the plan it follows.
        done: how many steps are in it.
        seed: of the public randomness.
        parts: dicts, lists, tuples, numbers, texts and tensors.
    """

    plan: dict[str, Any]
    done: int
    seed: int
    parts: dict[str, Any]


def save_state(checkpoint: Checkpoint, name: str, state: TrainingState) -> None:
    """Puts the state in the place of an earlier one; it is on the disk when this returns."""
    tensors: Tensors = {}
    structure = {
        "version": _VERSION,
        "plan": state.plan,
        "done": state.done,
        "seed": state.seed,
        "parts": packed(state.parts, tensors),
    }
    checkpoint.save_bytes(_file(name), safetensors.torch.save(tensors, {"state": json.dumps(structure)}))


def load_state(checkpoint: Checkpoint, name: str) -> TrainingState | None:
    """The state, or None where nothing was kept yet."""
    raw = checkpoint.load_bytes(_file(name))
    if raw is None:
        return None
    try:
        tensors = safetensors.torch.load(raw)
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        found = json.loads(header["__metadata__"]["state"])
        if found["version"] != _VERSION or type(found["done"]) is not int or found["done"] < 1:
            raise ValueError("not a state")
        return TrainingState(found["plan"], found["done"], int(found["seed"]), unpacked(found["parts"], tensors))
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damaged(checkpoint, name) from None


def damaged(checkpoint: Checkpoint, name: str) -> SundogError:
    """What to say about a state that is none."""
    return checkpoint.damaged(_file(name))


def _file(name: str) -> str:
    return f"{name}.safetensors"


def packed(value: Any, tensors: Tensors, place: str = "") -> Any:
    """The value as JSON, with its tensors moved to `tensors` and their names in their places.

    >>> import torch
    >>> moved: Tensors = {}
    >>> packed({"betas": (0.9, 0.99), "state": {0: torch.zeros(2)}}, moved)
    {'dict': [['betas', {'tuple': [0.9, 0.99]}], ['state', {'dict': [[0, {'tensor': '/state/0'}]]}]]}
    >>> unpacked(_, moved)
    {'betas': (0.9, 0.99), 'state': {0: tensor([0., 0.])}}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        if place in tensors:
            raise ValueError(f"two tensors have the name {place!r}")
        tensors[place] = value.detach().to("cpu", copy=True).contiguous()  # of its own: parameters may share memory
        return {"tensor": place}
    if isinstance(value, Mapping):
        return {"dict": [[key, packed(item, tensors, f"{place}/{key}")] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        items = [packed(item, tensors, f"{place}/{number}") for number, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    raise TypeError(f"{place}: a {type(value).__name__} cannot be kept")


def unpacked(value: Any, tensors: Tensors) -> Any:
    """What `packed` was given."""
    if isinstance(value, list):
        return [unpacked(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "tuple":
        return tuple(unpacked(item, tensors) for item in content)
    if kind == "dict":
        return {key: unpacked(item, tensors) for key, item in content}
    raise ValueError(f"unknown kind {kind!r}")
