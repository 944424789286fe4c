"""Small records of several kinds, and the two networks by themselves: what the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.material import random_records, schema_of
from tests.contracts.resumption import assert_same_fit
from torch import Tensor

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.gan.adversarial_step import AdversarialGame, Generator
from sundog.models.gan.configuration import GanConfiguration
from sundog.models.gan.critic_schedule import CriticSchedule
from sundog.models.gan.gan import Gan
from sundog.models.gan.networks import new_critic, new_generator
from sundog.models.gan.objectives import NonSaturating, Objective
from sundog.models.neural.features import Compact, Features
from sundog.models.protocol import FitContext
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release
from sundog.training import trainer
from sundog.training.batches.examples import Padded
from sundog.training.clipping import Fixed
from sundog.training.groups import group_all
from sundog.training.per_example.engine import Masks, clip_and_sum

QUICK: dict[str, Any] = {"hidden": 8, "latent": 3, "batch": 50, "epochs": 1, "critic_steps": 1}
DELTA = 1e-5

LABEL: dict[str, Any] = {"type": "categorical", "values": ["a", "b", "c"]}
SERIES: dict[str, Any] = {"type": "series", "length": 7, "min": 0, "max": 100, "resolution": 1}
TABLE = schema_of(
    {
        "label": LABEL,
        "size": {"type": "integer", "min": 0, "max": 99, "bins": 4},
        "basket": {"type": "set", "universe": 6, "max_size": 3},
    }
)
IMAGES = schema_of({"image": {"type": "image", "shape": [6, 5]}, "label": LABEL})
GAPS = schema_of({"meter": {**SERIES, "nullable": True}, "label": LABEL})


def draw_examples(schema: Schema, n: int = 9, seed: int = 0) -> Compact:
    """Random records, as a training takes them."""
    return Features(schema).to_examples(random_records(schema, n, seed)).take(np.arange(n))


def new_game(
    schema: Schema,
    shape: str,
    objective: Objective | None = None,
    *,
    condition: str | None = "label",
    dropout: float = 0.0,
    **more: Any,
) -> AdversarialGame:
    """Two networks with random weights, the same each time."""
    features = Features(schema)
    at = features.at(condition)
    values = at.stop - at.start
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        body = new_generator(features, shape, values, hidden=8, latent=3)
        generator = Generator(body, torch.randn(max(1, values), features.width), at)
        critic = new_critic(features, shape, at, hidden=8, dropout=dropout)
    options: dict[str, Any] = {
        "objective": objective or NonSaturating(),
        "classifier": None,
        "prior": torch.full((values,), 1 / max(1, values)),
        "critic_schedule": CriticSchedule(steps=1, target=0.0),
        "batch": 16,
        "learning_rate": 0.01,
        "decay": 0.9,
        "schedule": lambda number: 1.0,
    }
    return AdversarialGame(features, generator, critic, **{**options, **more})


def assert_goes_on(fit: Callable[..., Release], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """A fit that dies in its eighth step and is resumed spends and learns what one does that never died: that one."""
    whole, take = fit(folder / "whole.sundog"), trainer.Trainer._take_step

    def stop(self: trainer.Trainer, *args: Any) -> None:
        take(self, *args)
        if self.done == 8:
            raise RuntimeError("the power is gone")

    with monkeypatch.context() as patch:
        patch.setattr(trainer.Trainer, "_take_step", stop)
        with pytest.raises(RuntimeError, match="the power is gone"):
            fit(folder / "o.sundog")
    assert_same_fit(fit(folder / "o.sundog", resume=True), whole)
    return whole


def assert_clipped(
    game: AdversarialGame, batch: Compact, masks: Masks, sums: list[Any], norms: Tensor, clip: Tensor
) -> None:
    """The engine finds these norms, and these sums of gradients clipped to that."""
    whole: Any = batch if masks == "when needed" else Padded(batch, torch.ones(len(norms), dtype=torch.bool))
    found = clip_and_sum(game.critic, game.loss, whole, group_all(game.critic), Fixed(clip[None]).weigh, masks=masks)
    torch.testing.assert_close(found.norms[0], norms, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.sums, sums, rtol=1e-3, atol=1e-4 * float(clip))


def fit_gan(records: Records, *, epsilon: float = 5.0, seed: int = 0, **settings: Any) -> Gan:
    """A model of these records."""
    options = {**QUICK, **settings}
    plan = Gan.plan(
        records.schema, Budget(epsilon, DELTA), GanConfiguration.parse(options), already=(), records=len(records)
    )
    ledger = Ledger(epsilon=epsilon, delta=DELTA, noise=NoiseSource.seeded(seed))
    return Gan.fit(records, plan, ledger, FitContext(seed=seed))
