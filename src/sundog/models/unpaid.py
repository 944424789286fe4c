"""What models measure, by the purposes of its charges, and what of it none of the charges paid for."""

from __future__ import annotations

from collections.abc import Sequence

from sundog.privacy.events import Charge

NORM, MEANS = "length of records", "means of features"
TRAINING, NAMING = "training", "naming"
LATENT = "latent variables"
PEOPLE = "number of people"
WIDTH, MOMENTS, CENTRES, COUNTS = (f"clustering: {what}" for what in ("kernel width", "space", "centres", "counts"))


def unpaid(charges: Sequence[Charge], due: dict[str, str]) -> list[str]:
    """Which purposes have no charge of their kind of event.

    >>> unpaid([], {MEANS: "gaussian"})
    ['means of features']
    """
    paid = {(charge.purpose, charge.event.kind) for charge in charges}
    return [purpose for purpose, kind in due.items() if (purpose, kind) not in paid]


def unpaid_means(charges: Sequence[Charge]) -> list[str]:
    """The means that a network starts from, and the length that records were clipped to for them."""
    return unpaid(charges, {NORM: "pure", MEANS: "gaussian"})


def unpaid_training(charges: Sequence[Charge]) -> list[str]:
    """The weights, if no charge paid for them."""
    return ["training of the weights"] if unpaid(charges, {TRAINING: "sampled_gaussian"}) else []


def unpaid_naming(charges: Sequence[Charge]) -> list[str]:
    """The classifier that names what a generator was told, if no charge paid for it."""
    return ["training of the classifier"] if unpaid(charges, {NAMING: "sampled_gaussian"}) else []


def unpaid_clustering(charges: Sequence[Charge], *, public: bool) -> list[str]:
    """What a clustering must have learned from private records."""
    of_records = {} if public else {WIDTH: "pure", MOMENTS: "gaussian"}
    return unpaid(charges, {CENTRES: "gaussian", COUNTS: "gaussian", **of_records})
