"""What a training draws, pays and keeps: the noise and the charge of its plan, and the same end when interrupted."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tests.contracts.material import decode_records, random_records
from tests.contracts.resumption import assert_resumes, assert_same_fit
from tests.models.gan.material import DELTA, GAPS, IMAGES, QUICK, TABLE, fit_gan
from torch import Tensor

from sundog.data.schema import Schema
from sundog.fit.synthesizer import Synthesizer
from sundog.models.gan import gan_training
from sundog.models.gan.conditional_means import ConditionalMeans
from sundog.models.gan.configuration import GanConfiguration
from sundog.models.gan.gan import Gan
from sundog.models.gan.label_classifier import train_label_classifier
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext
from sundog.models.released import CLASSIFIER
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import SampledGaussian
from sundog.privacy.ledger import Budget, Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release
from sundog.training import step, trainer
from sundog.training.noise_addition import compute_noise_scales
from sundog.training.pacing import Pace
from sundog.training.per_example.engine import ClippedSum, clip_and_sum
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer

# --- paying ---


@pytest.mark.parametrize(("schema", "shape"), [(TABLE, "mlp"), (IMAGES, "conv"), (GAPS, "lstm")])
@pytest.mark.parametrize("objective", ["non-saturating", "wasserstein"])
def test_what_is_charged_is_the_plan_and_the_plan_is_the_budget(schema: Schema, shape: str, objective: str) -> None:
    settings = {**QUICK, "shape": shape, "objective": objective}
    plan = Gan.plan(schema, Budget(2.0, DELTA), GanConfiguration.parse(settings), already=(), records=60)
    ledger = Ledger(epsilon=2.0, delta=DELTA)
    Gan.fit(random_records(schema, 60), plan, ledger, FitContext(seed=0))
    assert merge_blocks(ledger.charges) == list(plan.charges)
    assert 0.998 * 2.0 <= compute_epsilon(ledger.charges, delta=DELTA) <= 2.0
    sampled = [charge for charge in ledger.charges if isinstance(charge.event, SampledGaussian)]
    trainings = [CLASSIFIER, "training"] if shape == "conv" else ["training"]
    for charge, name in ((charge, charge.purpose) for charge in sampled):
        assert isinstance(charge.event, SampledGaussian)
        planned = plan.classifier if name == CLASSIFIER else plan.network.training
        assert planned is not None
        assert charge.event.noise_multiplier == planned.noise_multiplier
    assert list(dict.fromkeys(charge.purpose for charge in sampled)) == trainings


def test_the_charge_is_the_same_whatever_the_records_are() -> None:
    charges = []
    for records in (random_records(TABLE, 200), random_records(TABLE, 1), random_records(TABLE, 0)):
        plan = Gan.plan(TABLE, Budget(2.0, DELTA), GanConfiguration.parse({**QUICK}), already=(), records=60)
        ledger = Ledger(epsilon=2.0, delta=DELTA)
        Gan.fit(records, plan, ledger, FitContext(seed=0))
        charges.append(merge_blocks(ledger.charges))
    assert charges[0] == charges[1] == charges[2]


def test_a_step_with_less_noise_than_was_planned_is_refused_before_it_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = gan_training._new_step

    def weaker(*args: Any) -> PrivateStep:
        planned = real(*args)
        return replace(planned, noise_multiplier=planned.noise_multiplier * 2 / 3)

    monkeypatch.setattr(gan_training, "_new_step", weaker)
    with pytest.raises(ValueError, match=r"the step has noise multiplier .* but the plan charges"):
        fit_gan(random_records(TABLE, 60))


# --- noise ---

GAMES: list[dict[str, Any]] = [
    {"objective": "non-saturating"},
    {"objective": "wasserstein", "recognised": 0.0},
    {"condition": "label", "classifier": 0.3},
    {"shape": "mlp", "dropout": 0.5, "weight_norm": True},
]


def without_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a step learns of records is taken out of it; the draws that they cause are not."""
    real = clip_and_sum

    def nothing(*args: Any, **options: Any) -> ClippedSum:
        found = real(*args, **options)
        return replace(found, sums=[torch.zeros_like(total) for total in found.sums])

    monkeypatch.setattr(step, "clip_and_sum", nothing)


@pytest.fixture
def noises(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The noise in each step's gradient, of all weights, in units of what was planned."""
    found: list[Tensor] = []
    descend = PrivateStep._apply_gradients

    def noting(self: PrivateStep, private: list[Tensor], update: Any) -> None:
        scale = self.noise_multiplier * float(self.policy.bounds.norm()) / self.expected_batch
        found.append(torch.cat([part.flatten() for part in private[: len(self.groups.parameters)]]) / scale)
        descend(self, private, update)

    monkeypatch.setattr(PrivateStep, "_apply_gradients", noting)
    without_records(monkeypatch)
    return found


def is_standard(noise: Tensor) -> bool:
    """Whether the squares add up to what those of standard normals do, at 1 in 10⁶."""
    total, count = float(noise.double().square().sum()), noise.numel()
    return bool(stats.chi2.ppf(5e-7, count) < total < stats.chi2.isf(5e-7, count))


@pytest.mark.parametrize("settings", GAMES, ids=str)
@pytest.mark.parametrize("fault", [2 / 3, 1.0, 3 / 2])
def test_the_noise_has_the_scale_that_was_paid_for(
    settings: dict[str, Any], fault: float, noises: list[Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        step, "compute_noise_scales", lambda *args: [fault * scale for scale in compute_noise_scales(*args)]
    )
    fit_gan(random_records(TABLE, 60), epsilon=2.0, epochs=4, **settings)
    assert sum(noise.numel() for noise in noises) > 500
    assert is_standard(torch.cat(noises)) is (fault == 1.0)
    assert all(noise.abs().min() > 0 for noise in noises)  # every weight has its own
    first, second = noises[0], noises[1]
    assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 5 / len(first) ** 0.5


# --- the generator's turns ---


def generators(sizes: tuple[int, ...], **settings: Any) -> list[dict[str, Any]]:
    """What comes out of a training on records of different number and kind, from the same start."""
    found = []
    for size in sizes:
        records = random_records(TABLE, size, seed=size)
        features = Features(TABLE)
        options = {**QUICK, "condition": "label", **settings}
        plan = Gan.plan(TABLE, Budget(2.0, DELTA), GanConfiguration.parse(options), already=(), records=60)
        ledger = Ledger(epsilon=2.0, delta=DELTA, noise=NoiseSource.seeded(1))
        start, rows = (
            ConditionalMeans(torch.ones(3) / 3, [torch.full((features.width,), 0.5)] * 3, [0.1] * 3),
            features.to_examples(records),
        )
        classifier = None
        if plan.classifier is not None:
            classifier = train_label_classifier(
                features, rows, plan.settings, plan.classifier, ledger, FitContext(seed=0), records=60
            )
        both = gan_training.train_gan(features, rows, plan, start, classifier, ledger, FitContext(seed=0))
        found.append({name: weight.clone() for name, weight in both.state_dict().items()})
    return found


def are_equal(first: dict[str, Any], second: dict[str, Any]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_all_that_a_training_learns_of_records_goes_through_the_noisy_sum(
    game: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without that sum, other records and another number of them give the same networks, bit for bit."""
    settings = {"recognised": 0.9, "critic_steps": 1, "epochs": 6, **game}
    few, many = generators((40, 80), **settings)
    assert not are_equal(few, many)
    without_records(monkeypatch)
    few, many, none = generators((40, 80, 0), **settings)
    assert are_equal(few, many)
    assert are_equal(few, none)
    # And a leak would be seen: draws that go on from where those for the records ended.
    monkeypatch.setattr(Trainer, "_fix_public_randomness", lambda self, number: None)
    few, many = generators((40, 80), **settings)
    assert not are_equal(few, many)


# --- going on ---


def fit(out: Path, *, resume: bool = False, schema: Schema = TABLE, **settings: Any) -> Release:
    options = {**QUICK, "epochs": 12, "critic_steps": 1, "recognised": 0.9, "condition": "label", **settings}
    records = random_records(schema, 100)
    data = decode_records(records)
    synthesizer = Synthesizer("gan", epsilon=2.0, delta=DELTA, seed=4, noise=NoiseSource.seeded(1), settings=options)
    return synthesizer.fit(data, schema, out=out, resume=resume).release_


@pytest.mark.parametrize(
    ("schema", "settings"),
    [
        (TABLE, {}),
        (TABLE, {"objective": "wasserstein", "recognised": 0.0}),
        (IMAGES, {"dropout": 0.5, "weight_norm": True}),
    ],
    ids=["table", "wasserstein", "images"],
)
def test_a_fit_that_was_interrupted_ends_as_one_that_was_not(
    schema: Schema, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "Pace", lambda block: Pace(5))
    start = partial(fit, schema=schema, **settings)
    assert_resumes(start, tmp_path, stops=lambda spends: spends % 3 == 0, times=3)  # between two blocks


def test_an_interruption_in_the_middle_of_a_block_pays_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "Pace", lambda block: Pace(5))
    whole = fit(tmp_path / "whole.sundog")
    out, take = tmp_path / "o.sundog", Trainer._take_step

    def stop(self: Trainer, *args: Any) -> None:
        take(self, *args)
        if self.done in (7, 8):
            raise RuntimeError("the power is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_take_step", stop)
        with pytest.raises(RuntimeError, match="the power is gone"):
            fit(out)
    assert_same_fit(fit(out, resume=True), whole)


def test_a_seed_fixes_where_it_begins() -> None:
    with pytest.MonkeyPatch.context() as patch:
        without_records(patch)
        first, same, other = (fit_gan(random_records(TABLE, 60), seed=seed).state().tensors for seed in (4, 4, 5))
    assert all(np.array_equal(first[name], same[name]) for name in first)
    assert not np.array_equal(first["body.layers.0.weight"], other["body.layers.0.weight"])
