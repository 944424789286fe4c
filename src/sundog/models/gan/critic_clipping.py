"""How a critic's gradients are clipped: the ways of the dp-GAN text (4.1, 4.2), and decay (Frigerio et al. 2019).

Groups of parameters are clipped separately; bounds are fixed, the mean norms of public records, or the noisy mode
of private norms (DPNorm). One record is in every group, and the groups are one Gaussian vector: a step costs the same
whichever way is chosen (docs/training.md).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sundog.models.gan.adversarial_step import AdversarialGame
from sundog.models.gan.configuration import GanSettings
from sundog.models.neural.features import Compact
from sundog.training.clipping import ClipPolicy, Decay, DPNorm, Fixed, PublicMean
from sundog.training.groups import Groups, group_all, group_by_bound, group_weights_and_biases, list_trainable
from sundog.training.per_example.engine import compute_norms
from sundog.training.training_plan import TrainingPlan


def choose_groups(game: AdversarialGame, settings: GanSettings, public: Compact | None) -> Groups:
    """Return one group, one of weights and one of biases, or groups with similar norms (Algorithm 2)."""
    if settings.groups == "all":
        return group_all(game.critic)
    if settings.groups == "weights and biases":
        return group_weights_and_biases(game.critic)
    parameters = list_trainable(game.critic)
    each = Groups(parameters, range(len(parameters)))
    return group_by_bound(game.critic, _compute_public_norms(game, public, each).mean(dim=1).tolist(), settings.groups)


class SavedGroups:
    """The groups in a checkpoint: a warm start that is repeated may find others."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    def state_dict(self) -> dict[str, Any]:
        """Return the groups for a checkpoint."""
        return {"of": list(self.groups.of)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the groups from a checkpoint."""
        if len(state["of"]) != len(self.groups.of):
            raise ValueError("groups of other parameters")
        object.__setattr__(self.groups, "of", list(state["of"]))


def choose_policy(
    game: AdversarialGame, settings: GanSettings, public: Compact | None, groups: Groups, training: TrainingPlan
) -> ClipPolicy:
    """Return the clipping policy: fixed or decaying bounds, or the norms of public or (DPNorm) private records.

    Args:
        game: the networks.
        settings: of the model.
        public: public records, where the settings ask for them.
        groups: what is clipped together.
        training: the number of steps, over which bounds fall to `decay` of themselves, and their noise.
    """
    if settings.clip == "dpnorm":
        return DPNorm(noise_multiplier=training.noise_multiplier, device=game.prior.device)
    if settings.clip == "public":
        return PublicMean(lambda: _compute_public_norms(game, public, groups))
    bounds = torch.full((groups.count,), settings.clip / groups.count**0.5, device=game.prior.device)
    return Fixed(bounds) if settings.decay == 1.0 else Decay(bounds, settings.decay ** (1 / training.steps))


def _compute_public_norms(game: AdversarialGame, public: Compact | None, groups: Groups) -> Tensor:
    assert public is not None  # noqa: S101
    return compute_norms(game.critic, game.loss, public, groups)
