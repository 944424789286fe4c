"""A classifier of the generator's condition: predicts it from the rest of a record (auxiliary classifier GAN).

A critic that is trained with noise learns little about labels; a classifier learns more (Papernot et al. 2021). It is
trained first, for a share of the budget, and the generator learns to make records that it classifies as the condition
(Odena et al. 2017).
"""

from __future__ import annotations

from torch import Tensor, nn

from sundog.models.gan.configuration import GanSettings
from sundog.models.gan.networks import new_label_classifier, remove_condition
from sundog.models.neural.features import Compact, Features
from sundog.models.neural.network_training import TrainableNetwork, choose_batch, initialise, train_networks
from sundog.models.neural.noisy_means import calibrate_share
from sundog.models.protocol import FitContext, Parts
from sundog.models.released import CLASSIFIER
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Budget, Ledger
from sundog.training.batches.examples import Examples
from sundog.training.training_plan import TrainingPlan, plan_training

_EPOCHS = 30.0
_RATE = 4e-3
_CLIP = 1.0


class LabelClassifier(TrainableNetwork):
    """A network that predicts the condition.

    Args:
        features: of the records.
        body: from all other features to the logits of the condition.
        condition: the features of that column.
    """

    def __init__(self, features: Features, body: nn.Module, condition: slice) -> None:
        super().__init__()
        self.features, self.body, self.condition = features, body, condition

    def cross_entropy(self, x: Tensor) -> Tensor:
        """Return the cross-entropy at the label of each record: (…, features) to (…)."""
        logits: Tensor = self.body(remove_condition(x, self.condition))
        return -(logits.log_softmax(dim=-1) * x[..., self.condition]).sum(dim=-1)

    def loss(self, batch: Compact) -> Tensor:
        """Return the cross-entropy of each record."""
        return self.cross_entropy(self.features.to_dense(batch))


def plan_label_classifier(budget: Budget, *, share: float, records: int) -> TrainingPlan:
    """Plan a training for a share of the budget, measured in 1 / noise_multiplier².

    >>> plan = plan_label_classifier(Budget(10.0, 1e-5), share=0.25, records=60_000)
    >>> plan.steps, round(plan.noise_multiplier, 2)
    (960, 1.22)
    """
    one = Charge(event=Gaussian(noise_multiplier=calibrate_share(budget, share)), purpose=CLASSIFIER)
    part = Budget(compute_epsilon([one], delta=budget.delta), budget.delta)
    return plan_training(part, records=records, batch=choose_batch(records), epochs=_EPOCHS, purpose=CLASSIFIER)


def train_label_classifier(
    features: Features,
    examples: Examples,
    settings: GanSettings,
    training: TrainingPlan,
    ledger: Ledger,
    context: FitContext,
    *,
    records: int,
) -> LabelClassifier:
    """Train a classifier on all records.

    Args:
        features: of the records.
        examples: the records.
        settings: of the model.
        training: steps, batches and noise.
        ledger: is charged for it.
        context: the device, the seed and the progress callback.
        records: about how many there are.
    """
    condition = features.at(settings.condition)

    def new() -> LabelClassifier:
        body = new_label_classifier(features, settings.shape, condition, hidden=settings.hidden)
        return LabelClassifier(features, body, condition)

    networks, whole = initialise(new, 1, context.seed), Parts.whole(float(records))
    (classifier,) = train_networks(
        networks, examples, whole, training, ledger, context, clip=_CLIP, learning_rate=_RATE
    )
    return classifier.requires_grad_(False)
