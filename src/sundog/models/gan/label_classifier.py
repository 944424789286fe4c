"""Names the value that a generator was told from the rest of a record: what a generator hears clearly through noise.

A critic that learns through noise hardly learns which images are sevens. A classifier does (Papernot et al. 2021): it
is trained first, for a share of the budget, and the generator is to make records in which it finds what the generator
was told (Odena et al. 2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from sundog.models.gan.networks import new_namer, without
from sundog.models.neural.features import Compact, Features
from sundog.models.neural.network_training import Trainee, default_batch, initialised, train
from sundog.models.neural.noisy_means import gaussian_share
from sundog.models.protocol import FitContext, Parts
from sundog.models.unpaid import NAMING
from sundog.privacy.accountant import epsilon_spent
from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Budget, Ledger
from sundog.training.batches.examples import Examples
from sundog.training.training_plan import TrainingPlan, plan_training

_EPOCHS = 30.0
_RATE = 4e-3
_CLIP = 1.0


class Namer(Trainee):
    """A classifier.

    Args:
        features: of the records.
        body: from all other features to the logits of the told column.
        told: the features of that column.
    """

    def __init__(self, features: Features, body: nn.Module, told: slice) -> None:
        super().__init__()
        self.features, self.body, self.told = features, body, told

    def surprise(self, x: Tensor) -> Tensor:
        """At the values that records have: (…, features) to (…)."""
        named: Tensor = self.body(without(x, self.told))
        return -(named.log_softmax(dim=-1) * x[..., self.told]).sum(dim=-1)

    def loss(self, batch: Compact) -> Tensor:
        """The surprise at each record."""
        return self.surprise(self.features.dense(batch))


def plan_naming(budget: Budget, *, share: float, records: int) -> TrainingPlan:
    """A training for a share of the budget, in the units in which Gaussians add up.

    >>> plan = plan_naming(Budget(10.0, 1e-5), share=0.25, records=60_000)
    >>> plan.steps, round(plan.noise_multiplier, 2)
    (960, 1.22)
    """
    one = Charge(event=Gaussian(noise_multiplier=gaussian_share(budget, share)), purpose=NAMING)
    part = Budget(epsilon_spent([one], delta=budget.delta), budget.delta)
    return plan_training(part, records=records, batch=default_batch(records), epochs=_EPOCHS, purpose=NAMING)


def trained_namer(
    features: Features, examples: Examples, settings: Mapping[str, Any], ledger: Ledger, context: FitContext
) -> Namer:
    """Trains one on all records.

    Args:
        features: of the records.
        examples: the records.
        settings: of the model.
        ledger: is charged for it.
        context: where, and who watches.
    """
    told = features.at(settings["condition"])

    def new() -> Namer:
        return Namer(features, new_namer(features, settings["shape"], told, hidden=settings["hidden"]), told)

    whole, plan = Parts.whole(float(settings["records"])), TrainingPlan(**settings["naming"])
    networks = initialised(new, 1, context.seed)
    (namer,) = train(networks, examples, whole, plan, ledger, context, clip=_CLIP, learning_rate=_RATE)
    return namer.requires_grad_(False)
