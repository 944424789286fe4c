"""The configuration of a variational autoencoder."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from sundog.data.schema import Schema
from sundog.models.configuration import Configuration, Share
from sundog.models.neural.configuration import (
    Batch,
    Clip,
    ColumnName,
    Epochs,
    Rate,
    Size,
    check_condition,
    refuse_people,
)
from sundog.models.vae.released import MOST_LAYERS


class VaeConfiguration(Configuration):
    """A variational autoencoder of whole records."""

    name: ClassVar[str] = "vae"
    options: ClassVar[frozenset[str]] = frozenset({"clusters", "device", "show_loss"})

    hidden: Size = Field(default=200, description="units of each hidden layer")
    layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)] = Field(
        default=1, description="hidden layers of the encoder and of the decoder"
    )
    latent: Size = Field(default=8, description="latent variables")
    condition: ColumnName | None = Field(
        default=None, description="column on which the decoder is conditioned, such as the label of images"
    )
    batch: Batch | None = Field(
        default=None, description="expected records in a batch; by default a 32nd of all records, 64 to 8,192"
    )
    epochs: Epochs = Field(default=30, description="passes over the records")
    clip: Clip = Field(default=1.0, description="clipping norm of a gradient; dpnorm: the noisy mode of all norms")
    learning_rate: Rate = Field(default=1e-2, description="peak learning rate of Adam")
    beta: Annotated[float, Field(ge=0)] = Field(default=1.0, description="weight of the divergence from the prior")
    warmup: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.0, description="fraction of all steps in which `beta` rises from 0"
    )
    means: Share = Field(default=0.05, description="share of the budget for the means of features")
    moments: Share = Field(default=0.02, description="share of the budget for the moments of the latent variables")

    @property
    def weights_per_feature(self) -> int:
        """The number of units in a layer."""
        return self.hidden

    def check(self, schema: Schema) -> None:
        """Raise SundogError if a person may have several records, or the condition is not a scalar column."""
        refuse_people(self.name, schema)
        check_condition(self.name, schema, self.condition)
