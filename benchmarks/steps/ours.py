"""One private step of ours, ready to be called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.optim import Adam

from steps.networks import Network, Vae
from steps.peers import BOUND, NOISE, RATE, Step
from sundog.privacy.noise import NoiseSource
from sundog.training.clipping import Fixed
from sundog.training.gradients import Padded
from sundog.training.groups import flat
from sundog.training.stacked import stack
from sundog.training.step import PrivateStep


def private(network: Network, batch: Any, size: int | Tensor, noise: NoiseSource | None = None) -> Step:
    """A step with secure noise, unless told otherwise, and the fused Adam."""
    groups = flat(network)
    take = PrivateStep(
        module=network,
        private_loss=network,
        groups=groups,
        policy=Fixed(torch.tensor([BOUND], device=groups.parameters[0].device)),
        optimizer=Adam(groups.parameters, RATE, fused=True),
        noise=NoiseSource() if noise is None else noise,
        noise_multiplier=NOISE,
        expected_batch=size,
        public_loss=network.public_loss if network.has_public_loss else None,
    )

    def step() -> None:
        network.before_step()
        take([batch])

    return step


def stacked(networks: Sequence[Vae], shares: Sequence[Tensor]) -> Step:
    """One private step of several VAEs, each on its share of the examples, as one computation."""
    whole = stack(networks)
    assert isinstance(whole, Vae)
    sizes = torch.tensor([len(share) for share in shares], device=shares[0].device)
    examples = pad_sequence(list(shares), batch_first=True)
    present = torch.arange(examples.shape[1], device=sizes.device) < sizes[:, None]
    return private(whole, Padded(examples, present), sizes)


def in_turn(networks: Sequence[Vae], shares: Sequence[Tensor]) -> Step:
    """The same one after the other, each network with a step of its own."""
    steps = [private(network, share, len(share)) for network, share in zip(networks, shares, strict=True)]

    def step() -> None:
        for one in steps:
            one()

    return step
