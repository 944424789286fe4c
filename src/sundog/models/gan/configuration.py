"""The configuration of a generative adversarial network, and what follows from the schema where nothing is set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.configuration import Configuration, Share, refuse_shares
from sundog.models.gan.architectures import choose_shape, has_people, refuse_shape
from sundog.models.gan.critic_schedule import FEWEST, MOST
from sundog.models.neural.configuration import Batch, Bound, ColumnName, Epochs, Rate, Size, check_condition

_LEAST_SHARE = 0.001  # of the budget: with less nothing is learned
_LEAST_DECAY = 0.001
_WARM = 300  # steps, as in the dp-GAN text

Shape = Literal["mlp", "pairs", "conv", "lstm"]
Objective = Literal["non-saturating", "wasserstein"]
Groups = Literal["all", "weights and biases"] | Annotated[int, Field(ge=1, le=1000, title="a number of groups")]
Steps = Annotated[float, Field(ge=FEWEST, le=MOST)]
Weight = Annotated[float, Field(ge=0, le=10**6)]
LargeShare = Annotated[float, Field(ge=_LEAST_SHARE, lt=1, title="a share of the budget")]


class GanConfiguration(Configuration):
    """A generative adversarial network of whole records."""

    name: ClassVar[str] = "gan"
    options: ClassVar[frozenset[str]] = frozenset({"device", "public", "show_loss"})

    public: bool = False
    shape: Literal["auto", "mlp", "pairs", "conv", "lstm"] = Field(
        default="auto",
        description="kind of networks; auto: pairs for tables, conv for an image, mlp for others",
    )
    objective: Objective = Field(default="non-saturating", description="loss of the two networks")
    hidden: Size | None = Field(
        default=None,
        description="units of a layer, or four times the critic's first channels; by default by shape",
    )
    latent: Size = Field(default=32, description="latent variables")
    condition: ColumnName | None = Field(
        default="auto",
        description="column on which the generator is conditioned; by default the label of images and series, where "
        "there is one; null for none",
    )
    batch: Batch | None = Field(
        default=None,
        description="expected records in a batch; by default a 32nd of all records, 64 to 8,192, or a quarter of all "
        "people",
    )
    epochs: Epochs | None = Field(default=None, description="passes over the records; by default by shape")
    clip: Bound | Literal["public", "dpnorm"] = Field(
        default=1.0,
        description="clipping norm of a record's gradient; public: mean norm of public records; dpnorm: noisy mode",
    )
    decay: Annotated[float, Field(ge=_LEAST_DECAY, le=1)] = Field(
        default=1.0, description="fraction of itself to which the clipping norm falls during the training"
    )
    groups: Groups = Field(
        default="all", description="what is clipped together; a number of groups needs public records"
    )
    warm: Annotated[int, Field(ge=0, le=10**6)] | None = Field(
        default=None,
        description=f"steps on public records before the first on private ones; by default {_WARM} if there are any",
    )
    learning_rate: Rate | None = Field(
        default=None, description="peak learning rate of the critic; by default by shape"
    )
    generator_rate: Rate = Field(default=1e-3, description="learning rate of the generator, at its peak")
    critic_steps: Steps | None = Field(
        default=None, description="steps of the critic for each of the generator, to begin with; by default by shape"
    )
    recognised: Annotated[float, Field(ge=0, lt=1, title="a share")] = Field(
        default=0.0,
        description="share of generated records that the critic should recognise, and gets more steps for; 0: its "
        "steps stay as they are",
    )
    anchor: Weight | None = Field(
        default=None,
        description="weight of the measured means in the generator's loss; by default by shape",
    )
    penalty: Weight = Field(default=10.0, description="weight of the gradient penalty of the Wasserstein objective")
    dropout: Annotated[float, Field(ge=0, lt=1, title="a share")] = Field(
        default=0.0, description="share of the critic's hidden units that are dropped in each pass; not a protection"
    )
    weight_norm: bool = Field(
        default=False, description="learn lengths and directions of the critic's weights apart; not a protection"
    )
    means: Share | None = Field(default=None, description="share of the budget for the means; by default by shape")
    classifier: Literal[0] | LargeShare | None = Field(
        default=None, description="share of the budget for the label classifier; by default by shape"
    )

    @property
    def weights_per_feature(self) -> int:
        """About the number of units in a layer."""
        return self.hidden or 128

    def check(self, schema: Schema) -> None:
        """Raise SundogError if the configuration does not fit the schema."""
        resolve(self, schema)


@dataclass(frozen=True)
class GanSettings:
    """A configuration in which everything that follows from the schema is filled in."""

    public: bool
    shape: Shape
    objective: Objective
    hidden: int
    latent: int
    condition: str | None
    batch: int | None
    epochs: float
    clip: float | Literal["public", "dpnorm"]
    decay: float
    groups: Literal["all", "weights and biases"] | int
    warm: int
    learning_rate: float
    generator_rate: float
    critic_steps: float
    recognised: float
    anchor: float
    penalty: float
    dropout: float
    weight_norm: bool
    means: float
    classifier: float


_BY_SHAPE: dict[str, tuple[Any, Any, Any, Any]] = {  # pairs, convolutions, others, and others of people
    "hidden": (128, 64, 128, 16),
    "epochs": (30.0, 100.0, 100.0, 100.0),
    "learning_rate": (0.04, 5e-4, 1e-3, 6e-3),
    "critic_steps": (1.0, 1.0, 4.0, 1.0),
    "anchor": (1.0, 0.0, 0.0, 0.0),
    "means": (0.25, 0.05, 0.05, 0.05),
    "classifier": (0.0, 0.3, 0.0, 0.0),
}


def resolve(configuration: GanConfiguration, schema: Schema) -> GanSettings:
    """Fill in what was not set, by the schema; raise SundogError if settings do not fit."""
    shape = choose_shape(schema) if configuration.shape == "auto" else configuration.shape
    condition = _find_label(schema) if configuration.condition == "auto" else configuration.condition
    by_schema = {name: values[_find_place(schema, shape)] for name, values in _BY_SHAPE.items()}
    by_schema["warm"] = _WARM if configuration.public else 0
    if not _has_classes(schema, condition):
        by_schema["classifier"] = 0.0
    given = {name: getattr(configuration, name) for name in GanConfiguration.model_fields}
    chosen = {name: by_schema[name] if value is None and name in by_schema else value for name, value in given.items()}
    settings = GanSettings(**{**chosen, "shape": shape, "condition": condition})
    refuse_shares({"means": settings.means, "classifier": settings.classifier})
    refuse_shape(schema, shape)
    _check_condition(schema, settings)
    _check_clipping(settings)
    if shape == "pairs":
        for name in (name for name in ("dropout", "weight_norm") if getattr(settings, name)):
            raise SundogError(f"model 'gan': the critic of pairs has no hidden units; leave {name!r} out")
    if settings.recognised and settings.objective == "wasserstein":
        raise SundogError(
            "model 'gan': recognised does not work with objective=wasserstein, whose scores have no zero; leave it out"
        )
    return settings


def _find_place(schema: Schema, shape: str) -> int:
    if shape == "pairs":
        return 0
    return 1 if shape == "conv" else 2 + has_people(schema)


def _find_label(schema: Schema) -> str | None:
    """Return the label of images and series, where there is one; None for tables."""
    scalars = list(schema.scalars)
    is_label = len(scalars) == 1 and len(schema.columns) > 1 and not has_people(schema)
    return scalars[0] if is_label else None


def _has_classes(schema: Schema, condition: str | None) -> bool:
    """Return whether there is anything to classify: a column that may have more than one value."""
    column = None if condition is None else schema.scalars.get(condition)
    if column is None:
        return False
    return column.nullable or not column.complete or column.lattice_size > 1


def _check_condition(schema: Schema, settings: GanSettings) -> None:
    condition = settings.condition
    if condition is None:
        if settings.classifier:
            fix = "leave it out" if has_people(schema) else "set condition=COLUMN"
            raise SundogError(f"model 'gan': classifier needs a column on which the generator is conditioned; {fix}")
        return
    check_condition("gan", schema, condition)
    if has_people(schema):
        raise SundogError(
            f"model 'gan': a person has up to {schema.cap} records here, which may differ in {condition!r}; leave "
            "'condition' out, or set `cap: 1` in the schema"
        )


def _check_clipping(settings: GanSettings) -> None:
    needs_public = {
        "clip": settings.clip == "public",
        "groups": isinstance(settings.groups, int),
        "warm": settings.warm > 0,
    }
    if not settings.public:
        for name in (name for name, needed in needs_public.items() if needed):
            raise SundogError(
                f"model 'gan': {name} = {getattr(settings, name)} needs public records; add --public FILE"
            )
    if settings.clip == "public" and settings.decay != 1.0:
        raise SundogError("model 'gan': a bound that follows public records has no decay of its own; leave it out")
    if settings.clip == "dpnorm" and settings.decay != 1.0:
        raise SundogError("model 'gan': clip=dpnorm sets the bound in every step; leave 'decay' out")
    if settings.clip == "dpnorm" and settings.groups != "all":
        raise SundogError("model 'gan': clip=dpnorm clips all parameters together; leave 'groups' out")
