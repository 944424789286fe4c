"""The configuration of a model: one frozen, validated class each, whose fields are what `--set name=value` can set.

A field declares its values by its type and bounds, and its meaning by its description. Messages, `sundog models NAME`
and the tables in docs/ are generated from them.
"""

from __future__ import annotations

import functools
import json
import math
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from sundog.data.schema import Schema
from sundog.data.validation_errors import suggest
from sundog.errors import ArgumentError

OPTIONS = ("clusters", "component", "public")  # fields that have an option of their own and are not settings
SHARES = ("clustering", "means", "moments", "classifier")  # settings that are shares of the budget
MOST_SHARED = 0.75  # of the budget, by all shares together: the rest trains, and pays for a count or a schema

Share = Annotated[float, Field(gt=0, lt=1, title="a share of the budget")]


@dataclass(frozen=True)
class Setting:
    """One setting of a model, as help and documentation show it."""

    name: str
    values: str
    default: str
    description: str


class Configuration(BaseModel):
    """What can be set of a model. Subclasses add the fields.

    >>> from sundog.models.rbm.configuration import RbmConfiguration
    >>> RbmConfiguration.parse({"hidden": 20}).hidden
    20
    >>> RbmConfiguration.parse({"hidden": 0})
    Traceback (most recent call last):
    ...
    sundog.errors.ArgumentError: model 'rbm': setting 'hidden' must be a whole number from 1 to 65536, not 0
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    name: ClassVar[str]  # of the model
    options: ClassVar[frozenset[str]] = frozenset()  # which of clusters, public, device and show_loss it can use
    counts_records: ClassVar[bool] = True  # whether its plan needs to know (about) how many records there are

    @classmethod
    def parse(cls, settings: Mapping[str, Any], **options: Any) -> Self:
        """Return the configuration with these settings; raise ArgumentError, in one line, if one is wrong.

        Args:
            settings: values by the name of their field.
            options: `clusters` and `public`; those that the model has no field for are left out.
        """
        refuse_unknown_settings(cls.name, settings, [setting.name for setting in cls.list_settings()])
        given = {name: value for name, value in options.items() if name in cls.model_fields}
        try:
            return cls(**settings, **given)
        except ValidationError as error:
            raise ArgumentError(cls._explain(error)) from None

    @classmethod
    def list_settings(cls) -> list[Setting]:
        """Return the fields that `--set` can change."""
        return [
            Setting(
                name, describe_values(_get_hints(cls)[name]), _format_default(field.default), field.description or ""
            )
            for name, field in cls.model_fields.items()
            if name not in OPTIONS
        ]

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        refuse_shares(self.shares)
        return self

    @property
    def shares(self) -> dict[str, float]:
        """The shares of the budget that are set, by name."""
        found = {name: getattr(self, name, None) for name in SHARES}
        return {name: share for name, share in found.items() if share is not None}

    @property
    def title(self) -> str:
        """The name of the model, and of its components if it is a mixture."""
        return self.name

    @property
    def components(self) -> int:
        """The number of models that are fitted: more than one in a mixture."""
        return 1

    @property
    def weights_per_feature(self) -> int:
        """About how many weights a fitted model has for each feature, to estimate how much space a fit takes."""
        return 1

    def accepts(self, option: str) -> bool:
        """Return whether the model can use an option: clusters, public, device or show_loss."""
        return option in self.options

    def check(self, schema: Schema) -> None:
        """Raise SundogError if the model cannot learn records of this schema with this configuration."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON values."""
        return self.model_dump(mode="json")

    @classmethod
    def _explain(cls, error: ValidationError) -> str:
        """Return the first problem as one line."""
        problem = error.errors(include_url=False)[0]
        if problem["type"] == "value_error":
            return str(problem["ctx"]["error"])
        name = str(problem["loc"][0])
        # The input of a problem in one member of a union may be a part of the value.
        what = f"must be {describe_values(_get_hints(cls)[name])}, not {problem['input']!r}"
        return f"{name} {what}" if name in OPTIONS else f"model {cls.name!r}: setting {name!r} {what}"


def refuse_unknown_settings(model: str, settings: Mapping[str, Any], known: list[str]) -> None:
    """Raise ArgumentError if the model has no setting of one of the names."""
    for name in (name for name in settings if name not in known):
        hint = suggest(name, known, otherwise=f"its settings: {', '.join(known) or 'none'}")
        raise ArgumentError(f"model {model!r} has no setting {name!r}; {hint}")


def refuse_shares(shares: Mapping[str, float]) -> None:
    """Raise ArgumentError if shares of the budget leave too little of it for training.

    >>> refuse_shares({"means": 0.05, "moments": 0.02})
    """
    if (total := math.fsum(shares.values())) > MOST_SHARED:
        asked = ", ".join(f"{name}={share:g}" for name, share in shares.items())
        raise ArgumentError(f"settings {asked}: {total:.3g} of the budget; together they may take {MOST_SHARED}")


def describe_values(annotation: Any) -> str:
    """Return in words which values a type allows; `None`, which stands for a default, is left out.

    >>> describe_values(Annotated[int, Field(ge=1, le=9)] | None)
    'a whole number from 1 to 9'
    >>> describe_values(Literal["public"] | Annotated[float, Field(gt=0, le=2)])
    'public, or a number above 0 and at most 2'
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        kinds = [describe_values(kind) for kind in arguments if kind is not type(None)]
        return (", or " if any(" " in kind for kind in kinds) else " or ").join(kinds)
    if origin is Literal:
        *first, last = (str(value) for value in arguments)
        return f"{', '.join(first)} or {last}" if first else last
    if origin is Annotated:
        (field,) = (each for each in arguments[1:] if isinstance(each, FieldInfo))
        return _describe_bounds(arguments[0], field)
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[annotation]


def _describe_bounds(kind: Any, field: FieldInfo) -> str:
    bounds: dict[str, Any] = {}
    for each in field.metadata:
        bounds |= {key: getattr(each, key) for key in ("gt", "ge", "lt", "le", "multiple_of") if hasattr(each, key)}
    noun = "an even number" if bounds.pop("multiple_of", None) == 2 else None
    noun = field.title or noun or describe_values(kind)
    comma = "," if field.title else ""
    match {key: f"{value:g}" if isinstance(value, float) else str(value) for key, value in bounds.items()}:
        case {"ge": least, "le": most}:
            return f"{noun}{comma} from {least} to {most}"
        case {"gt": least, "lt": most}:
            return f"{noun}{comma} between {least} and {most}"
        case {"gt": least, "le": most}:
            return f"{noun}{comma} above {least} and at most {most}"
        case {"ge": least, "lt": most}:
            return f"{noun}, {least} or more and below {most}"
        case {"gt": least}:
            return f"{noun}{comma} above {least}"
        case {"ge": least}:
            return f"{noun}, {least} or more"
    return noun


@functools.cache
def _get_hints(kind: type[Configuration]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _format_default(default: Any) -> str:
    return "" if default is None else default if isinstance(default, str) else json.dumps(default)
