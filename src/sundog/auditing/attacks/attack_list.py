"""All attacks by name. They are imported when they are asked for: some need torch or scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence

from sundog.auditing.attack import Attack
from sundog.data.validation_errors import suggest
from sundog.errors import ArgumentError
from sundog.fit.device import check_device, refuse_missing_cuda

ALL = "all"


def list_attacks(device: str = "cpu") -> Sequence[Attack]:
    """Return all attacks, those that have found most first; networks train on the device.

    >>> [attack.name for attack in list_attacks()][:2]
    ['exact-match', 'singling-out']
    """
    from sundog.auditing.attacks.attribute_inference import AttributeInference
    from sundog.auditing.attacks.critic_score import CriticScore
    from sundog.auditing.attacks.density_classifier import DensityClassifier
    from sundog.auditing.attacks.density_ratio import DensityRatio, RareDensityRatio
    from sundog.auditing.attacks.euclidean_distance import EuclideanDistance
    from sundog.auditing.attacks.exact_match import ExactMatch
    from sundog.auditing.attacks.known_members import KnownMembers
    from sundog.auditing.attacks.model_likelihood import Likelihood, LikelihoodRatio
    from sundog.auditing.attacks.singling_out import SinglingOut
    from sundog.auditing.attacks.trained_discriminator import (
        Discriminator,
        Gan,
        GanWithKnownRecords,
        GanWithMembers,
        NonmemberDiscriminator,
    )

    return (
        ExactMatch(),
        SinglingOut(),
        RareDensityRatio(),
        DensityRatio(),
        KnownMembers(),
        DensityClassifier(),
        Likelihood(),
        LikelihoodRatio(),
        CriticScore(),
        AttributeInference(),
        EuclideanDistance(),
        Gan(device=device),
        GanWithMembers(device=device),
        GanWithKnownRecords(device=device),
        Discriminator(device=device),
        NonmemberDiscriminator(device=device),
    )


def choose_attacks(name: str, device: str = "cpu") -> Sequence[Attack]:
    """Return the attack of that name, or all that are not slow; networks train on the device.

    >>> choose_attacks("exact")
    Traceback (most recent call last):
    ...
    sundog.errors.ArgumentError: there is no attack 'exact'; did you mean 'exact-match'?
    """
    check_device(device)
    attacks = {attack.name: attack for attack in list_attacks(device)}
    if name not in (ALL, *attacks):
        raise ArgumentError(f"there is no attack {name!r}; {suggest(name, [ALL, *attacks])}")
    chosen = [attack for attack in attacks.values() if (not attack.slow if name == ALL else attack.name == name)]
    if device != "cpu":
        if not any(attack.slow for attack in chosen):
            slow = ", ".join(attack.name for attack in attacks.values() if attack.slow)
            raise ArgumentError(f"attack {name!r} does not use device; leave it out, or name one of {slow}")
        refuse_missing_cuda()
    return tuple(chosen)


def list_untried_attacks(name: str) -> Sequence[Attack]:
    """Return the slow attacks that `all` leaves out; none if one attack was asked for.

    >>> [attack.name for attack in list_untried_attacks("all")][:2], list_untried_attacks("gan")
    (['gan', 'gan-members'], ())
    """
    return tuple(attack for attack in list_attacks() if attack.slow) if name == ALL else ()
