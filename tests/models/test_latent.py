"""The normal distribution of latent variables, as the decoder gets to know it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.contracts.material import schema_of
from torch import nn

from sundog.data.records import Records
from sundog.errors import BudgetExceededError
from sundog.models.base import Parts, Workshop
from sundog.models.features import Features
from sundog.models.latent import latent_charge, put_into_decoders
from sundog.privacy.ledger import Ledger

SCHEMA = schema_of({"kind": {"type": "categorical", "values": ["a", "b"]}})
LATENT = 2


def records(count: int) -> Records:
    return Records(SCHEMA, {"kind": (np.arange(count) % 2).astype(np.uint8)}, count)


def encoder(mean: list[float], deviation: list[float]) -> nn.Sequential:
    """Tells the same of every record."""
    layer = nn.Linear(2, 2 * LATENT)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(torch.tensor([*mean, *(2 * np.log(deviation)).tolist()]))
    return nn.Sequential(layer)


def folded(
    encoders: list[nn.Sequential], parts: Parts, count: int, *, noise: float = 1e-4, told: int = 0
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Weight and bias of decoders that had gone straight through."""
    layers = [nn.Linear(LATENT + told, LATENT + told) for _ in encoders]
    for layer in layers:
        with torch.no_grad():
            layer.weight.copy_(torch.eye(LATENT + told))
            layer.bias.zero_()
    features = Features(SCHEMA)
    put_into_decoders(
        encoders,
        [nn.Sequential(layer) for layer in layers],
        features,
        features.examples(records(count)),
        parts,
        noise_multiplier=noise,
        ledger=Ledger(epsilon=1e12, delta=1e-5),
        workshop=Workshop(),
    )
    return [(layer.weight.detach(), layer.bias.detach()) for layer in layers]


def test_the_decoder_takes_the_mean_and_the_covariance_in() -> None:
    ((weight, bias),) = folded([encoder([0.4, -0.3], [0.5, 1.2])], Parts.whole(20_000), 20_000)
    torch.testing.assert_close(bias, torch.tensor([0.4, -0.3]), atol=0.05, rtol=0)
    torch.testing.assert_close(weight @ weight.T, torch.tensor([[0.25, 0.0], [0.0, 1.44]]), atol=0.1, rtol=0)


def test_each_part_has_its_own() -> None:
    owner = np.arange(6000) % 2
    two = folded([encoder([1.0, 0.0], [1.0, 1.0]), encoder([-1.0, 0.0], [1.0, 1.0])], Parts(owner, (3e3, 3e3)), 6000)
    assert [round(float(bias[0])) for _, bias in two] == [1, -1]


def test_what_the_decoder_is_told_stays_as_it_is() -> None:
    ((weight, bias),) = folded([encoder([0.4, 0.0], [0.5, 0.5])], Parts.whole(2000), 2000, told=3)
    assert torch.equal(weight[2:, 2:], torch.eye(3))
    assert torch.equal(bias[2:], torch.zeros(3))


@pytest.mark.parametrize("count", [0, 1])
def test_noise_alone_leaves_a_decoder_that_works(count: int) -> None:
    ((weight, bias),) = folded([encoder([0.0, 0.0], [1.0, 1.0])], Parts.whole(count), count, noise=100.0)
    assert bool(weight.isfinite().all())
    assert bool((bias.abs() <= 3 * 2**0.5 + 1e-6).all())


def test_noise_has_the_scale_that_is_charged() -> None:
    """Of the mean, with power: two thirds or three halves of it would be told apart."""
    means = [folded([encoder([0.0, 0.0], [0.5, 0.5])], Parts.whole(1), 0, noise=0.02)[0][1] for _ in range(400)]
    found = float(torch.stack(means).std())
    width, norm = LATENT + 3, np.sqrt(8 + 8**2)
    assert 0.85 < found / (0.02 * norm * np.sqrt(1 + width**-0.5)) < 1.15


def test_nothing_is_measured_that_is_not_paid_for() -> None:
    ledger = Ledger(epsilon=0.1, delta=1e-6)
    features = Features(SCHEMA)
    with pytest.raises(BudgetExceededError):
        put_into_decoders(
            [encoder([0.0, 0.0], [1.0, 1.0])],
            [nn.Sequential(nn.Linear(LATENT, 4))],
            features,
            features.examples(records(10)),
            Parts.whole(10),
            noise_multiplier=1.0,
            ledger=ledger,
            workshop=Workshop(),
        )
    assert ledger.charges == ()
    assert latent_charge(2.0).event.noise_multiplier == 2.0  # type: ignore[union-attr]
