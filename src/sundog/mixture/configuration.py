"""The configuration of a mixture: how clusters are found, and the configuration of its components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, SerializeAsAny

from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.mixture.released import CLUSTER, MOST_CLUSTERS
from sundog.models.configuration import Configuration, Share, refuse_unknown_settings

# The largest setting. Cosines are whole numbers up to 2¹⁵, coordinates of directions and centres multiples of 2⁻¹⁶ up
# to 2 (the mean is in the unit ball, centres are no farther than 1 from it): sums of 2¹¹ products are whole numbers
# below 2¹⁵ · 2¹⁷ · 2¹¹ = 2⁴³. Coordinates of points, up to 2 as well, meet those of centres in sums below
# 2¹⁷ · 2¹⁷ · 2¹¹ = 2⁴⁵. Up to 2⁵³ no order of adding rounds.
MOST_DIMENSIONS = 2**11


class MixtureConfiguration(Configuration):
    """A mixture of models, one for each cluster of records."""

    name: ClassVar[str] = "mixture"

    component: SerializeAsAny[Configuration]
    clusters: Annotated[int, Field(ge=2, le=MOST_CLUSTERS)] = 2
    public: bool = False
    kernel: Literal["gaussian", "exponential"] = Field(default="gaussian", description="kernel of the k-means")
    dimension: Annotated[int, Field(ge=2, le=MOST_DIMENSIONS, multiple_of=2)] | None = Field(
        default=None, description="random Fourier features; by default from the budget, at most 512"
    )
    iterations: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="iterations of k-means; by default from the budget, 1 to 4"
    )
    clustering: Share = Field(default=0.1, description="share of the budget for finding clusters")
    by: (
        Annotated[str, Field(title="a column of the schema")]
        | Annotated[tuple[str, ...], Field(strict=False, min_length=1, title="a list of them")]
        | None
    ) = Field(default=None, description="columns by which records are clustered; by default all")

    @classmethod
    def of(cls, component: type[Configuration], settings: Mapping[str, Any], *, clusters: int, public: bool) -> Self:
        """Return a mixture of a kind of model; `settings` are those of the clustering and of the components together.

        Args:
            component: the configuration class of the components.
            settings: values by name.
            clusters: how many components there are.
            public: whether there are public records.
        """
        if "clusters" not in component.options:
            raise SundogError(f"model {component.name!r} cannot be the component of a mixture; leave clusters out")
        own = [setting.name for setting in cls.list_settings()]
        inner = [setting.name for setting in component.list_settings()]
        refuse_unknown_settings(component.name, settings, [*inner, *own])
        of_component = component.parse(
            {name: value for name, value in settings.items() if name in inner}, public=public
        )
        rest = {name: value for name, value in settings.items() if name in own}
        return cls.parse(rest, component=of_component, clusters=clusters, public=public)

    @property
    def shares(self) -> dict[str, float]:
        """The shares of the budget of the clustering and of the components."""
        return {**super().shares, **self.component.shares}

    @property
    def title(self) -> str:
        """The name of the model, and of its components."""
        return f"mixture of {self.component.name}"

    @property
    def components(self) -> int:
        """One for each cluster."""
        return self.clusters

    @property
    def weights_per_feature(self) -> int:
        """The weights of all components."""
        return self.clusters * self.component.weights_per_feature

    def accepts(self, option: str) -> bool:
        """Return whether the clustering or the components can use an option."""
        return option in ("clusters", "public") or self.component.accepts(option)

    def check(self, schema: Schema) -> None:
        """Raise SundogError for what the component refuses, and for records that cannot be clustered."""
        if schema.unit is not None and schema.cap > 1:
            raise SundogError(
                f"clusters: a person has up to {schema.cap} records here, which may be in different clusters; set "
                "`cap: 1` in the schema, or leave clusters out"
            )
        self.component.check(schema)
        if CLUSTER in schema.columns:
            raise SundogError(
                f"clusters: the schema has a column {CLUSTER!r}, by which conditions select a component; rename it"
            )
        for name in (name for name in self.list_columns(schema) if name not in schema.columns):
            raise SundogError(f"setting 'by' must be a column of the schema or a list of them, not {name!r}")

    def list_columns(self, schema: Schema) -> list[str]:
        """Return the columns by which records are clustered."""
        return list(schema.columns) if self.by is None else [self.by] if isinstance(self.by, str) else list(self.by)
