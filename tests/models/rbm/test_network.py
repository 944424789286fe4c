"""The Boltzmann machine's energy, phases and chain, against sums over all of its states."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import special
from tests.contracts.material import schema_of
from torch import Tensor

from sundog.models.neural.features import Features
from sundog.models.rbm.network import RbmNetwork
from sundog.training.clipping import Fixed
from sundog.training.groups import group_all
from sundog.training.per_example.engine import clip_and_sum
from sundog.training.stacked_modules import stack, unstack

Floats = npt.NDArray[np.float64]

SETS: dict[str, dict[str, Any]] = {"basket": {"type": "set", "universe": 4, "max_size": 4}}
MIX: dict[str, dict[str, Any]] = {
    "colour": {"type": "categorical", "values": ["r", "g", "b"]},
    "old": {"type": "boolean"},
    "basket": {"type": "set", "universe": 2, "max_size": 2},
    "meter": {"type": "series", "length": 1, "min": 0, "max": 1, "resolution": 1, "nullable": True},
}
both = pytest.mark.parametrize("columns", [SETS, MIX], ids=["sets", "mix"])


def network(columns: dict[str, dict[str, Any]], *, size: float = 1.0, seed: int = 0, **options: Any) -> RbmNetwork:
    """One of three hidden units, with weights of some size."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        features = Features(schema_of(columns))
        made = RbmNetwork(features, torch.rand(features.width), **{"hidden": 3, "chains": 5, **options})
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.normal_(std=size)
    return made


def states(columns: dict[str, dict[str, Any]]) -> Tensor:
    """Every vector that a record can be."""
    if columns is SETS:
        return torch.tensor(list(itertools.product([0.0, 1.0], repeat=4)))
    colours, ages = np.eye(3).tolist(), np.eye(2).tolist()
    baskets = itertools.product([0.0, 1.0], repeat=2)
    meters = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]  # the second says that it is missing
    return torch.tensor([[*a, *b, *c, *d] for a, b, c, d in itertools.product(colours, ages, baskets, meters)])


HIDDEN = torch.tensor(list(itertools.product([0.0, 1.0], repeat=3)))


def energies(made: RbmNetwork, x: Tensor) -> Floats:
    """E of each vector with each state of the hidden units, one unit at a time: (vectors, 8)."""
    weight, hidden_bias = made.hidden.weight.detach().double().numpy(), made.hidden.bias.detach().double().numpy()
    bias, centre = made.visible.weight.detach().double().numpy()[0], made.centre.double().numpy()[0]
    found = np.zeros((len(x), len(HIDDEN)))
    levels, gaps = made.features.levels, made.features.gaps
    for row, vector in enumerate(x.double().numpy()):
        z = vector - centre
        if gaps.start < gaps.stop and vector[gaps.start] == 1:
            z[levels.start] = 0.0
        elif made.deviation is not None:
            z[levels.start] /= made.deviation
        for column, h in enumerate(HIDDEN.double().numpy()):
            total = -float(z @ bias)
            for j in range(3):
                total -= (h[j] - 0.5) * (hidden_bias[j] + float(weight[j] @ z))
            if made.deviation is not None:
                total += z[levels.start] ** 2 / 2
            found[row, column] = total
    return found


def distribution(made: RbmNetwork, x: Tensor) -> Floats:
    """The exact probability of each of all vectors."""
    return np.asarray(special.softmax(special.logsumexp(-energies(made, x), axis=1)))


def gradient(made: RbmNetwork, loss: Tensor) -> Floats:
    return np.concatenate(
        [part.flatten().double().numpy() for part in torch.autograd.grad(loss, list(made.parameters()))]
    )


# --- the energy ---


@both
def test_free_energy_sums_over_all_hidden_states(columns: dict[str, dict[str, Any]]) -> None:
    made, x = network(columns), states(columns)
    expected = -special.logsumexp(-energies(made, x), axis=1)
    assert made.free_energy(x).detach().numpy() == pytest.approx(expected, abs=1e-4)


@both
def test_conditional_distributions_are_those_of_the_joint_one(columns: dict[str, dict[str, Any]]) -> None:
    made, x = network(columns), states(columns)
    table = -energies(made, x)
    for number, h in enumerate(HIDDEN):
        given = special.log_softmax(table[:, number])
        found = -made.features.loss(made.logits(h).expand(len(x), -1), x)
        assert found.detach().numpy() == pytest.approx(given, abs=1e-4)
    p = special.softmax(table, axis=1) @ HIDDEN.double().numpy()
    torch.manual_seed(0)
    drawn = made.draw_hidden(x.expand(20_000, -1, -1)).mean(dim=0).numpy()
    assert np.abs(drawn - p).max() < 6 * 0.5 / math.sqrt(20_000)


def test_centring_does_not_change_the_distribution() -> None:
    made, x = network(SETS), states(SETS)
    other = network(SETS, seed=1)
    other.load_state_dict(made.state_dict())
    with torch.no_grad():
        other.hidden.bias.sub_(other.hidden.weight @ other.centre[0])
        other.centre.zero_()
    assert distribution(other, x) == pytest.approx(distribution(made, x), abs=1e-6)
    difference = (made.free_energy(x) - other.free_energy(x)).detach()
    assert float(difference.std()) < 1e-5


def test_it_begins_as_the_independent_columns_of_the_means() -> None:
    features = Features(schema_of(MIX))
    means = torch.tensor([0.5, 0.2, 0.3, 0.9, 0.1, 0.7, 0.05, 0.4, 0.25])
    made = RbmNetwork(features, means, hidden=3, chains=20_000)
    with torch.no_grad():
        made.hidden.weight.zero_()
    x = states(MIX)
    found = torch.from_numpy(distribution(made, x)).float() @ x
    torch.testing.assert_close(found, means)
    assert float((made.particles.mean(dim=0) - means).abs().max()) < 6 * 0.5 / math.sqrt(20_000)


# --- the gradient ---


def exact_gradient(made: RbmNetwork, data: Tensor, x: Tensor) -> Floats:
    """Of the mean log-likelihood, by finite differences of sums over all states."""

    def likelihood() -> float:
        log_all = special.logsumexp(-energies(made, x))
        return float((special.logsumexp(-energies(made, data), axis=1) - log_all).mean())

    found = []
    with torch.no_grad():
        for parameter in made.parameters():
            for place in range(parameter.numel()):
                flat_view, kept = parameter.view(-1), float(parameter.view(-1)[place])
                values = []
                for shift in (2.0**-6, -(2.0**-6)):
                    flat_view[place] = kept + shift
                    values.append(likelihood())
                flat_view[place] = kept
                found.append((values[0] - values[1]) * 2.0**5)
    return np.array(found)


def test_two_phases_are_the_gradient_of_the_likelihood() -> None:
    made, x = network(SETS), states(SETS)
    data = x[[1, 5, 5, 12]]
    p = torch.from_numpy(distribution(made, x)).float()
    found = gradient(made, made.free_energy(data).mean() - (p * made.free_energy(x)).sum())
    assert -found == pytest.approx(exact_gradient(made, data, x), abs=1e-3)


@pytest.mark.parametrize(("moves", "is_near"), [(400, True), (20, False)], ids=["mixed", "too few steps"])
def test_a_long_persistent_chain_has_the_gradient_of_the_likelihood(moves: int, is_near: bool) -> None:
    made, x = network(SETS, size=0.2, chains=20_000, moves=moves), states(SETS)
    with torch.no_grad():
        made.hidden.weight.add_(2.0)  # all or nothing, and rarely from one to the other
    data = x[[1, 5, 5, 12]]
    made.particles.zero_()  # far from what the model would dream
    torch.manual_seed(1)
    made.update_buffers(1.0)
    found = gradient(made, made.free_energy(data).mean() + made.public_loss())
    each = np.array([gradient(made, made.free_energy(row)) for row in x])
    p = distribution(made, x)
    deviation = np.sqrt((p @ each**2 - (p @ each) ** 2) / 20_000)
    assert bool((np.abs(found + exact_gradient(made, data, x)) < 5 * deviation + 1e-4).all()) is is_near


@both
def test_particles_are_weighed_as_records_are_clipped(columns: dict[str, dict[str, Any]]) -> None:
    """So that a model that is the data stays what it is."""
    x = states(columns)
    for clip, is_same in ((1.7, True), (math.inf, False)):
        made = network(columns, chains=len(x))
        made.clip = clip
        made.particles.copy_(x)
        groups = group_all(made)
        private = clip_and_sum(made, made.free_energy, x, groups, Fixed(torch.tensor([1.7])).weigh)
        assert float(private.norms.min()) < 1.7 < float(private.norms.max())
        public = gradient(made, made.public_loss())
        mean = np.concatenate([part.flatten().double().numpy() for part in private.sums]) / len(x)
        assert bool(np.abs(mean + public).max() < 1e-5) is is_same


def test_nothing_moves_before_the_first_step() -> None:
    made = network(MIX)
    before = made.particles.clone()
    made.update_buffers(0.0)
    assert torch.equal(made.particles, before)


# --- the chain ---


def test_every_particle_is_a_possible_record() -> None:
    made = network(MIX, size=2.0, chains=500, moves=3)
    possible = {tuple(row) for row in states(MIX).tolist()}
    for _ in range(10):
        made.update_buffers(1.0)
        assert {tuple(row) for row in made.particles.tolist()} <= possible


def test_the_chain_finds_the_distribution() -> None:
    made, x = network(MIX, size=0.7, chains=40_000, moves=40), states(MIX)
    torch.manual_seed(3)
    made.update_buffers(1.0)
    places = (made.particles[:, None] == x).all(dim=-1).int().argmax(dim=1)
    p = distribution(made, x)
    found = np.bincount(places.numpy(), minlength=len(x)) / 40_000
    assert np.abs(found - p).max() < 6 * math.sqrt(p.max() / 40_000)


def test_a_stack_is_its_networks_one_by_one() -> None:
    single = [network(MIX, seed=seed, chains=7, moves=2) for seed in range(3)]
    whole = stack(single)
    assert isinstance(whole, RbmNetwork)
    for made in (*single, whole):
        made.clip = torch.ones(1)
    x = states(MIX)
    expected = torch.stack([made.free_energy(x) for made in single])
    torch.testing.assert_close(whole.free_energy(x.expand(3, -1, -1)), expected)
    own = np.stack([gradient(made, made.public_loss()) for made in single])
    parts = torch.autograd.grad(whole.public_loss(), list(whole.parameters()))
    assert np.concatenate([part.flatten(1).double().numpy() for part in parts], axis=1) == pytest.approx(own, abs=1e-5)
    h = HIDDEN.expand(3, -1, -1)
    torch.testing.assert_close(whole.logits(h), torch.stack([made.logits(HIDDEN) for made in single]))
    whole.update_buffers(1.0)
    assert {tuple(row) for row in whole.particles.flatten(0, 1).tolist()} <= {tuple(row) for row in x.tolist()}
    again = unstack(whole, single[0])
    assert all(torch.equal(made.get_buffer("centre"), old.centre) for made, old in zip(again, single, strict=True))
    assert torch.equal(again[2].get_buffer("particles"), whole.particles[2])


# --- Gaussian units ---


def test_gaussian_units_are_those_of_the_energy() -> None:
    """By a sum over a fine grid of intensities, and the atom that is missing."""
    columns = {"meter": MIX["meter"]}
    made = network(columns, deviation=0.3)
    grid = torch.linspace(-4, 5, 9001)
    points = torch.stack([grid, torch.zeros_like(grid)], dim=1)
    table = np.exp(-energies(made, points)) * 0.001
    missing = np.exp(-energies(made, torch.tensor([[0.0, 1.0]])))[0]
    x = torch.tensor([[0.2, 0.0], [0.9, 0.0], [0.0, 1.0]])
    expected = -special.logsumexp(-energies(made, x), axis=1)
    assert made.free_energy(x).detach().numpy() == pytest.approx(expected, abs=1e-4)
    logits = made.logits(HIDDEN).detach()
    odds = logits[:, 1].double().exp().numpy()
    assert odds == pytest.approx(missing / table.sum(axis=0), rel=1e-3)
    torch.manual_seed(5)
    drawn = made.draw(logits.expand(20_000, -1, -1))
    for number in range(len(HIDDEN)):
        there = drawn[:, number][drawn[:, number, 1] == 0][:, 0].numpy()
        weights = table[:, number] / table[:, number].sum()
        mean = float(weights @ grid.numpy())
        deviation = math.sqrt(float(weights @ (grid.numpy() - mean) ** 2))
        assert deviation == pytest.approx(0.3, rel=1e-2)
        assert abs(there.mean() - mean) < 6 * deviation / math.sqrt(len(there))
        assert abs(there.std() / deviation - 1) < 6 / math.sqrt(2 * len(there))
