"""Every network trained with clip=dpnorm: what it measures, what that costs, and that an interrupted fit goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from scipy import stats
from tests.contracts.material import decode_records, random_records, schema_of
from tests.models.gan.material import assert_goes_on
from torch import Tensor

from sundog.errors import SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.gan import gan_training
from sundog.models.gan.gan import Gan
from sundog.models.protocol import FitContext, Model
from sundog.models.rbm.network import RbmNetwork
from sundog.models.rbm.rbm import Rbm
from sundog.models.registry import configure, read_model
from sundog.models.vae.vae import Vae
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, SampledGaussian
from sundog.privacy.ledger import Budget, Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release
from sundog.training import trainer
from sundog.training.clipping import DPNorm
from sundog.training.noise_addition import compute_gradient_multiplier
from sundog.training.pacing import Pace

EPSILON, DELTA = 2.0, 1e-6
RIGHT, WRONG = 1e-7, 1e-10  # p-values
SCHEMA = schema_of(
    {
        "kind": {"type": "categorical", "values": ["a", "b", "c"]},
        "size": {"type": "integer", "min": 0, "max": 99, "bins": 4},
        "basket": {"type": "set", "universe": 6, "max_size": 3},
    },
    records=200,
)
SMALL: dict[type[Any], dict[str, Any]] = {
    Rbm: {"hidden": 8, "chains": 20, "batch": 40, "epochs": 3},
    Vae: {"hidden": 8, "latent": 3, "batch": 40, "epochs": 3},
    Gan: {"shape": "mlp", "hidden": 8, "latent": 3, "batch": 40, "epochs": 3, "critic_steps": 1},
}
every_model = pytest.mark.parametrize("model", SMALL, ids=lambda model: model.name)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gan_training, "_BATCH", 32)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[DPNorm, Tensor]]:
    """The policy and the noisy histogram of every step that a test takes."""
    seen: list[tuple[DPNorm, Tensor]] = []
    update = DPNorm.update

    def watch(self: DPNorm, noisy: Tensor | None) -> None:
        assert noisy is not None
        seen.append((self, noisy.clone()))
        update(self, noisy)

    monkeypatch.setattr(DPNorm, "update", watch)
    return seen


def fit(model: type[Model], count: int, **settings: Any) -> tuple[Model, tuple[Charge, ...], Ledger]:
    configuration = configure(model.name, {**SMALL[model], "clip": "dpnorm", **settings})
    plan = model.plan(SCHEMA, Budget(EPSILON, DELTA), configuration, already=(), records=200)
    ledger = Ledger(epsilon=EPSILON, delta=DELTA)
    return model.fit(random_records(SCHEMA, count), plan, ledger, FitContext(seed=0)), tuple(plan.charges), ledger


def training_charge(charges: tuple[Charge, ...]) -> tuple[SampledGaussian, int]:
    (charge,) = [charge for charge in charges if charge.purpose == "training"]
    assert isinstance(charge.event, SampledGaussian)
    return charge.event, charge.count


@every_model
def test_the_charge_is_that_of_histogram_and_gradient_together(
    model: type[Model], steps: list[tuple[DPNorm, Tensor]]
) -> None:
    fitted, charges, ledger = fit(model, 200)
    assert merge_blocks(ledger.charges) == list(charges)
    assert 0.998 * EPSILON <= compute_epsilon(charges, delta=DELTA) <= EPSILON
    assert read_model(model.name, SCHEMA, fitted.state()).find_unpaid(charges) == []
    event, count = training_charge(charges)
    assert len(steps) == count
    policy = steps[0][0]
    together = (
        compute_gradient_multiplier(event.noise_multiplier, policy.measurement_noise) ** -2
        + policy.measurement_noise**-2
    )
    assert together**-0.5 == pytest.approx(event.noise_multiplier)
    plain = configure(model.name, SMALL[model])
    fixed = model.plan(SCHEMA, Budget(EPSILON, DELTA), plain, already=(), records=200)
    assert training_charge(tuple(fixed.charges)) == (event, count)  # it takes its part of the step, and no more


@every_model
def test_the_noise_of_the_histogram_has_the_planned_scale(
    model: type[Model], steps: list[tuple[DPNorm, Tensor]]
) -> None:
    """Without records a noisy histogram is noise alone."""
    _, charges, _ = fit(model, 0, epochs=10)
    event, _ = training_charge(charges)
    scale = max(4.0, 2 * event.noise_multiplier)
    drawn = torch.cat([noisy for _, noisy in steps]).double().numpy()
    assert len(drawn) == 5000
    for factor, is_right in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        p_value = stats.kstest(drawn, stats.norm(scale=factor * scale).cdf).pvalue
        assert p_value > RIGHT if is_right else p_value < WRONG


@every_model
def test_an_interrupted_fit_goes_on_with_its_bound(
    model: type[Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "Pace", lambda block: Pace(5))
    values = decode_records(random_records(SCHEMA, 150))

    def release(out: Path, *, resume: bool = False) -> Release:
        options = {**SMALL[model], "clip": "dpnorm"}
        noise = NoiseSource.seeded(7)
        synthesizer = Synthesizer(model.name, epsilon=EPSILON, delta=DELTA, seed=1, settings=options, noise=noise)
        return synthesizer.fit(values, SCHEMA, out=out, resume=resume).release_

    assert_goes_on(release, tmp_path, monkeypatch)


@pytest.mark.parametrize("model", [Rbm, Vae], ids=lambda model: model.name)
def test_the_components_of_a_mixture_train_with_it(
    model: type[Model], steps: list[tuple[DPNorm, Tensor]], tmp_path: Path
) -> None:
    values = decode_records(random_records(SCHEMA, 200))
    options = {**SMALL[model], "clip": "dpnorm"}
    synthesizer = Synthesizer(model.name, epsilon=EPSILON, delta=DELTA, clusters=3, seed=1, settings=options)
    release = synthesizer.fit(values, SCHEMA).release_
    release.save(tmp_path / "o.sundog")
    assert Release.load(tmp_path / "o.sundog").verify() == []
    assert len(steps) == training_charge(tuple(release.certificate.charges))[1]


def test_the_particles_of_a_boltzmann_machine_have_the_weight_of_records(
    steps: list[tuple[DPNorm, Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are weighed by the bound of the same step, wherever it moves."""
    weighed: list[float] = []
    weights = RbmNetwork._compute_weights

    def watch(self: RbmNetwork) -> Tensor:
        weighed.append(float(self.clip))
        return weights(self)

    monkeypatch.setattr(RbmNetwork, "_compute_weights", watch)
    fit(Rbm, 200)
    moved = [float(policy.edges[int(noisy.argmax())]) for policy, noisy in steps]
    assert weighed == [10.0, *moved[:-1]]
    assert len(set(weighed)) > 3


@pytest.mark.parametrize(
    ("settings", "what"),
    [({"decay": 0.5}, "leave 'decay' out"), ({"groups": "weights and biases"}, "leave 'groups' out")],
)
def test_what_does_not_go_with_it_is_refused_before_anything_is_spent(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(SundogError, match=what):
        configure("gan", {"clip": "dpnorm", **settings}).check(SCHEMA)


@every_model
def test_another_word_is_refused(model: type[Model]) -> None:
    with pytest.raises(SundogError, match="dpnorm, not 'norm'"):
        configure(model.name, {"clip": "norm"})
