"""The attacker's own discriminator: synthetic records against those of a generator, known non-members, or both.

A target that has overfitted makes records like those of its training, so that a discriminator which learns what is
synthetic scores the target's training records higher than others (Hayes et al. 2019, black box).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sundog.data.records import Records
from sundog.models.gan.adversarial_step import Generator, draw_straight_through
from sundog.models.gan.architectures import choose_shape
from sundog.models.gan.networks import CriticNetwork, new_critic, new_generator
from sundog.models.neural.features import Compact, Features
from sundog.models.neural.network_training import Adam, choose_adam_options, choose_chunk_size
from sundog.training.speed.cuda_graphs import ReplayedWork

Observer = Callable[[int, "DiscriminatorTraining"], None]

BATCH = 32
REAL, FAKE = (0.7, 1.2), (0.0, 0.3)  # labels are drawn between these
FLIPPED = 0.05  # of the labels are swapped: "occasionally", in the text
_LATENT = 100
_MOMENTS = (0.5, 0.999)  # of Adam, as for DCGAN
_LEAST_MEAN = 1e-3


@dataclass(frozen=True)
class TrainingOptions:
    """How long and with what an attacker trains.

    Args:
        steps: of the discriminator, and of the generator if there is one.
        delay: steps of a GAN before known records are used; earlier they weaken the discriminator.
        hidden: four times the first channels of the discriminator for images; else the units of a layer.
        learning_rate: of both networks.
        device: `cpu` or `cuda`.
    """

    steps: int
    delay: int = 0
    hidden: int = 128
    learning_rate: float = 2e-4
    device: str = "cpu"


@dataclass(frozen=True)
class Evidence:
    """What the discriminator learns from: batches have equal parts of each.

    Args:
        synthetic: the records of the target, which count as real.
        members: known members, which count as real; none, or after the delay.
        nonmembers: known non-members, which count as generated; none, or after the delay.
        generates: whether there is a generator, whose records count as generated.
    """

    synthetic: Records
    members: Records | None = None
    nonmembers: Records | None = None
    generates: bool = True


class DiscriminatorTraining:
    """A discriminator, and the generator against which it is trained; the networks are those of the `gan` model.

    The discriminator has no statistics across records, so that its score of a record depends on that record alone.

    Args:
        evidence: what it learns from.
        options: for how long.
        seed: fixes all random choices on one device.
    """

    def __init__(self, evidence: Evidence, options: TrainingOptions, seed: int) -> None:
        self.evidence, self.options, self.seed = evidence, options, seed
        schema = evidence.synthetic.schema
        self.device = torch.device(options.device)
        self.features = Features(schema)
        self._shape = "conv" if choose_shape(schema) == "conv" else "mlp"
        self._real = self._load(evidence.synthetic)
        self._fake: list[Compact] = []

    def run(self, observe: Observer | None = None) -> None:
        """Train; `observe` is called after every thousandth step and the last."""
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(self.seed)
            self._start()
            step = self._plan_steps()
            delay = self.options.delay if self.evidence.generates else 0
            for number in range(self.options.steps):
                if number == delay:
                    step = self._add_known_records()
                step()
                if observe is not None and ((number + 1) % 1000 == 0 or number + 1 == self.options.steps):
                    observe(number + 1, self)

    @torch.no_grad()
    def score(self, records: Records) -> npt.NDArray[np.float64]:
        """Return the discriminator's score of each record."""
        rows, examples = choose_chunk_size(self.features.width), self.features.to_examples(records, self.device)
        places = np.array_split(np.arange(len(records)), max(1, len(records) // rows))
        parts = [self.critic(self.features.to_dense(examples.take(part))) for part in places]
        return torch.cat(parts).double().cpu().numpy()

    @torch.no_grad()
    def generate(self, count: int) -> Tensor:
        """Return records of the attacker's generator, as vectors."""
        return self._generate(count)

    # --- the networks ---

    def _start(self) -> None:
        features, options, none = self.features, self.options, slice(0, 0)
        self.critic: CriticNetwork = new_critic(features, self._shape, none, hidden=options.hidden).to(self.device)
        body = new_generator(features, self._shape, 0, hidden=options.hidden, latent=_LATENT)
        mean = self._draw(self._real, 1024).mean(dim=0, keepdim=True).cpu()
        self.generator = Generator(body, features.logits(mean, least=_LEAST_MEAN), none).to(self.device)
        self._optimizers = [
            Adam(
                list(network.parameters()),
                lr=torch.tensor(options.learning_rate, device=self.device)
                if self.device.type == "cuda"
                else options.learning_rate,
                betas=_MOMENTS,
                **choose_adam_options(self.device),
            )
            for network in (self.critic, self.generator)
        ]

    def _add_known_records(self) -> ReplayedWork:
        self._real += self._load(self.evidence.members)
        self._fake += self._load(self.evidence.nonmembers)
        return self._plan_steps()

    def _plan_steps(self) -> ReplayedWork:
        return ReplayedWork(self._take_step, self.device)

    def _load(self, records: Records | None) -> list[Compact]:
        if records is None:
            return []
        return [self.features.to_examples(records, self.device).take(np.arange(len(records)))]

    # --- a step ---

    def _take_step(self) -> None:
        discriminator, generator = self._optimizers
        real, fake = self.critic(self._draw(self._real, BATCH)), self.critic(self._draw_fake())
        _descend(discriminator, compare_with_labels(real, REAL, FAKE) + compare_with_labels(fake, FAKE, REAL))
        if self.evidence.generates:
            _descend(generator, functional.softplus(-self.critic(self._generate(BATCH))).mean())

    def _draw_fake(self) -> Tensor:
        """Draw what counts as generated: records of the generator, known non-members, or half of each."""
        if not self.evidence.generates:
            return self._draw(self._fake, BATCH)
        with torch.no_grad():
            if not self._fake:
                return self._generate(BATCH)
            return torch.cat([self._generate(BATCH // 2), self._draw(self._fake, BATCH // 2)])

    def _generate(self, count: int) -> Tensor:
        latent = torch.randn(count, self.generator.body.latent, device=self.device)
        return draw_straight_through(self.features, self.generator(latent))

    def _draw(self, parts: Sequence[Compact], count: int) -> Tensor:
        """Draw vectors of all parts, as many of each."""
        return torch.cat([self._draw_from(part, count // len(parts)) for part in parts])

    def _draw_from(self, part: Compact, count: int) -> Tensor:
        total = len(next(iter(part.values())))
        places = torch.randint(total, (count,), device=self.device)
        return self.features.to_dense({key: rows[places] for key, rows in part.items()})


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    """Take a step of the weights of one optimiser."""
    optimizer.zero_grad()
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    loss.backward(inputs=weights)  # type: ignore[no-untyped-call]
    optimizer.step()


def compare_with_labels(scores: Tensor, between: tuple[float, float], others: tuple[float, float]) -> Tensor:
    """Return the cross-entropy of scores with labels that are drawn between two numbers, some from the other side.

    >>> bool(compare_with_labels(torch.full((8,), 50.0), FAKE, REAL) > 30)  # taken for real, but labelled as fake
    True
    """
    draws = torch.rand(3, len(scores), device=scores.device)
    own, other = (low + (high - low) * draw for (low, high), draw in zip((between, others), draws[:2], strict=True))
    labels = torch.where(draws[2] < FLIPPED, other, own)
    return functional.binary_cross_entropy_with_logits(scores, labels)
