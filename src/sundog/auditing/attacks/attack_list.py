"""All attacks by name. They are imported when they are asked for: some need torch or scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence

from sundog.auditing.attack import Attack
from sundog.data.validation_errors import suggest
from sundog.errors import ArgumentError

ALL = "all"


def list_attacks() -> Sequence[Attack]:
    """Return all attacks, those that have found most first.

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
        Gan(),
        GanWithMembers(),
        GanWithKnownRecords(),
        Discriminator(),
        NonmemberDiscriminator(),
    )


def choose_attacks(name: str) -> Sequence[Attack]:
    """Return the attack of that name, or all that are not slow.

    >>> choose_attacks("exact")
    Traceback (most recent call last):
    ...
    sundog.errors.ArgumentError: there is no attack 'exact'; did you mean 'exact-match'?
    """
    attacks = {attack.name: attack for attack in list_attacks()}
    if name == ALL:
        return tuple(attack for attack in attacks.values() if not attack.slow)
    if name not in attacks:
        raise ArgumentError(f"there is no attack {name!r}; {suggest(name, [ALL, *attacks])}")
    return (attacks[name],)


def list_untried_attacks(name: str) -> Sequence[Attack]:
    """Return the slow attacks that `all` leaves out; none if one attack was asked for.

    >>> [attack.name for attack in list_untried_attacks("all")][:2], list_untried_attacks("gan")
    (['gan', 'gan-members'], ())
    """
    return tuple(attack for attack in list_attacks() if attack.slow) if name == ALL else ()
