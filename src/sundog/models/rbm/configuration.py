"""The configuration of a restricted Boltzmann machine."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from sundog.data.schema import Schema
from sundog.models.configuration import Configuration, Share
from sundog.models.neural.configuration import Batch, Clip, Epochs, Rate, Size, refuse_people
from sundog.models.rbm.released import LEAST_DEVIATION


class RbmConfiguration(Configuration):
    """A restricted Boltzmann machine of whole records."""

    name: ClassVar[str] = "rbm"
    options: ClassVar[frozenset[str]] = frozenset({"clusters", "device", "show_loss"})

    hidden: Size = Field(default=50, description="hidden units")
    visible: Literal["bernoulli", "gaussian"] = Field(default="bernoulli", description="units of images and series")
    deviation: Annotated[float, Field(ge=LEAST_DEVIATION, le=1)] = Field(
        default=0.2, description="standard deviation of Gaussian units, whose intensities are between 0 and 1"
    )
    chains: Size | None = Field(
        default=None, description="Markov chains; by default as many as there are records in a batch (500 or more)"
    )
    moves: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=3, description="Gibbs steps of each chain after a training step"
    )
    batch: Batch | None = Field(
        default=None, description="expected records in a batch; by default a 32nd of all records, 64 to 8,192"
    )
    epochs: Epochs = Field(default=60, description="passes over the records")
    clip: Clip = Field(default=5.0, description="clipping norm of a gradient; dpnorm: the noisy mode of all norms")
    learning_rate: Rate = Field(default=2e-2, description="peak learning rate of Adam")
    means: Share = Field(default=0.05, description="share of the budget for the means of features")

    @property
    def weights_per_feature(self) -> int:
        """The number of units in a layer."""
        return self.hidden

    def check(self, schema: Schema) -> None:
        """Raise SundogError if a person may have several records."""
        refuse_people(self.name, schema)
