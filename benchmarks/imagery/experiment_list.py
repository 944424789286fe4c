"""All experiments, by parts, the most important first, beside the figures of the texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from imagery.experiments import BlackBox, Euclidean, Experiment, SecondDcgan, Target, WhiteBox
from imagery.image_subsets import CIFAR, LFW
from imagery.private_targets import PrivateTarget
from imagery.target_networks import Defence
from imagery.target_training import BATCH, BEGAN, DCGAN, TWICE, VAE
from sundog.auditing.attacks.trained_discriminator import (
    Discriminator,
    Gan,
    GanWithKnownRecords,
    GanWithMembers,
    NonmemberDiscriminator,
)

BOTH = (LFW, CIFAR)
TEN, MANY = 10, 500  # people
POOL = 3000  # images, for training sets of 10 to 90% of them
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
DROPOUT, NORMED = ("dropout .5", Defence(dropout=0.5)), ("weight norm", Defence(weight_norm=True))


@dataclass(frozen=True)
class Listed:
    """An experiment, and what is known of it.

    Args:
        experiment: what to measure.
        text: the accuracy in the text; None if it has none.
        gain: the gain over guessing in the text; None if it has none.
    """

    experiment: Experiment
    text: float | None = None
    gain: float | None = None


@dataclass(frozen=True)
class Lengths:
    """How long is trained.

    Args:
        epochs: of targets; the text has 400.
        steps: of attackers without knowledge; the text has 50,000.
        known: of attackers with knowledge; the text has 15,000.
    """

    epochs: int
    steps: int
    known: int


def list_white_box(lengths: Lengths) -> Iterator[Listed]:
    """Figure 6.7."""
    texts = {LFW: (1.0, 1.0, 0.62), CIFAR: (1.0, 0.8, 0.19)}
    for place, network in enumerate((DCGAN, VAE, BEGAN)):
        for data in BOTH:
            yield Listed(WhiteBox(Target(data, network, lengths.epochs)), texts[data][place])
    for network, text in ((DCGAN, 0.98), (VAE, 0.97), (BEGAN, 0.60)):
        yield Listed(WhiteBox(Target(LFW, network, lengths.epochs, people=TEN)), text)


def list_black_box(lengths: Lengths) -> Iterator[Listed]:
    """Figures 6.8 and 6.5."""
    texts = {(LFW, DCGAN): 0.40, (LFW, VAE): 0.38, (CIFAR, DCGAN): 0.37, (CIFAR, VAE): 0.20}
    for (data, network), text in texts.items():
        yield Listed(BlackBox(Target(data, network, lengths.epochs), Gan, lengths.steps), text)
    for network in (DCGAN, VAE):
        yield Listed(BlackBox(Target(LFW, network, lengths.epochs, people=TEN), Gan, lengths.steps), 0.63)
    for data in BOTH:
        yield Listed(Euclidean(Target(data, DCGAN, lengths.epochs)), 0.10)


def list_longer(lengths: Lengths) -> Iterator[Listed]:
    """List what the black box may lack: the text's attacker, more steps on new samples, targets that overfit more."""
    steps = 5 * lengths.steps // 2
    for data, text in ((LFW, 0.40), (CIFAR, 0.37)):
        target = Target(data, DCGAN, lengths.epochs, samples=BATCH * steps // 2)
        overfitted = Target(data, DCGAN, 5 * lengths.epochs // 2)
        followed = [Target(data, TWICE, epochs) for epochs in (lengths.epochs, 5 * lengths.epochs // 2)]
        for own, most in ((target, steps), *((each, lengths.steps) for each in (overfitted, *followed))):
            yield Listed(SecondDcgan(own, most), text)
            yield Listed(BlackBox(own, Gan, most), text)


def list_knowledge(lengths: Lengths) -> Iterator[Listed]:
    """Figures 6.9, 6.11 and 6.6; shares of known members and of known others."""
    for data in BOTH:
        target, first = Target(data, DCGAN, lengths.epochs), data == LFW
        yield Listed(BlackBox(target, GanWithMembers, lengths.known, 0.2, 0.0), 0.60 if first else 0.37)
        yield Listed(BlackBox(target, GanWithKnownRecords, lengths.known, 0.3, 0.3), 0.60 if first else 0.58)
        yield Listed(BlackBox(target, Discriminator, lengths.known, 0.3, 0.3), 0.50 if first else 0.33)
        yield Listed(BlackBox(target, NonmemberDiscriminator, lengths.known, 0.0, 0.2), 0.14)
    target = Target(LFW, DCGAN, lengths.epochs)
    yield Listed(BlackBox(target, Gan, lengths.known, 0.1, 0.0, shadow=target), 0.18)


def list_private(lengths: Lengths) -> Iterator[Listed]:
    """Our own GAN: without noise, and with differential privacy, white and black box."""
    for epsilon in (None, 10.0, 1.0):
        faces = PrivateTarget(LFW, epsilon, epochs=lengths.epochs, sampled=True)
        objects = PrivateTarget(CIFAR, epsilon, epochs=lengths.epochs, members=1000, others=9000)
        for target in (faces, objects):
            yield Listed(target)
        yield Listed(BlackBox(faces, Gan, lengths.known))


def list_defences(lengths: Lengths) -> Iterator[Listed]:
    """Figures 6.17 and 6.18: gains over guessing; noise in the forward pass is not private."""
    for people, gains in ((TEN, (0.89, 0.88, 0.70)), (MANY, (0.52, 0.46, 0.23))):
        epochs = lengths.epochs if people == TEN else lengths.epochs // 4
        for defence, gain in zip((("", Defence()), NORMED, DROPOUT), gains, strict=True):
            target = Target(LFW, DCGAN, epochs, people=people, defence=defence)
            yield Listed(WhiteBox(target), gain=gain)
    for noise in (1.0, 10.0):
        defence = (f"forward noise {noise:g}", Defence(noise=noise))
        yield Listed(WhiteBox(Target(LFW, DCGAN, lengths.epochs, people=TEN, defence=defence)))


def list_dpgan(lengths: Lengths) -> Iterator[Listed]:
    """Figures 5 and 6 of the dp-GAN text: by epochs and noise, and by the size of the training set."""
    chosen = [(500, epochs) for epochs in (lengths.epochs // 16, lengths.epochs // 4, lengths.epochs)]
    chosen += [(count, lengths.epochs // 4) for count in (100, 2000, 5000)]
    for count, epochs in chosen:
        for noise in (0.0, 1.0, 5.0):
            target = PrivateTarget(LFW, noise=noise, epochs=epochs, members=count, others=count)
            yield Listed(target, 0.5 if noise else None)


def list_sizes(lengths: Lengths) -> Iterator[Listed]:
    """Figure 6.16: training sets of 10 to 90% of all images."""
    for data in BOTH:
        for share in SHARES:
            target = Target(data, DCGAN, lengths.epochs // 2, share, records=POOL)
            yield Listed(WhiteBox(target), 1.0)
            yield Listed(BlackBox(target, Gan, lengths.known))


PARTS = {
    "white-box": list_white_box,
    "black-box": list_black_box,
    "longer": list_longer,
    "knowledge": list_knowledge,
    "private": list_private,
    "defences": list_defences,
    "dpgan": list_dpgan,
    "sizes": list_sizes,
}


def list_experiments(parts: Sequence[str], lengths: Lengths, most: int | None) -> list[Listed]:
    """Return the experiments of some parts, at most so many of each, and those whose samples they need; each once."""
    found: dict[str, Listed] = {}
    for part in parts:
        for listed in islice(PARTS[part](lengths), most):
            source = listed.experiment.source
            if source is not None:
                found.setdefault(source.name, Listed(source))
            known = found.get(listed.experiment.name)
            text, gain = (known.text, listed.gain or known.gain) if known else (listed.text, listed.gain)
            found[listed.experiment.name] = Listed(listed.experiment, text, gain)
    return list(found.values())
