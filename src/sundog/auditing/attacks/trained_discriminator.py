"""Black-box attacks that train networks (Hayes et al. 2019): a GAN of the target's records, with and without knowledge.

The attacker trains a network of their own on the synthetic records, and takes the candidates with the highest scores
of its discriminator for members. Known members count as real as well, and known non-members as generated. A
discriminator alone, without a generator, needs known non-members.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sundog.auditing.attack import Attack, Floats
from sundog.auditing.attacks.discriminator_training import (
    DiscriminatorTraining,
    Evidence,
    Observer,
    TrainingOptions,
)
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records
from sundog.evaluation.comparison import draw_seed

_STEPS = 15_000  # as many as the text needs with knowledge; without, it takes 50,000
_DELAY = 1000  # steps before a GAN is shown known records, as in the text


class TrainedDiscriminator(Attack):
    """The score of a discriminator that the attacker trains with what it is told.

    Args:
        options: how long it trains, and where; by default as long as the text, on `device`.
        observe: is called during the training.
        device: `cpu` or `cuda`.
    """

    slow: ClassVar[bool] = True
    generates: ClassVar[bool]

    def __init__(
        self, options: TrainingOptions | None = None, observe: Observer | None = None, *, device: str = "cpu"
    ) -> None:
        self.options = options or TrainingOptions(_STEPS, _DELAY if self.generates else 0, device=device)
        self.observe = observe

    def score(self, threat: ThreatModel, candidates: Records, rng: np.random.Generator) -> Floats:
        """Train a discriminator, and return its score of each candidate."""
        training = DiscriminatorTraining(self.collect(threat), self.options, draw_seed(rng))
        training.run(self.observe)
        return training.score(candidates)

    def collect(self, threat: ThreatModel) -> Evidence:
        """Return what the discriminator learns from: what the attack needs, and nothing else."""
        return Evidence(
            threat.synthetic,
            threat.members if Knowledge.MEMBERS in self.needs else None,
            threat.nonmembers if Knowledge.NONMEMBERS in self.needs else None,
            self.generates,
        )


class Gan(TrainedDiscriminator):
    """The text's black box without knowledge."""

    name: ClassVar[str] = "gan"
    description: ClassVar[str] = "the discriminator of a GAN that was trained on the synthetic records"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC})
    generates: ClassVar[bool] = True


class GanWithMembers(Gan):
    """The same, whose real records include known members."""

    name: ClassVar[str] = "gan-members"
    description: ClassVar[str] = "the same, to which known members are shown as well"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC, Knowledge.MEMBERS})


class GanWithKnownRecords(Gan):
    """The same, whose generated records also include known non-members."""

    name: ClassVar[str] = "gan-known"
    description: ClassVar[str] = "the same, to which known members and non-members are shown as well"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC, Knowledge.MEMBERS, Knowledge.NONMEMBERS})


class Discriminator(TrainedDiscriminator):
    """No generator: synthetic records and known members against known non-members."""

    name: ClassVar[str] = "discriminator"
    description: ClassVar[str] = "a network trained on synthetic records and known members, against known non-members"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC, Knowledge.MEMBERS, Knowledge.NONMEMBERS})
    generates: ClassVar[bool] = False


class NonmemberDiscriminator(Discriminator):
    """The same without known members, which the text finds to be no better than guessing."""

    name: ClassVar[str] = "discriminator-nonmembers"
    description: ClassVar[str] = "a network trained on synthetic records against known non-members"
    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.SYNTHETIC, Knowledge.NONMEMBERS})
