"""The normal distribution of latent variables, as the decoder gets to know it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.contracts.material import schema_of
from torch import nn

from sundog.data.records import Records
from sundog.errors import BudgetExceededError
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext, Parts
from sundog.models.vae.latent_moments import _regularise, _yield_moments, fit_decoders_to_latents, make_latent_charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource

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


def fold(
    encoders: list[nn.Sequential], parts: Parts, count: int, *, noise: float = 1e-4, told: int = 0
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Weight and bias of decoders that had gone straight through."""
    layers = [nn.Linear(LATENT + told, LATENT + told) for _ in encoders]
    for layer in layers:
        with torch.no_grad():
            layer.weight.copy_(torch.eye(LATENT + told))
            layer.bias.zero_()
    features = Features(SCHEMA)
    fit_decoders_to_latents(
        encoders,
        [nn.Sequential(layer) for layer in layers],
        features,
        features.to_examples(records(count)),
        parts,
        noise_multiplier=noise,
        ledger=Ledger(epsilon=1e12, delta=1e-5),
        context=FitContext(),
    )
    return [(layer.weight.detach(), layer.bias.detach()) for layer in layers]


def test_the_decoder_takes_the_mean_and_the_covariance_in() -> None:
    ((weight, bias),) = fold([encoder([0.4, -0.3], [0.5, 1.2])], Parts.whole(20_000), 20_000)
    torch.testing.assert_close(bias, torch.tensor([0.4, -0.3]), atol=0.05, rtol=0)
    torch.testing.assert_close(weight @ weight.T, torch.tensor([[0.25, 0.0], [0.0, 1.44]]), atol=0.1, rtol=0)


def test_each_part_has_its_own() -> None:
    owner = np.arange(6000) % 2
    two = fold([encoder([1.0, 0.0], [1.0, 1.0]), encoder([-1.0, 0.0], [1.0, 1.0])], Parts(owner, (3e3, 3e3)), 6000)
    assert [round(float(bias[0])) for _, bias in two] == [1, -1]


def test_what_the_decoder_is_told_stays_as_it_is() -> None:
    ((weight, bias),) = fold([encoder([0.4, 0.0], [0.5, 0.5])], Parts.whole(2000), 2000, told=3)
    assert torch.equal(weight[2:, 2:], torch.eye(3))
    assert torch.equal(bias[2:], torch.zeros(3))


@pytest.mark.parametrize("count", [0, 1])
def test_noise_alone_leaves_a_decoder_that_works(count: int) -> None:
    ((weight, bias),) = fold([encoder([0.0, 0.0], [1.0, 1.0])], Parts.whole(count), count, noise=100.0)
    assert bool(weight.isfinite().all())
    assert bool((bias.abs() <= 3 * 2**0.5 + 1e-6).all())


def test_noise_has_the_scale_that_is_charged() -> None:
    """Of the mean, with power: two thirds or three halves of it would be told apart."""
    fixed = encoder([1.5, -1.5], [1e-6, 1e-6])  # so far from 0 that hardly anything is taken away
    means = [fold([fixed], Parts.whole(1), 1, noise=0.02)[0][1] for _ in range(400)]
    found = float((torch.stack(means) - torch.tensor([1.5, -1.5])).square().mean().sqrt())
    assert 0.85 < found / (0.02 * np.sqrt(8 + 8**2)) < 1.15


def test_what_is_no_larger_than_its_noise_hardly_moves_the_decoder() -> None:
    """Against the same without noise that is known of: a mean of 0 and a variance of 1 are what it had."""
    rng, upper = np.random.default_rng(0), np.triu_indices(8)
    truth = np.concatenate([np.zeros(8), np.eye(8)[upper]])
    moved = {0.1: 0.0, 1e-9: 0.0}
    for _ in range(50):
        moments = truth + 0.1 * rng.standard_normal(len(truth))
        for scale in moved:
            mean, factor = _regularise(moments, 8, upper, scale=scale)
            moved[scale] += float(np.square(mean).sum() + np.square(factor @ factor.T - np.eye(8)).sum())
    assert moved[0.1] < 0.1 * moved[1e-9]


def test_no_record_changes_the_z_of_another() -> None:
    torch.manual_seed(0)
    wide = nn.Sequential(nn.Linear(2, 300), nn.ReLU(), nn.Linear(300, 2 * LATENT))
    features, found = Features(SCHEMA), []
    for count in (1, 2, 3001):
        examples, ledger = (
            features.to_examples(records(count)),
            Ledger(epsilon=1, delta=1e-6, noise=NoiseSource.seeded(1)),
        )
        ((_, rows), *_) = _yield_moments(
            [wide], features, examples, Parts.whole(count), np.triu_indices(LATENT), 3.0, ledger
        )
        found.append(rows[0])
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(found[0][:LATENT] * 2**10, np.rint(found[0][:LATENT] * 2**10))


def test_many_latent_variables_are_measured_few_records_at_a_time() -> None:
    features, upper = Features(SCHEMA), np.triu_indices(64)
    ledger = Ledger(epsilon=1, delta=1e-6)
    chunks = _yield_moments(
        [nn.Linear(2, 128)], features, features.to_examples(records(5000)), Parts.whole(5000), upper, 3.0, ledger
    )
    sizes = [len(rows) for _, rows in chunks]
    assert sum(sizes) == 5000
    assert max(sizes) * len(upper[0]) <= 2**22


def test_nothing_is_measured_that_is_not_paid_for() -> None:
    ledger = Ledger(epsilon=0.1, delta=1e-6)
    features = Features(SCHEMA)
    with pytest.raises(BudgetExceededError):
        fit_decoders_to_latents(
            [encoder([0.0, 0.0], [1.0, 1.0])],
            [nn.Sequential(nn.Linear(LATENT, 4))],
            features,
            features.to_examples(records(10)),
            Parts.whole(10),
            noise_multiplier=1.0,
            ledger=ledger,
            context=FitContext(),
        )
    assert ledger.charges == ()
    assert make_latent_charge(2.0).event.noise_multiplier == 2.0  # type: ignore[union-attr]
