"""Our private training step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.optim import Adam

from steps.networks import Network, Vae
from steps.peers import BOUND, NOISE, RATE, Step
from sundog.privacy.noise import NoiseSource
from sundog.training.batches.examples import Padded, list_leaves
from sundog.training.clipping import Fixed
from sundog.training.groups import group_all
from sundog.training.speed.cuda_graphs import GraphedStep
from sundog.training.speed.options import Speed
from sundog.training.stacked_modules import stack
from sundog.training.step import PrivateStep


def private(
    network: Network,
    batch: Any,
    size: int | Tensor,
    *,
    fast_noise: bool = False,
    compiled: bool | None = None,
    tf32: bool = False,
) -> Step:
    """Return a step, by default with secure noise; on a GPU, a CUDA graph over data on the device."""
    groups = group_all(network)
    device = groups.parameters[0].device
    on_gpu = device.type == "cuda"
    adam: dict[str, Any] = {"capturable": True, "foreach": True} if on_gpu else {"fused": True}
    take = PrivateStep(
        module=network,
        private_loss=network,
        groups=groups,
        policy=Fixed(torch.tensor([BOUND], device=device)),
        optimizer=Adam(groups.parameters, RATE, **adam),
        noise=NoiseSource(fast_gradients=fast_noise),
        noise_multiplier=NOISE,
        expected_batch=size,
        public_loss=network.public_loss if network.has_public_loss else None,
        speed=Speed("tf32" if tf32 else "float32", compiled=compiled),
    )
    if on_gpu:
        return _graphed(take, batch)

    def step() -> None:
        network.before_step()
        take([batch])

    return step


def _graphed(take: PrivateStep, batch: Any) -> Step:
    """Return a step that sends the positions of a batch to the device and gathers the records there."""
    owner = None
    if isinstance(batch, Padded):
        owner = np.nonzero(batch.present.cpu().numpy())[0]
        batch = batch.examples[batch.present]
    places = np.arange(len(list_leaves(batch)[0]))
    capacity = len(places) if owner is None else int(np.bincount(owner).max())
    capture_graph = GraphedStep(take, batch, capacity=capacity, owner=owner)

    def step() -> None:
        capture_graph(places)

    return step


def stacked(networks: Sequence[Vae], shares: Sequence[Tensor], **settings: Any) -> Step:
    """Return one private step of several stacked VAEs, each on its share of the examples."""
    whole = stack(networks)
    assert isinstance(whole, Vae)
    sizes = torch.tensor([len(share) for share in shares], device=shares[0].device)
    examples = pad_sequence(list(shares), batch_first=True)
    present = torch.arange(examples.shape[1], device=sizes.device) < sizes[:, None]
    return private(whole, Padded(examples, present), sizes, **settings)


def in_turn(networks: Sequence[Vae], shares: Sequence[Tensor], **settings: Any) -> Step:
    """Return the same with separate steps, one after another."""
    torch._dynamo.config.recompile_limit = 8 * len(networks)  # or some of the optimisers would not be compiled
    steps = [private(network, share, len(share), **settings) for network, share in zip(networks, shares, strict=True)]

    def step() -> None:
        for one in steps:
            one()

    return step
