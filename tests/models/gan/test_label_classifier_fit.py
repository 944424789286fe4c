"""A fit with a label classifier: its charges, its release, and that an interruption changes nothing."""

from __future__ import annotations

import signal
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.material import decode_records, random_records
from tests.models.gan.material import DELTA, GAPS, IMAGES, QUICK, TABLE, fit_gan
from torch import Tensor

from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, ReleaseError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.gan import gan, label_classifier
from sundog.models.gan.configuration import GanConfiguration
from sundog.models.gan.gan import Gan
from sundog.models.gan.label_classifier import LabelClassifier, train_label_classifier
from sundog.models.protocol import FitContext, State
from sundog.models.released import CLASSIFIER
from sundog.privacy.events import Charge, SampledGaussian
from sundog.privacy.ledger import Budget, Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release
from sundog.training import trainer
from sundog.training.pacing import Pace
from sundog.training.trainer import Trainer

SHARED = 0.3
STEPS = 16  # of the classifier: 10 epochs of 100 records, 64 in each


@pytest.fixture(autouse=True)
def _quick(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "Pace", lambda block: Pace(5))
    monkeypatch.setattr(label_classifier, "_EPOCHS", 10.0)


def fit(out: Path | None = None, *, resume: bool = False, noise: NoiseSource | None = None, **settings: Any) -> Release:
    options = {**QUICK, "epochs": 6, "recognised": 0.9, "classifier": SHARED, **settings}
    data = decode_records(random_records(IMAGES, 100))
    synthesizer = Synthesizer("gan", epsilon=2.0, delta=DELTA, seed=4, noise=noise, settings=options)
    declared = Schema.from_dict({**IMAGES.to_dict(), "records": 100})
    return synthesizer.fit(data, declared, out=out, resume=resume).release_


# --- paying ---


@pytest.mark.parametrize(
    ("schema", "shape"),
    [(IMAGES, "conv"), (GAPS, "conv"), (GAPS, "lstm"), (TABLE, "mlp"), (TABLE, "pairs")],
    ids=["images", "series", "lstm", "mlp", "pairs"],
)
def test_the_ledger_has_exactly_the_planned_steps_of_naming(schema: Schema, shape: str) -> None:
    settings = {**QUICK, "shape": shape, "condition": "label", "classifier": SHARED}
    plan = Gan.plan(schema, Budget(2.0, DELTA), GanConfiguration.parse(settings), already=(), records=100)
    ledger = Ledger(epsilon=2.0, delta=DELTA)
    model = Gan.fit(random_records(schema, 100), plan, ledger, FitContext(seed=0))
    trainings = [charge for charge in ledger.charges if charge.purpose == CLASSIFIER]
    assert [charge.count for charge in trainings] == [5, 5, 5, 1]
    assert plan.classifier is not None
    event = SampledGaussian(noise_multiplier=plan.classifier.noise_multiplier, sample_rate=0.64)
    assert {charge.event for charge in trainings} == {event}
    assert merge_blocks(ledger.charges) == list(plan.charges)
    purposes = list(dict.fromkeys(charge.purpose for charge in ledger.charges))
    assert (purposes[0], purposes[-1]) == (CLASSIFIER, "training")  # the one is whole before the other begins
    assert model.config["named"] is True


def test_a_ledger_that_cannot_pay_for_the_naming_too_is_refused_before_anything_is_spent() -> None:
    settings = {**QUICK, "classifier": SHARED}
    plan = Gan.plan(IMAGES, Budget(2.0, DELTA), GanConfiguration.parse(settings), already=(), records=100)
    without = [charge for charge in plan.charges if charge.purpose != CLASSIFIER]
    ledger = Ledger(epsilon=1.9, delta=DELTA)
    ledger.check(*without)
    with pytest.raises(BudgetExceededError):
        Gan.fit(random_records(IMAGES, 100), plan, ledger, FitContext(seed=0))
    assert ledger.charges == ()


# --- the release ---


def test_a_release_without_the_charge_for_naming_does_not_verify(tmp_path: Path) -> None:
    release = fit(tmp_path / "o.sundog")
    again = Release.load(tmp_path / "o.sundog")
    assert again.verify() == []
    charges = again.certificate.charges
    (training,) = (charge for charge in charges if charge.purpose == CLASSIFIER)
    assert training.count == STEPS
    for charge in charges:
        rest = [other for other in charges if other is not charge]
        assert ("training of the classifier" in again.document.model.find_unpaid(rest)) == (charge is training)
    without = replace(
        release,
        certificate=release.certificate.model_copy(update={"charges": [c for c in charges if c is not training]}),
    )
    assert "no charge pays for the training of the classifier" in without.verify()


def test_a_release_without_a_classifier_needs_no_such_charge() -> None:
    release = fit(classifier=0.0)
    assert release.model.state().config["named"] is False
    assert CLASSIFIER not in [charge.purpose for charge in release.certificate.charges]
    assert release.verify() == []
    assert fit(classifier=0.0, condition=None).verify() == []


@pytest.mark.parametrize("named", [None, 0, 1, 1.0, "yes", "", [], {"steps": 3}, "gone"], ids=repr)
def test_a_file_must_say_whether_there_was_a_classifier(named: Any) -> None:
    state = fit_gan(random_records(IMAGES, 60)).state()
    config = {name: value for name, value in state.config.items() if name != "named"}
    if named != "gone":
        config["named"] = named
    with pytest.raises(ReleaseError, match="the configuration is not that of a `gan` model") as caught:
        Gan.from_state(IMAGES, State(state.tensors, config))
    assert "\n" not in str(caught.value)


def test_the_classifier_is_neither_released_nor_kept_beside_it() -> None:
    model, plain = (fit_gan(random_records(IMAGES, 60), classifier=share) for share in (SHARED, 0.0))
    assert model.private is not None
    assert plain.private is not None
    assert set(model.state().tensors) == set(plain.state().tensors)
    assert set(model.private.tensors) == set(plain.private.tensors)


# --- going on ---


def fit_with_fixed_noise(out: Path | None = None, *, resume: bool = False) -> tuple[Release, list[Tensor]]:
    """A fit with the same noise each time, and the weights of its classifier."""
    found: list[LabelClassifier] = []

    def noting(*args: Any, **options: Any) -> LabelClassifier:
        found.append(train_label_classifier(*args, **options))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gan, "train_label_classifier", noting)
        release = fit(out, resume=resume, noise=NoiseSource.seeded(1))
    return release, [weight.clone() for weight in found[0].parameters()]


@cache
def fit_whole() -> tuple[Release, list[Tensor]]:
    """One that nothing interrupts; it too has a place on disk, where what was measured is kept."""
    with TemporaryDirectory() as folder:
        return fit_with_fixed_noise(Path(folder) / "whole.sundog")


def ends_as_the_whole(release: Release, classifier: list[Tensor]) -> None:
    other, weights = fit_whole()
    assert release.certificate.charges == other.certificate.charges
    assert release.verify() == other.verify()
    assert all(torch.equal(mine, its) for mine, its in zip(classifier, weights, strict=True))
    for name, tensor in other.model.state().tensors.items():
        assert np.array_equal(tensor, release.model.state().tensors[name]), name


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "asked"])
@pytest.mark.parametrize(
    ("purpose", "done"), [(CLASSIFIER, 1), (CLASSIFIER, 7), (CLASSIFIER, STEPS), ("training", 1), ("training", 8)]
)
def test_a_fit_that_was_interrupted_in_a_step_ends_as_one_that_was_not(
    purpose: str, done: int, killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is killed loses a block that was paid for; one that is asked to stop ends it first."""
    fit_whole()
    out, take = tmp_path / "o.sundog", Trainer._take_step

    def stop(self: Trainer, *args: Any) -> None:
        take(self, *args)
        if (self.plan.purpose, self.done) == (purpose, done):
            if killed:
                raise RuntimeError("the power is gone")
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_take_step", stop)
        with pytest.raises(RuntimeError if killed else KeyboardInterrupt):
            fit_with_fixed_noise(out)
    ends_as_the_whole(*fit_with_fixed_noise(out, resume=True))


@pytest.mark.parametrize(
    ("purpose", "places"), [(CLASSIFIER, (2, 4)), ("training", (1, 3))], ids=["classifier", "training"]
)
def test_a_fit_that_was_interrupted_before_it_paid_ends_as_one_that_was_not(
    purpose: str, places: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice: between the classifier's blocks, or after it and later; before all of them there is nothing to resume."""
    fit_whole()
    out, spend, seen = tmp_path / "o.sundog", Ledger.spend, 0

    def stop(ledger: Ledger, *charges: Charge) -> None:
        nonlocal seen
        if charges[0].purpose == purpose:
            seen += 1
            if seen in places:
                raise KeyboardInterrupt
        spend(ledger, *charges)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "spend", stop)
        for resume in (False, True):
            with pytest.raises(KeyboardInterrupt):
                fit_with_fixed_noise(out, resume=resume)
    ends_as_the_whole(*fit_with_fixed_noise(out, resume=True))


def test_a_fit_goes_on_with_the_share_that_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, take = tmp_path / "o.sundog", Trainer._take_step

    def stop(self: Trainer, *args: Any) -> None:
        take(self, *args)
        if self.done == 7:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_take_step", stop)
        with pytest.raises(KeyboardInterrupt):
            fit(out)
    for share in (0.2, 0.0):
        with pytest.raises(SundogError) as caught:
            fit(out, resume=True, classifier=share)
        assert "\n" not in str(caught.value)
    assert fit(out, resume=True).verify() == []


def test_the_generator_depends_on_the_classifier() -> None:
    """Another classifier makes another generator."""
    first, same_again, other = (fit_gan(random_records(IMAGES, 100), classifier=share) for share in (0.3, 0.3, 0.0))
    tensors = [model.state().tensors["start"] for model in (first, same_again, other)]
    assert np.array_equal(tensors[0], tensors[1])
    assert not np.array_equal(tensors[0], tensors[2])


def test_progress_says_which_training_it_is() -> None:
    said: list[str] = []
    settings = {**QUICK, "classifier": SHARED}
    plan = Gan.plan(IMAGES, Budget(2.0, DELTA), GanConfiguration.parse(settings), already=(), records=100)
    context = FitContext(seed=0, progress=lambda text, _: said.append(text))
    Gan.fit(random_records(IMAGES, 100), plan, Ledger(epsilon=2.0, delta=DELTA), context)
    kinds = [text.partition(":")[0] for text in said if ": step" in text]
    assert list(dict.fromkeys(kinds)) == [CLASSIFIER, "training"]
    assert any(text.startswith(f"{CLASSIFIER}: step {STEPS} of {STEPS}") for text in said)
    assert not any("loss" in text for text in said)
