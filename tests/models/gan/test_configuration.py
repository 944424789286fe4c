"""What is right where nothing was set, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contracts.material import KINDS, schema_of
from tests.models.gan.material import GAPS, IMAGES, LABEL, SERIES, TABLE

from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.gan.configuration import _BY_SHAPE, GanConfiguration, GanSettings, resolve

PLAIN = schema_of({"label": LABEL, "twin": LABEL})
METERS = schema_of({"meter": SERIES})
PICTURE = {"image": {"type": "image", "shape": [8, 8]}}


def resolve_settings(schema: Schema, *, public: bool = False, **settings: Any) -> GanSettings:
    return resolve(GanConfiguration.parse(settings, public=public), schema)


@pytest.mark.parametrize(
    ("schema", "settings", "shape", "condition", "classifier"),
    [
        (IMAGES, {}, "conv", "label", 0.3),
        (IMAGES, {"condition": None}, "conv", None, 0.0),
        (IMAGES, {"classifier": 0.0}, "conv", "label", 0.0),
        (IMAGES, {"classifier": 0.5}, "conv", "label", 0.5),
        (IMAGES, {"shape": "mlp"}, "mlp", "label", 0.0),
        (IMAGES, {"shape": "mlp", "classifier": 0.2}, "mlp", "label", 0.2),
        (schema_of({"image": {"type": "image", "shape": [6, 5]}}), {}, "conv", None, 0.0),
        (GAPS, {}, "mlp", "label", 0.0),
        (GAPS, {"shape": "conv"}, "conv", "label", 0.3),
        (schema_of({**PICTURE, "label": {"type": "categorical", "values": ["a"]}}), {}, "conv", "label", 0.0),
        (schema_of({**PICTURE, "label": {"type": "categorical", "learn": True}}), {}, "conv", "label", 0.3),
        (METERS, {}, "mlp", None, 0.0),
        (TABLE, {"condition": "label"}, "mlp", "label", 0.0),
        (PLAIN, {}, "pairs", None, 0.0),
        (PLAIN, {"condition": "twin", "classifier": 0.1}, "pairs", "twin", 0.1),
    ],
)
def test_what_is_named_follows_from_what_is_told(
    schema: Schema, settings: dict[str, Any], shape: str, condition: str | None, classifier: float
) -> None:
    found = resolve_settings(schema, **settings)
    assert (found.shape, found.condition, found.classifier) == (shape, condition, classifier)


def test_what_is_not_set_is_set_by_shape_and_what_is_set_stays() -> None:
    names = ("hidden", "epochs", "learning_rate", "critic_steps", "anchor", "means", "classifier")
    for place, (shape, schema) in enumerate((("pairs", PLAIN), ("conv", IMAGES), ("mlp", GAPS), ("lstm", GAPS))):
        settings = resolve_settings(schema, shape=shape)
        assert {name: getattr(settings, name) for name in names} == {
            name: _BY_SHAPE[name][min(place, 2)] for name in names
        }
    asked: dict[str, Any] = {
        "hidden": 7,
        "epochs": 3,
        "learning_rate": 0.1,
        "critic_steps": 2.5,
        "anchor": 0.5,
        "means": 0.1,
    }
    for schema in (PLAIN, IMAGES, GAPS):
        settings = resolve_settings(schema, **asked)
        assert {name: getattr(settings, name) for name in asked} == asked
        assert None not in [getattr(settings, name) for name in (*names, "warm")]


def test_the_defaults_are_never_refused() -> None:
    for columns in KINDS.values():
        for rest in ({}, {"unit": "who", "cap": 3}, {"unit": "who", "cap": 1}):
            found = resolve_settings(schema_of(columns, **rest))
            assert not (found.classifier and found.condition is None)
            if rest.get("cap") == 3:
                assert found.condition is None


@pytest.mark.parametrize("steps", [0.25, 0.5, 1, 2.5, 1000, 1000.0])
def test_a_critic_may_have_fewer_steps_than_its_generator(steps: float) -> None:
    assert resolve_settings(TABLE, critic_steps=steps).critic_steps == steps


@pytest.mark.parametrize(
    ("schema", "settings", "what"),
    [
        (
            TABLE,
            {"classifier": 0.3},
            "classifier needs a column on which the generator is conditioned; set condition=COLUMN",
        ),
        (
            IMAGES,
            {"classifier": 0.3, "condition": None},
            "classifier needs a column on which the generator is conditioned",
        ),
        (IMAGES, {"classifier": 0.75}, "0.8 of the budget; together they may take 0.75"),
        (IMAGES, {"classifier": 0.5, "means": 0.3}, "means=0.3, classifier=0.5: 0.8 of the budget"),
        (
            IMAGES,
            {"classifier": 1.0},
            "setting 'classifier' must be 0, or a share of the budget, 0.001 or more and below 1, not 1.0",
        ),
        (IMAGES, {"classifier": -0.1}, "setting 'classifier' must be 0, or a share"),
        (IMAGES, {"classifier": float("nan")}, "setting 'classifier' must be 0, or a share"),
        (IMAGES, {"classifier": "0.3"}, "setting 'classifier' must be 0, or a share"),
        (IMAGES, {"classifier": True}, "setting 'classifier' must be 0, or a share"),
        (IMAGES, {"critic_steps": 0.2}, "setting 'critic_steps' must be a number from 0.25 to 1000, not 0.2"),
        (IMAGES, {"critic_steps": 1001}, "setting 'critic_steps' must be a number from 0.25 to 1000"),
        (IMAGES, {"recognised": 1.0}, "setting 'recognised' must be a share"),
        (
            IMAGES,
            {"recognised": 0.6, "objective": "wasserstein"},
            "recognised does not work with objective",
        ),
        (IMAGES, {"learning_rate": 10.1}, "setting 'learning_rate' must be a number above 0 and at most 10, not 10.1"),
        (IMAGES, {"generator_rate": 1e30}, "setting 'generator_rate' must be a number above 0 and at most 10"),
        (IMAGES, {"condition": "image"}, "setting 'condition' must be the name of a column with one value"),
        (
            IMAGES,
            {"clip": 1e300},
            "must be a number from 1e-06 to 1e+06, or public or dpnorm, not 1e+300",
        ),
        (IMAGES, {"clip": 1e-7}, "setting 'clip' must be a number from 1e-06 to 1e+06"),
        (IMAGES, {"decay": 1e-30}, "setting 'decay' must be a number from 0.001 to 1, not 1e-30"),
        (IMAGES, {"epochs": 1e300}, "setting 'epochs' must be a number above 0 and at most 1000000, not 1e+300"),
        (IMAGES, {"warm": 5}, "warm = 5 needs public records; add --public FILE"),
        (TABLE, {"shape": "pairs", "dropout": 0.5}, "the critic of pairs has no hidden units; leave 'dropout' out"),
        (TABLE, {"shape": "pairs", "weight_norm": True}, "no hidden units; leave 'weight_norm' out"),
        (IMAGES, {"dropout": 1.0}, "setting 'dropout' must be a share, 0 or more and below 1, not 1.0"),
        (IMAGES, {"clip": "public", "public": True, "decay": 0.5}, "has no decay of its own"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(schema: Schema, settings: dict[str, Any], what: str) -> None:
    with pytest.raises(SundogError) as caught:
        resolve_settings(schema, **settings)
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)
