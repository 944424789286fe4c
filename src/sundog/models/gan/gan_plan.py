"""The plan of a generative adversarial network."""

from __future__ import annotations

from dataclasses import dataclass

from sundog.models.gan.configuration import GanSettings
from sundog.models.neural.network_training import NetworkPlan
from sundog.privacy.events import Charge
from sundog.training.training_plan import TrainingPlan


@dataclass(frozen=True)
class GanPlan:
    """The public numbers of a fit.

    Args:
        settings: of the networks and their training.
        records: about how many there are.
        network: means and training, in which an example is a record, or a person with several.
        people: what it costs to count people; None where an example is a record.
        classifier: the training of the label classifier; None where there is none.
    """

    settings: GanSettings
    records: int
    network: NetworkPlan
    people: Charge | None
    classifier: TrainingPlan | None

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Those of the count of people, of the classifier, of the means, and of the training."""
        return (*list_first_charges(self.people, self.classifier), *self.network.charges)


def list_first_charges(people: Charge | None, classifier: TrainingPlan | None) -> list[Charge]:
    """Return the charges before those of the networks: of the count of people, and of the classifier's training."""
    training = None if classifier is None else classifier.make_charge(classifier.steps)
    return [charge for charge in (people, training) if charge is not None]
