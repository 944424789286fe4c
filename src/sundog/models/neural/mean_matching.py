"""Shift the logits of a network so that its samples have the measured means.

Gradients of unusual records are clipped more than others, so their features become too rare. The measured means do not
have that bias.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sundog.models.neural.features import Features

_ROUNDS = 15


@torch.no_grad()
def match_means(features: Features, logits: Tensor, means: Tensor, *, least: float) -> Tensor:
    """Return the shift of all rows of logits after which features have these means on average.

    Args:
        features: whose logits these are.
        logits: of many draws, (n, features).
        means: as they were measured.
        least: means closer to 0 or 1 than this are not matched: noise hides them.
    """
    known = (means > least) & (means < features.compute_presence(means) - least)
    shift = torch.zeros_like(means)
    target = features.logits(features.condition_on_presence(means), least=0.0)
    for _ in range(_ROUNDS):
        found = features.means(logits + shift).mean(dim=0)
        shift += torch.where(known, target - features.logits(features.condition_on_presence(found), least=0.0), 0.0)
    return shift
