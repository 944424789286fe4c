"""What can be set, what is right where nothing is set, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.gan.architectures import SHAPES, best_shape, has_people, refuse_shape
from sundog.models.gan.critic_clipping import ALL, KINDS, PUBLIC, needs_public
from sundog.models.gan.critic_schedule import FEWEST, MOST
from sundog.models.neural.network_training import (
    LARGEST_BOUND,
    RATE,
    SIZE,
    SMALLEST_BOUND,
    Setting,
    check_settings,
    is_bound,
    is_number,
)
from sundog.models.released_model import is_whole
from sundog.training.clipping import DPNORM

OBJECTIVES = ("non-saturating", "wasserstein")
_WARM = 300  # steps, as in the dp-GAN text
_LEAST = 0.001  # of the budget: with less nothing is learned
_LEAST_DECAY = 0.001
_HEAVIEST = 10**6  # of what counts in a loss

DEFAULTS: Mapping[str, Any] = {
    "shape": "auto",  # or mlp, pairs, conv, lstm
    "objective": "non-saturating",  # or wasserstein
    "hidden": None,  # this and what else is null: by shape
    "latent": 32,
    "condition": "auto",  # a column that the generator is told; or null
    "batch": None,  # by the number of records
    "epochs": None,
    "clip": 1.0,  # or public: the mean norm of public records; or dpnorm: the noisy mode of the norms
    "decay": 1.0,  # to what part of itself the clipping bound falls
    "groups": ALL,  # what is clipped together; or weights and biases; or a number of clusters, by public records
    "warm": None,  # steps on public records before the first on private ones; 300, if there are any
    "learning_rate": None,
    "generator_rate": 1e-3,
    "critic_steps": None,  # for one of the generator, to begin with
    "recognised": 0.0,  # the share of generated records that a critic should recognise, and gets steps for
    "anchor": None,  # how much it counts that generated records have the measured means
    "penalty": 10.0,  # of a slope that is not one, in the Wasserstein game
    "means": None,  # the share of the budget for the means
    "naming": None,  # and that for naming the column that the generator is told
    "public": False,  # whether there are public records: an option of its own
}

_BY_SHAPE: Mapping[str, tuple[Any, Any, Any, Any]] = {  # pairs, convolutions, others, and others of people
    "hidden": (128, 64, 128, 16),
    "epochs": (30, 100, 100, 100),
    "learning_rate": (0.04, 5e-4, 1e-3, 6e-3),
    "critic_steps": (1, 1, 4, 1),
    "anchor": (1.0, 0.0, 0.0, 0.0),
    "means": (0.25, 0.05, 0.05, 0.05),
    "naming": (0.0, 0.3, 0.0, 0.0),
}

_WEIGHT: Setting = (lambda value: is_number(value) and value <= _HEAVIEST, f"a number from 0 to {_HEAVIEST}")
_RIGHT: Mapping[str, Setting] = {
    "shape": (lambda value: value in ("auto", *SHAPES), f"auto, {', '.join(SHAPES[:-1])} or {SHAPES[-1]}"),
    "objective": (lambda value: value in OBJECTIVES, " or ".join(OBJECTIVES)),
    "latent": SIZE,
    "clip": (
        lambda value: value in (PUBLIC, DPNORM) or is_bound(value),
        f"a number from {SMALLEST_BOUND:g} to {LARGEST_BOUND:g}, {PUBLIC} or {DPNORM}",
    ),
    "decay": (lambda value: is_number(value) and _LEAST_DECAY <= value <= 1, f"a number from {_LEAST_DECAY} to 1"),
    "groups": (lambda value: value in (ALL, KINDS) or is_whole(value, 1000), f"{ALL}, {KINDS}, or a number of groups"),
    "warm": (lambda value: value in (None, 0) or is_whole(value, 10**6), "a whole number, 0 or more"),
    "generator_rate": RATE,
    "critic_steps": (
        lambda value: is_number(value) and FEWEST <= value <= MOST,
        f"a number from {FEWEST:g} to {MOST:g}",
    ),
    "recognised": (lambda value: is_number(value) and value < 1, "a share, 0 or more and below 1"),
    "anchor": _WEIGHT,
    "penalty": _WEIGHT,
    "naming": (
        lambda value: is_number(value) and (value == 0 or _LEAST <= value < 1),
        f"0, or a share of the budget, {_LEAST} or more and below 1",
    ),
}


def refuse_wrong(settings: Mapping[str, Any]) -> None:
    """Raises if settings are wrong whatever the schema is; what is null follows from the schema."""
    by_schema = {*_BY_SHAPE, "warm"}
    check_settings(
        "gan", {name: value for name, value in settings.items() if value is not None or name not in by_schema}, _RIGHT
    )


def settled(schema: Schema, settings: Mapping[str, Any]) -> dict[str, Any]:
    """All settings, with what is right for the records where nothing was asked for; raises if some are not."""
    shape = best_shape(schema) if settings["shape"] == "auto" else settings["shape"]
    told = _label(schema) if settings["condition"] == "auto" else settings["condition"]
    own = {name: values[_place(schema, shape)] for name, values in _BY_SHAPE.items()}
    own["warm"] = _WARM if settings["public"] else 0
    if not _has_names(schema, told):
        own["naming"] = 0.0
    chosen = {name: own[name] if value is None and name in own else value for name, value in settings.items()}
    check_settings("gan", chosen, _RIGHT)
    refuse_shape(schema, shape)
    _refuse_told(schema, told, chosen)
    _refuse_bounds(chosen)
    if chosen["recognised"] and chosen["objective"] == "wasserstein":
        raise SundogError(
            "model 'gan': recognised needs scores with a zero, which those of objective=wasserstein do not have; "
            "leave it out"
        )
    return {**chosen, "shape": shape, "condition": told}


def _place(schema: Schema, shape: Any) -> int:
    if shape == "pairs":
        return 0
    return 1 if shape == "conv" else 2 + has_people(schema)


def _label(schema: Schema) -> str | None:
    """The label of images and series, where there is one; None for tables."""
    scalars = list(schema.scalars)
    is_label = len(scalars) == 1 and len(schema.columns) > 1 and not has_people(schema)
    return scalars[0] if is_label else None


def _has_names(schema: Schema, told: Any) -> bool:
    """Whether there is anything to name: a column that may have more values than one."""
    column = schema.scalars.get(told) if type(told) is str else None
    if column is None:
        return False
    return column.nullable or not column.complete or column.lattice_size > 1


def _refuse_told(schema: Schema, told: Any, settings: Mapping[str, Any]) -> None:
    if told is None:
        if settings["naming"]:
            fix = "leave it out" if has_people(schema) else "set condition=COLUMN"
            raise SundogError(f"model 'gan': naming needs a column that the generator is told; {fix}")
        return
    if not (type(told) is str and told in schema.scalars):
        raise SundogError(f"model 'gan': setting 'condition' must be the name of a column with one value, not {told!r}")
    if has_people(schema):
        raise SundogError(
            f"model 'gan': a person has up to {schema.cap} records here, which may differ in {told!r}; leave "
            "'condition' out, or set `cap: 1` in the schema"
        )


def _refuse_bounds(settings: Mapping[str, Any]) -> None:
    for name in needs_public(settings):
        if not settings["public"]:
            raise SundogError(f"model 'gan': {name} = {settings[name]} needs public records; add --public FILE")
    if settings["clip"] == PUBLIC and settings["decay"] != 1.0:
        raise SundogError("model 'gan': a bound that follows public records has no decay of its own; leave it out")
    if settings["clip"] == DPNORM and settings["decay"] != 1.0:
        raise SundogError("model 'gan': clip=dpnorm sets the bound in every step; leave 'decay' out")
    if settings["clip"] == DPNORM and settings["groups"] != ALL:
        raise SundogError("model 'gan': clip=dpnorm clips all parameters together; leave 'groups' out")
