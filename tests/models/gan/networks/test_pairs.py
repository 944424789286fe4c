"""A critic of pairs: what it scores, how it forgets, what holds its generator, and what the two learn together."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.contracts.material import KINDS, schema_of
from tests.models.gan.material import DELTA, GAPS, LABEL, QUICK, TABLE, assert_goes_on, fit_gan, new_game
from torch import Tensor, nn

from sundog.data.records import Records
from sundog.fit.synthesizer import Synthesizer
from sundog.models.gan import gan_training
from sundog.models.gan.architectures import choose_shape
from sundog.models.gan.decaying_optimizer import DecayingOptimizer
from sundog.models.gan.networks import Pairs
from sundog.models.neural.features import Features
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release
from sundog.training import trainer
from sundog.training.pacing import Pace

TWINS = schema_of({"label": LABEL, "twin": LABEL})


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gan_training, "_BATCH", 128)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def layer(critic: Pairs) -> nn.Parameter:
    """Its weights."""
    (weight,) = critic.parameters()
    return weight


# --- scores ---


def test_the_score_is_the_sum_over_all_pairs() -> None:
    means, weights = random(5, seed=1), random(5, 5, seed=2) - 0.5
    critic, x = Pairs(slice(1, 3), means), random(4, 5)
    layer(critic).data.copy_(weights)
    scale = 1 / sum(float(mean * (1 - mean)) for mean in means)
    for row in range(4):
        pairs = [weights[i, j] * (x[row, i] - means[i]) * (x[row, j] - means[j]) for i in range(5) for j in range(5)]
        assert float(critic(x)[row].detach()) == pytest.approx(scale * float(sum(pairs)), rel=1e-4)
    torch.testing.assert_close(critic(x[None]), critic(x)[None])


def test_a_critic_of_pairs_begins_with_nothing_and_learns_as_fast_at_the_end() -> None:
    """It is linear in its weights: their gradient does not depend on them."""
    critic, x = Pairs(slice(0, 2), random(5, seed=1)), random(4, 5)
    score = critic(x)
    assert score.shape == (4,)
    assert not score.any()
    (first,) = torch.autograd.grad(score.sum(), layer(critic))
    layer(critic).data.copy_(random(5, 5, seed=2))
    (later,) = torch.autograd.grad(critic(x).sum(), layer(critic))
    assert first.any()
    torch.testing.assert_close(first, later)


def test_means_that_leave_no_variance_are_no_trouble() -> None:
    critic = Pairs(slice(0, 0), torch.tensor([0.0, 1.0, 1.0]))
    layer(critic).data.fill_(1.0)
    assert critic(random(3, 3)).isfinite().all()


def test_tables_are_judged_by_pairs_and_nothing_else_is() -> None:
    for kind, columns in KINDS.items():
        scalar = all(not column.shape for column in schema_of(columns).columns.values())
        assert (choose_shape(schema_of(columns)) == "pairs") is scalar, kind
    wide = {f"c{number}": {"type": "integer", "min": 0, "max": 99, "bins": 100} for number in range(21)}
    assert choose_shape(schema_of(wide)) == "mlp"


@pytest.mark.parametrize("shape", ["auto", "pairs"])
def test_how_wide_a_learned_column_is_need_not_be_known_before(shape: str) -> None:
    schema = schema_of({"size": {"type": "integer", "learn": True}, "on": {"type": "boolean"}})
    data = {"size": np.arange(300) % 40, "on": np.arange(300) % 2 == 0}
    synthesizer = Synthesizer("gan", epsilon=20.0, delta=DELTA, seed=0, settings={**QUICK, "shape": shape})
    assert synthesizer.fit(data, schema).release_.model.state().config["shape"] == "pairs"


# --- fading ---


def test_weights_are_an_average_of_gradients_that_fades() -> None:
    rates, gain = [0.5, 0.25, 0.1, 0.1], 20.0
    weight, gradients = nn.Parameter(random(3)), random(4, 3, seed=1) - 0.5
    shares = [rates[step] * float(np.prod([1 - rate for rate in rates[step + 1 :]])) for step in range(4)]
    begun = float(np.prod([1 - rate for rate in rates]))
    assert begun + sum(shares) == pytest.approx(1.0)
    expected = begun * weight.detach().clone() - gain * torch.tensor(shares) @ gradients
    optimizer = DecayingOptimizer([weight], 0.5, gain=gain)
    for rate, row in zip(rates, gradients, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        weight.grad = row
        optimizer.step()
    torch.testing.assert_close(weight.detach(), expected)


def test_fading_goes_on_from_what_was_kept() -> None:
    gradients = random(6, 3, seed=1)
    whole, half = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))
    first, second = DecayingOptimizer([whole], 0.3, gain=7.0), DecayingOptimizer([half], 0.3, gain=7.0)
    for number, row in enumerate(gradients):
        if number == 3:
            half = nn.Parameter(half.detach().clone())
            kept, second = second.state_dict(), DecayingOptimizer([half], 0.9, gain=1.0)
            second.load_state_dict(kept)
        for weight, optimizer in ((whole, first), (half, second)):
            weight.grad = row
            optimizer.step()
    assert torch.equal(whole, half)
    half.grad = None
    second.step()  # nothing to take in, nothing to fade
    assert torch.equal(whole, half)


def fit(out: Path, *, resume: bool = False) -> Release:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.choice(["a", "b", "c"], 60) for name in TWINS.columns})
    options = {**QUICK, "epochs": 12}
    synthesizer = Synthesizer("gan", epsilon=2.0, delta=DELTA, seed=4, noise=NoiseSource.seeded(1), settings=options)
    return synthesizer.fit(frame, TWINS, out=out, resume=resume).release_


def test_a_fit_by_pairs_that_was_interrupted_ends_as_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "Pace", lambda block: Pace(5))
    whole = assert_goes_on(fit, tmp_path, monkeypatch)
    assert whole.model.state().config["shape"] == "pairs"


# --- the anchor ---


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("schema", [TABLE, GAPS], ids=["table", "gaps"])
def test_the_anchor_rests_where_generated_means_are_the_measured_ones(schema: Any, condition: bool) -> None:
    game = new_game(schema, "mlp", condition="label" if condition else None)
    features, given = game.features, torch.eye(3).repeat(4, 1) if condition else torch.zeros(12, 0)
    logits = (3 * random(12, features.width) - 1.5).requires_grad_()
    rows = features.means(logits.detach())
    means = torch.stack([rows[value::3].mean(dim=0) for value in range(3)]) if condition else rows.mean(dim=0)[None]

    def pull(measured: Tensor) -> float:
        (gradient,) = torch.autograd.grad(game._compute_mean_mismatch(logits, given, measured), logits)
        return float(gradient.norm())

    other = features.means(logits.detach() + random(12, features.width, seed=3))[: len(means)]
    assert pull(other) > 0.03
    assert pull(means) < 1e-4 * pull(other)


def test_the_anchor_pulls_means_to_the_measured_ones() -> None:
    """And nothing does without it, where the critic has nothing to say."""
    far = []
    measured = Features(TABLE).means(torch.randn(3, 13, generator=torch.Generator().manual_seed(4)))
    for anchor in (1.0, 0.0):
        game = new_game(TABLE, "pairs", means=measured, anchor=anchor, batch=64, learning_rate=0.03)
        torch.manual_seed(1)
        for number in range(60):
            game.train_generator(number)
        found = torch.stack([game.generate(torch.eye(3)[[value]].repeat(4000, 1)).mean(dim=0) for value in range(3)])
        others = [column for column in range(13) if not 0 <= column < 3]  # not the cells that it is told
        far.append(float((found - measured)[:, others].abs().mean()))
    assert far[0] < 0.4 * far[1]
    assert far[0] < 0.08


# --- learning ---


@cache
def draw_twins(n: int = 2000) -> Records:
    """The twin is the same nine times in ten."""
    rng = np.random.default_rng(0)
    label = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    twin = np.where(rng.random(n) < 0.9, label, rng.integers(0, 3, n))
    return Records(TWINS, {"label": label.astype(np.uint8), "twin": twin.astype(np.uint8)}, n)


@cache
def fit_briefly() -> Any:
    """A start, and next to no training."""
    return fit_gan(draw_twins(), epsilon=20.0, shape="mlp", condition=None, hidden=16, latent=8, batch=200, epochs=0.1)


def compute_agreement(codes: dict[str, Any]) -> float:
    return float(np.mean(codes["label"] == codes["twin"]))


def test_pairs_are_learned_that_the_start_does_not_have() -> None:
    sizes: dict[str, Any] = {"hidden": 16, "latent": 8, "batch": 200, "generator_rate": 0.01}
    assert compute_agreement(draw_twins().codes) > 0.9  # 0.38, were they independent
    assert compute_agreement(fit_briefly().sample(5000, np.random.default_rng(0), {})) < 0.5
    model = fit_gan(draw_twins(), epsilon=20.0, **sizes, epochs=15)
    assert model.config["shape"] == "pairs"
    drawn = model.sample(5000, np.random.default_rng(0), {})
    for name, codes in draw_twins().codes.items():
        shares, wanted = (np.bincount(one, minlength=3) / len(one) for one in (drawn[name], codes))
        assert shares == pytest.approx(wanted, abs=0.05)
    rows = model.features.to_examples(draw_twins()).take_vectors(np.arange(len(draw_twins())))
    assert model.private is not None  # the critic was centred by what was measured
    np.testing.assert_allclose(model.private.tensors["means"], rows.mean(dim=0).numpy(), atol=0.02)
    assert compute_agreement(drawn) > 0.7
