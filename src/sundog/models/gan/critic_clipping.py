"""How a critic's gradients are clipped: the ways of the dp-GAN text (4.1, 4.2), and decay (Frigerio et al. 2019).

Groups of parameters are clipped by themselves; bounds are fixed, the mean norms of public records, or the noisy mode
of private norms (DPNorm). One record is in every group, and the groups are one Gaussian vector: whichever way is
chosen, a step costs what its plan says (docs/training.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sundog.models.gan.adversarial_step import Duel
from sundog.models.neural.features import Compact
from sundog.training.clipping import DPNORM, ClipPolicy, Decay, DPNorm, Fixed, PublicMean
from sundog.training.groups import Groups, by_bound, flat, trainable, weights_and_biases
from sundog.training.per_example.engine import compute_norms
from sundog.training.training_plan import TrainingPlan

ALL, KINDS = "all", "weights and biases"
PUBLIC = "public"


def groups_for(duel: Duel, settings: Mapping[str, Any], public: Compact | None) -> Groups:
    """All parameters together; weights and biases apart; or so many clusters of similar norms (Algorithm 2)."""
    if settings["groups"] == ALL:
        return flat(duel.critic)
    if settings["groups"] == KINDS:
        return weights_and_biases(duel.critic)
    parameters = trainable(duel.critic)
    each = Groups(parameters, range(len(parameters)))
    return by_bound(duel.critic, _norms(duel, public, each).mean(dim=1).tolist(), settings["groups"])


class KeptGroups:
    """Which parameters go together, for a checkpoint: a warm start that is made again may find others."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    def state_dict(self) -> dict[str, Any]:
        """What to keep."""
        return {"of": list(self.groups.of)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what was kept."""
        if len(state["of"]) != len(self.groups.of):
            raise ValueError("groups of other parameters")
        object.__setattr__(self.groups, "of", list(state["of"]))


def policy_for(
    duel: Duel, settings: Mapping[str, Any], public: Compact | None, groups: Groups, training: TrainingPlan
) -> ClipPolicy:
    """Bounds that stay, fall, or follow the norms of public or (DPNorm) private records.

    Args:
        duel: the networks.
        settings: of the model.
        public: public records, where the settings ask for them.
        groups: what is clipped together.
        training: the number of steps, over which bounds fall to `decay` of themselves, and their noise.
    """
    if settings["clip"] == DPNORM:
        return DPNorm(noise_multiplier=training.noise_multiplier, device=duel.prior.device)
    if settings["clip"] == PUBLIC:
        return PublicMean(lambda: _norms(duel, public, groups))
    bounds = torch.full((groups.count,), settings["clip"] / groups.count**0.5, device=duel.prior.device)
    return Fixed(bounds) if settings["decay"] == 1.0 else Decay(bounds, settings["decay"] ** (1 / training.steps))


def needs_public(settings: Mapping[str, Any]) -> list[str]:
    """The settings that are of no use without public records."""
    asked = {
        "clip": settings["clip"] == PUBLIC,
        "groups": type(settings["groups"]) is int,
        "warm": bool(settings["warm"]),
    }
    return [name for name, needed in asked.items() if needed]


def _norms(duel: Duel, public: Compact | None, groups: Groups) -> Tensor:
    assert public is not None  # noqa: S101
    return compute_norms(duel.critic, duel.loss, public, groups)
