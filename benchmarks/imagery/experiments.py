"""The experiments on targets without privacy: white box, black box, with knowledge, shadow, and Euclidean."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from imagery.image_subsets import Images, load_images
from imagery.outcomes import Outcome, keep_outcome, measure_accuracy
from imagery.target_networks import Defence
from imagery.target_training import GAMES, DcganAttacker, NewGame, Sizes, TargetTraining
from sundog.auditing.attacks.discriminator_training import DiscriminatorTraining, TrainingOptions
from sundog.auditing.attacks.trained_discriminator import TrainedDiscriminator
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.records import Records

Pixels = NDArray[np.uint8]
EPOCHS = 400  # of targets, as in the text
SAMPLES = 100_000  # of targets without privacy, for black-box attacks
DELAY = 1000  # steps before a GAN is shown known records
POINTS = 16  # of a curve by epochs


@dataclass(frozen=True)
class Sizing:
    """How large experiments are.

    Args:
        folder: for outcomes and samples.
        device: `cpu` or `cuda`.
        channels: of the first layer of all networks for images.
        quick: small enough for a smoke test.
    """

    folder: Path
    device: str
    channels: int
    quick: bool

    def cut(self, number: int, quick: int) -> int:
        """Return a number, or a smaller one for a smoke test."""
        return min(number, quick) if self.quick else number


@dataclass(frozen=True)
class Target:
    """A generator and its training set.

    Args:
        data: LFW or CIFAR-10.
        network: its kind.
        epochs: of its training.
        share: of the images that are members.
        people: how many people are the members instead; 0 for a random share.
        records: the most images, members and others.
        defence: what is changed in the networks, and its name.
        samples: how many are kept for black-box attacks.
    """

    data: str
    network: str
    epochs: int = EPOCHS
    share: float = 0.1
    people: int = 0
    records: int | None = None
    defence: tuple[str, Defence] = ("", Defence())
    samples: int = SAMPLES

    @property
    def name(self) -> str:
        """What it is called in the table."""
        part = f"top {self.people}" if self.people else f"{self.share:.0%}"
        whole = f" of {self.records}" if self.records else ""
        more = [self.defence[0]] if self.defence[0] else []
        more += [f"{self.epochs:,} epochs"] if self.epochs > EPOCHS else []
        more += [f"{self.samples:,} samples"] if self.samples != SAMPLES else []
        return ", ".join([f"{self.data} {part}{whole}", self.network, *more])

    @property
    def training(self) -> WhiteBox:
        """The experiment that trains it."""
        return WhiteBox(self)

    def load(self, sizing: Sizing) -> Images:
        """Return its images."""
        records = 240 if sizing.quick else self.records
        return load_images(self.data, self.share, self.people, records)


class Sampled(Protocol):
    """A generator whose samples are kept."""

    @property
    def name(self) -> str:
        """What it is called in the table."""

    @property
    def training(self) -> Experiment:
        """The experiment that trains it, and keeps its samples."""

    def load(self, sizing: Sizing) -> Images:
        """Return members and others."""


class Experiment(Protocol):
    """Something to measure."""

    @property
    def name(self) -> str:
        """What it is called in the table."""

    @property
    def source(self) -> Experiment | None:
        """The experiment whose samples it needs."""

    def run(self, sizing: Sizing, report: Callable[[Outcome], None]) -> Outcome:
        """Measure; report what was found so far."""


def get_path(sizing: Sizing, name: str, suffix: str) -> Path:
    """Return the file for the outcome of an experiment, or its samples."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in name)
    return sizing.folder / f"{kept}{suffix}"


def run_experiment(experiment: Experiment, sizing: Sizing) -> Outcome:
    """Measure, and keep what was found, also before the end."""
    path = get_path(sizing, experiment.name, ".json")
    torch.set_float32_matmul_precision("high")
    outcome = experiment.run(sizing, lambda so_far: keep_outcome(path, so_far))
    keep_outcome(path, outcome)
    return outcome


# --- white box ---


@dataclass(frozen=True)
class WhiteBox:
    """Train a target, and score candidates by its discriminator; keep samples for other attacks."""

    target: Target
    source: None = None

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return f"white box, {self.target.name}"

    def run(self, sizing: Sizing, report: Callable[[Outcome], None]) -> Outcome:
        """Measure after some of the epochs."""
        start, images, epochs = time.perf_counter(), self.target.load(sizing), sizing.cut(self.target.epochs, 4)
        training = train_target(self.target, images.pixels[images.members], sizing)
        curve: dict[str, float] = {}
        for epoch in range(1, epochs + 1):
            training.train_epoch()
            if epoch % max(1, epochs // POINTS) == 0 or epoch == epochs:
                accuracy = measure_accuracy(training.score(images.pixels), images.members)
                curve[str(epoch)] = accuracy.value
                outcome = Outcome(accuracy, dict(curve), time.perf_counter() - start, complete=epoch == epochs)
                report(replace(outcome, complete=False))
        keep_samples(sizing, self.name, training.sample(sizing.cut(self.target.samples, 200), images.pixels))
        return outcome


def train_target(target: Target, pixels: Pixels, sizing: Sizing) -> TargetTraining:
    """Return the training of a target that is about to begin."""
    return new_training(pixels, GAMES[target.network], target.defence[1], sizing)


def new_training(pixels: Pixels, game: NewGame, defence: Defence, sizing: Sizing) -> TargetTraining:
    """Return a training on images that is about to begin."""
    torch.manual_seed(0)
    device = torch.device(sizing.device)
    sizes = Sizes(1 if pixels.ndim == 3 else pixels.shape[-1], sizing.channels)
    return TargetTraining(pixels, game(sizes, defence, device), device)


def keep_samples(sizing: Sizing, name: str, pixels: Pixels) -> None:
    """Write samples for attacks that run later."""
    np.save(get_path(sizing, name, ".npy"), pixels)


# --- black box ---


@dataclass(frozen=True)
class OnSamples:
    """What needs the samples of a target."""

    target: Sampled

    @property
    def source(self) -> Experiment:
        """The experiment whose samples it needs."""
        return self.target.training


@dataclass(frozen=True)
class BlackBox(OnSamples):
    """An attack of the command that trains a discriminator on the samples of a target.

    Args:
        target: what is attacked.
        attack: of the command.
        steps: of the attacker.
        members: the share of the members that the attacker knows.
        nonmembers: the share of the others that the attacker knows.
        shadow: how a shadow model of the known members is trained, which makes half of the samples; None for none.
    """

    attack: type[TrainedDiscriminator]
    steps: int
    members: float = 0.0
    nonmembers: float = 0.0
    shadow: Target | None = None

    @property
    def name(self) -> str:
        """What it is called in the table."""
        known = f", knows {self.members:.0%}/{self.nonmembers:.0%}" if self.members or self.nonmembers else ""
        return f"{'shadow' if self.shadow else self.attack.name}{known}, {self.target.name}"

    def run(self, sizing: Sizing, report: Callable[[Outcome], None]) -> Outcome:
        """Measure after each thousandth step of the attacker."""
        start, images = time.perf_counter(), self.target.load(sizing)
        samples: Pixels = np.load(get_path(sizing, self.source.name, ".npy"))
        known = draw_known(images.members, self.members, self.nonmembers)
        kept = {True: images.pixels[known & images.members], False: images.pixels[known & ~images.members]}
        if self.shadow:
            samples = mix_in_shadow(self.shadow, kept[True], samples, sizing)
        held: dict[Knowledge, Records] = {Knowledge.SYNTHETIC: images.to_records(samples)}
        if Knowledge.MEMBERS in self.attack.needs:
            held[Knowledge.MEMBERS] = images.to_records(kept[True])
        if Knowledge.NONMEMBERS in self.attack.needs:
            held[Knowledge.NONMEMBERS] = images.to_records(kept[False])
        candidates, members = images.to_records(images.pixels[~known]), images.members[~known]
        curve: dict[str, float] = {}

        def observe(step: int, training: DiscriminatorTraining) -> None:
            accuracy = measure_accuracy(training.score(candidates), members)
            curve[str(step)] = accuracy.value
            report(Outcome(accuracy, dict(curve), time.perf_counter() - start, complete=False))

        delay = DELAY if self.attack.generates and not sizing.quick else 0
        options = TrainingOptions(sizing.cut(self.steps, 20), delay, hidden=4 * sizing.channels, device=sizing.device)
        attack = self.attack(options, observe)
        scores = attack.score(ThreatModel(held), candidates, np.random.default_rng(3))
        return Outcome(measure_accuracy(scores, members), curve, time.perf_counter() - start, complete=True)


@dataclass(frozen=True)
class SecondDcgan(OnSamples):
    """The black box of the text, whose attacker is a DCGAN that normalises batches; the attack of the command does not.

    Args:
        target: what is attacked.
        steps: of the attacker.
    """

    steps: int

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return f"DCGAN attacker, {self.target.name}"

    def run(self, sizing: Sizing, report: Callable[[Outcome], None]) -> Outcome:
        """Measure after each thousandth step of the attacker."""
        start, images = time.perf_counter(), self.target.load(sizing)
        samples: Pixels = np.load(get_path(sizing, self.source.name, ".npy"))
        training = new_training(samples, DcganAttacker, Defence(), sizing)
        curve: dict[str, float] = {}
        steps, most = sizing.cut(self.steps, 20), sizing.cut(1000, 10)
        for step in range(most, steps + 1, most):
            training.take_steps(most)
            accuracy = measure_accuracy(training.score(images.pixels), images.members)
            curve[str(step)] = accuracy.value
            outcome = Outcome(accuracy, dict(curve), time.perf_counter() - start, complete=step == steps)
            report(replace(outcome, complete=False))
        return outcome


def draw_known(members: NDArray[np.bool_], share: float, other: float) -> NDArray[np.bool_]:
    """Return which images the attacker knows: exact shares of members and of others."""
    known = np.zeros(len(members), bool)
    rng = np.random.default_rng(2)
    for kind, part in ((members, share), (~members, other)):
        places = rng.permutation(np.flatnonzero(kind))
        known[places[: round(part * len(places))]] = True
    return known


def mix_in_shadow(target: Target, known: Pixels, samples: Pixels, sizing: Sizing) -> Pixels:
    """Return samples of which half are those of a shadow model, which was trained on known members."""
    shadow = train_target(target, known, sizing)
    for _ in range(sizing.cut(target.epochs, 2)):
        shadow.train_epoch()
    return np.concatenate([samples, shadow.sample(len(samples), samples)])


@dataclass(frozen=True)
class Euclidean(OnSamples):
    """The text's baseline: the average distance from all samples; the smallest are guessed."""

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return f"Euclidean, {self.target.name}"

    def run(self, sizing: Sizing, report: Callable[[Outcome], None]) -> Outcome:  # noqa: ARG002
        """Measure, with the nearest sample beside it."""
        start, images = time.perf_counter(), self.target.load(sizing)
        samples = np.load(get_path(sizing, self.source.name, ".npy"))[: sizing.cut(4000, 100)]
        device = torch.device(sizing.device)
        made, real = (flatten(part, device) for part in (samples, images.pixels))
        found = torch.cat([torch.stack([d.mean(dim=1), d.amin(dim=1)]).T for d in measure_distances(real, made)])
        average, nearest = (-found.double().cpu().numpy()).T
        beside = measure_accuracy(nearest, images.members)
        extra = {"nearest sample": (beside.value, beside.chance)}
        return Outcome(measure_accuracy(average, images.members), {}, time.perf_counter() - start, True, extra)


def flatten(pixels: Pixels, device: torch.device) -> torch.Tensor:
    """Return images as rows of numbers."""
    return torch.from_numpy(pixels.reshape(len(pixels), -1)).to(device).float()


def measure_distances(real: torch.Tensor, made: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the distances of some rows from all of others."""
    for start in range(0, len(real), 512):
        yield torch.cdist(real[start : start + 512], made)
