"""Configurations: parsed from settings, checked, described."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field, ValidationError

from sundog.errors import ArgumentError
from sundog.models.configuration import Configuration, Share, describe_values
from sundog.models.registry import configure


class Toy(Configuration):
    name: ClassVar[str] = "toy"

    width: Annotated[int, Field(ge=1, le=9)] = Field(default=3, description="of the toy")
    rate: Annotated[float, Field(gt=0, le=2)] | Literal["auto"] = Field(default="auto", description="of the toy")
    means: Share = Field(default=0.1, description="a share")
    classifier: Share = Field(default=0.1, description="another")
    public: bool = False


def test_settings_are_parsed_and_the_rest_has_defaults() -> None:
    toy = Toy.parse({"width": 5, "rate": 1}, public=True, clusters=4)
    assert (toy.width, toy.rate, toy.means, toy.public) == (5, 1.0, 0.1, True)
    assert Toy.parse({}) == Toy()
    assert Toy(**toy.to_dict()) == toy


def test_a_configuration_does_not_change() -> None:
    with pytest.raises(ValidationError):
        Toy().width = 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"wdth": 3}, "model 'toy' has no setting 'wdth'; did you mean 'width'?"),
        ({"zzz": 3}, "model 'toy' has no setting 'zzz'; its settings: width, rate, means, classifier"),
        ({"public": True}, "model 'toy' has no setting 'public'; its settings: width, rate, means, classifier"),
        ({3: 4}, "model 'toy' has no setting 3; its settings: width, rate, means, classifier"),
        ({"width": 10}, "model 'toy': setting 'width' must be a whole number from 1 to 9, not 10"),
        ({"width": "5"}, "model 'toy': setting 'width' must be a whole number from 1 to 9, not '5'"),
        ({"width": True}, "model 'toy': setting 'width' must be a whole number from 1 to 9, not True"),
        ({"width": 5.0}, "model 'toy': setting 'width' must be a whole number from 1 to 9, not 5.0"),
        ({"width": None}, "model 'toy': setting 'width' must be a whole number from 1 to 9, not None"),
        ({"rate": 0}, "model 'toy': setting 'rate' must be a number above 0 and at most 2, or auto, not 0"),
        (
            {"rate": float("nan")},
            "model 'toy': setting 'rate' must be a number above 0 and at most 2, or auto, not nan",
        ),
        (
            {"means": 0.5, "classifier": 0.5},
            "settings means=0.5, classifier=0.5: 1 of the budget; together they may take 0.75",
        ),
    ],
)
def test_what_is_wrong_is_one_line(settings: dict[Any, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Toy.parse(settings)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Annotated[int, Field(ge=2, le=8, multiple_of=2)], "an even number from 2 to 8"),
        (Annotated[float, Field(ge=0)], "a number, 0 or more"),
        (Annotated[int, Field(gt=0)], "a whole number above 0"),
        (Annotated[float, Field(ge=0, lt=1)], "a number, 0 or more and below 1"),
        (Share | None, "a share of the budget, between 0 and 1"),
        (Literal["a", "b", "c"], "a, b or c"),
        (bool, "true or false"),
        (str, "text"),
    ],
)
def test_values_are_described_in_words(annotation: Any, words: str) -> None:
    assert describe_values(annotation) == words


def test_settings_of_a_mixture_are_those_of_the_clustering_and_of_the_component() -> None:
    found = configure("vae", {"latent": 4, "kernel": "exponential"}, clusters=3)
    assert found.title == "mixture of vae"
    assert found.to_dict()["component"]["latent"] == 4
    assert found.accepts("public")
    assert found.accepts("device")
    assert not configure("vae", {}).accepts("public")
    with pytest.raises(ArgumentError, match="model 'vae' has no setting 'dimensions'; did you mean 'dimension'"):
        configure("vae", {"dimensions": 4}, clusters=3)
