"""Canaries for networks: examples whose gradients, once clipped, are directions of their own.

The gradient of a canary is one weight of a linear layer, and ten times as long as the clipping norm. The engine that
sums the gradients of records computes, clips and sums it, in Poisson batches that the trainer draws among records and
canaries alike. A canary that is included adds the clipping norm to its weight's sum in each batch that it is in.

An attacker who knows the other records and the batches they are in subtracts their exact sum. What is left at the
weight of a canary is noise, and the canary in some of the steps: the score is the logarithm of the likelihood ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sundog.errors import NotApplicableError
from sundog.training.batches.examples import Batch, Examples
from sundog.training.batches.poisson import Index
from sundog.training.batches.stacked_examples import StackedExamples
from sundog.training.groups import Groups
from sundog.training.noise_addition import compute_gradient_multiplier, compute_noise_scales
from sundog.training.per_example.engine import Masks
from sundog.training.step import PrivateStep
from sundog.training.training_plan import TrainingPlan

_PLANTED = "canaries"  # the only entry of a batch of them
_TOO_LONG = 10.0  # the length of a canary's gradient, in clipping norms: it must be clipped
_INPUT = 64.0  # of a layer: the gradient of its bias is shorter than that of the weight by this factor


@dataclass(frozen=True)
class Weights:
    """One weight for each canary.

    Args:
        layers: the linear layers of the network.
        layer: the number of the layer of each canary.
        row: of the weight.
        column: of the weight.
    """

    layers: list[nn.Linear]
    layer: Tensor
    row: Tensor
    column: Tensor

    @classmethod
    def draw(cls, module: nn.Module, groups: Groups, count: int, rng: np.random.Generator) -> Weights:
        """Draw different weights among those of all linear layers."""
        trained = {id(parameter) for parameter in groups.parameters}
        layers = [m for m in module.modules() if type(m) is nn.Linear and id(m.weight) in trained]
        ends = np.cumsum([layer.weight.numel() for layer in layers])
        total = int(ends[-1]) if layers else 0
        if total < count:
            raise NotApplicableError(
                f"canaries: the network has {total:,} weights in linear layers, and each canary needs one; plant "
                "fewer, or widen the network"
            )
        drawn = rng.choice(total, count, replace=False)
        layer = np.searchsorted(ends, drawn, side="right")
        place = drawn - np.append(0, ends[:-1])[layer]
        width = np.array([each.in_features for each in layers])[layer]
        return cls(layers, *(torch.from_numpy(each) for each in (layer, place // width, place % width)))

    def take(self, canaries: Tensor) -> Weights:
        """Return the weights of some canaries."""
        return Weights(self.layers, self.layer[canaries], self.row[canaries], self.column[canaries])

    def compute_losses(self, length: Tensor) -> Tensor:
        """Return losses whose gradients have this length in their weights, and nothing elsewhere but in the bias."""
        losses = length.new_zeros(len(self.layer))
        for number, layer in enumerate(self.layers):
            is_here = (self.layer == number).to(length.dtype)
            rows = torch.where(self.layer == number, self.row, 0)
            columns = torch.where(self.layer == number, self.column, 0)
            inputs = length.new_zeros(len(rows), layer.in_features).scatter_(1, columns[:, None], _INPUT)
            outputs = layer(inputs).gather(1, rows[:, None])[:, 0]
            losses = losses + outputs * is_here * length / _INPUT
        return losses

    def select(self, sums: list[Tensor], groups: Groups) -> Tensor:
        """Return the entries of the canaries' weights, given a tensor for each parameter."""
        places = {id(parameter): number for number, parameter in enumerate(groups.parameters)}
        found = sums[0].new_zeros(len(self.layer))
        for number, layer in enumerate(self.layers):
            here = self.layer == number
            found[here] = sums[places[id(layer.weight)]][self.row[here], self.column[here]]
        return found

    def find_groups(self, groups: Groups) -> Tensor:
        """Return the group of each canary's weight."""
        of = {id(parameter): group for parameter, group in zip(groups.parameters, groups.of, strict=True)}
        return torch.tensor([of[id(layer.weight)] for layer in self.layers])[self.layer]


@dataclass(frozen=True)
class CanaryBatch:
    """The records of a batch, and the canaries in it by number."""

    records: Batch
    canaries: Tensor


class CanaryExamples:
    """Records, and after them the canaries that are included.

    Args:
        examples: the records.
        included: the numbers of the canaries.
    """

    def __init__(self, examples: Examples, included: Index) -> None:
        self._examples, self._included = examples, included
        self.device = examples.device

    def __len__(self) -> int:
        return len(self._examples) + len(self._included)

    def take(self, index: Index) -> CanaryBatch:
        """Return the records and the canaries at these positions."""
        records = len(self._examples)
        planted = self._included[index[index >= records] - records]
        return CanaryBatch(self._examples.take(index[index < records]), torch.from_numpy(planted))


@dataclass
class CanaryStep(PrivateStep):
    """The step of a training, with canaries in its batches.

    Args:
        weights: of all canaries, included or not.
        observe: receives what an attacker can know: the noisy sums without what records add to them, at the weights of
            the canaries.
    """

    weights: Weights = field(kw_only=True)
    observe: Callable[[Tensor], None] = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._of_records: list[Tensor] = []
        self._loss_of_records, self.private_loss = self.private_loss, self._compute_losses

    def _compute_losses(self, batch: Any) -> Tensor:
        if not isinstance(batch, Mapping) or _PLANTED not in batch:
            return self._loss_of_records(batch)
        weights = self.weights.take(batch[_PLANTED])
        return weights.compute_losses(_TOO_LONG * self.policy.bounds[weights.find_groups(self.groups)])

    def _clip_and_sum(self, pieces: Iterable[CanaryBatch], masks: Masks) -> tuple[list[Tensor], Tensor | None, Tensor]:
        """Sum records and canaries, each by the engine."""
        planted: list[Tensor] = []

        def take_records() -> Iterator[Batch]:
            for piece in pieces:
                planted.append(piece.canaries)
                yield piece.records

        sums, measured, usable = super()._clip_and_sum(take_records(), masks)
        self._of_records = [total.clone() for total in sums]
        more, added, finite = super()._clip_and_sum([{_PLANTED: torch.cat(planted)}], masks)
        torch._foreach_add_(sums, more)
        return sums, measured if measured is None or added is None else measured + added, usable & finite

    def _average(self, noisy: list[Tensor]) -> list[Tensor]:
        pairs = zip(noisy, self._of_records, strict=False)
        self.observe(self.weights.select([each - own for each, own in pairs], self.groups))
        return super()._average(noisy)


class GradientCanaries:
    """Canaries in the training of a network, and what is observed of them.

    Args:
        included: which canaries are included, by a fair coin each.
        rng: chooses their weights.
    """

    def __init__(self, included: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
        self._included, self._rng = included, rng
        self.steps = 0
        """How many steps were observed."""
        self.scores = np.zeros(len(included))
        """How much likelier the observations are if a canary is included, as the logarithm of a ratio."""

    def install(
        self, step: PrivateStep, examples: Examples, training: TrainingPlan
    ) -> tuple[CanaryStep, CanaryExamples]:
        """Return the step and the examples with canaries among them."""
        if not isinstance(step, PrivateStep):
            raise NotApplicableError("canaries are planted in a training on the processor; choose device cpu")
        if isinstance(examples, StackedExamples):
            raise NotApplicableError(
                "canaries cannot be planted in a mixture of networks; audit one of them, or its tables"
            )
        weights = Weights.draw(step.module, step.groups, len(self._included), self._rng)
        group = weights.find_groups(step.groups)

        def observe(sums: Tensor) -> None:
            bounds = step.policy.bounds
            multiplier = compute_gradient_multiplier(training.noise_multiplier, step.policy.measurement_noise)
            scales = compute_noise_scales(step.groups, bounds, multiplier)[group]
            self._update(sums / scales, bounds[group] / scales, training.sample_rate)

        kept = {each.name: getattr(step, each.name) for each in fields(PrivateStep)}
        kept["speed"] = replace(step.speed, compiled=False)
        included = np.flatnonzero(self._included)
        return CanaryStep(**kept, weights=weights, observe=observe), CanaryExamples(examples, included)

    def _update(self, sums: Tensor, shifts: Tensor, sample_rate: float) -> None:
        """Add the log-likelihood ratio of one step, in units of the noise."""
        seen, shift = sums.double().numpy(), shifts.double().numpy()
        ratio = shift * seen - shift**2 / 2
        if sample_rate < 1:
            ratio = np.logaddexp(np.log1p(-sample_rate), np.log(sample_rate) + ratio)
        self.scores += ratio
        self.steps += 1
