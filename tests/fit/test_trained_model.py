"""A model that trains, fitted from end to end: it is interrupted, goes on, and its certificate is one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
import torch
from pydantic import Field
from tests.training.in_memory import InMemory
from torch import nn

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, LedgerError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models import registry
from sundog.models.configuration import Configuration
from sundog.models.protocol import Codes, FitContext, State, Where
from sundog.models.released import ReleasedModel
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge, SampledGaussian
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release
from sundog.training.clipping import Fixed
from sundog.training.groups import group_all
from sundog.training.step import PrivateStep
from sundog.training.trainer import Trainer
from sundog.training.training_plan import TrainingPlan, plan_training

RECORDS = 300
DATA = {"a": np.arange(RECORDS) % 2 == 0, "b": np.arange(RECORDS) % 3 == 0}
COLUMNS = {"a": {"type": "boolean"}, "b": {"type": "boolean"}}
SCHEMA = Schema.from_dict({"columns": COLUMNS})


class CoinsConfiguration(Configuration):
    name: ClassVar[str] = "coins"

    epochs: float = Field(default=4.0, description="passes over the records")


@dataclass(frozen=True)
class CoinsPlan:
    training: TrainingPlan
    records: int

    @property
    def charges(self) -> tuple[Charge, ...]:
        return (self.training.make_charge(self.training.steps),)


class ReleasedCoins(ReleasedModel):
    def __init__(self, schema: Schema, state: State) -> None:
        self.records = state.config["records"]

    def find_unpaid(self, charges: Sequence[Charge]) -> list[str]:
        return [] if any(isinstance(charge.event, SampledGaussian) for charge in charges) else ["the means"]


class Coins:
    """The mean of each boolean column, by gradient descent."""

    name: ClassVar[str] = "coins"

    def __init__(self, schema: Schema, means: Any, records: int | None) -> None:
        self.schema, self.means, self.records = schema, means, records

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        configuration: CoinsConfiguration,
        *,
        already: Sequence[Charge],
        records: int | None,
    ) -> CoinsPlan:
        assert records is not None
        training = plan_training(budget, already=already, records=records, batch=50, epochs=configuration.epochs)
        return CoinsPlan(training, records)

    @classmethod
    def fit(cls, records: Records, plan: CoinsPlan, ledger: Ledger, context: FitContext) -> Self:
        torch.set_num_threads(1)
        training = plan.training
        names = list(records.schema.columns)
        x = torch.stack([torch.as_tensor(records.codes[name], dtype=torch.float32) for name in names], dim=1)
        module = nn.Linear(1, len(names), bias=False)
        nn.init.constant_(module.weight, 0.5)
        step = PrivateStep(
            module=module,
            private_loss=lambda batch: (module(torch.ones(len(batch), 1)) - batch).square().sum(dim=1),
            groups=group_all(module),
            policy=Fixed(torch.ones(1)),
            optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
            noise=ledger.noise,
            noise_multiplier=training.noise_multiplier,
            expected_batch=training.expected_batch,
        )
        data = InMemory(x)
        trainer = Trainer(
            step,
            data,
            training,
            ledger,
            seed=context.seed,
            progress=context.progress,
            checkpoint=context.checkpoint,
            block=5,
            after=cls.after,
        )
        trainer.run()
        return cls(records.schema, module.weight.detach()[:, 0].clamp(0, 1).numpy(), max(1, plan.records))

    @staticmethod
    def after(number: int) -> None:
        """Tests put something else here."""

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        return {
            name: (rng.random(n) < mean).astype(column.dtype)
            for (name, column), mean in zip(self.schema.columns.items(), self.means, strict=True)
        }

    def state(self) -> State:
        return State({"means": self.means}, {"records": self.records})

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        return cls(schema, state.tensors["means"], state.config["records"])


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("CoinsConfiguration", "Coins", "ReleasedCoins")
    registration = registry.Registration(*(f"{__name__}:{name}" for name in names))
    monkeypatch.setitem(registry.MODELS, "coins", registration)
    monkeypatch.setattr("sundog.models.registry.import_module", lambda _: sys.modules[__name__])


def fit(out: Path | None, *, schema: Schema = SCHEMA, resume: bool = False, **options: Any) -> Release:
    options = {"epsilon": 2.0, "noise": NoiseSource.seeded(1), "seed": 4, **options}
    return Synthesizer("coins", **options).fit(DATA, schema, out=out, resume=resume).release_


def make_stop(step: int) -> Callable[[int], None]:
    def after(number: int) -> None:
        if number == step:
            raise KeyboardInterrupt

    return after


def interrupt_fit(out: Path, step: int, **options: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Coins, "after", staticmethod(make_stop(step)))
        with pytest.raises(KeyboardInterrupt):
            fit(out, **options)


shared_or_not = pytest.mark.parametrize("shared", [False, True], ids=["own ledger", "shared ledger"])
counted_or_not = pytest.mark.parametrize("counted", [False, True], ids=["declared", "counted"])


@shared_or_not
@counted_or_not
def test_it_is_interrupted_and_goes_on(shared: bool, counted: bool, tmp_path: Path) -> None:
    schema = Schema.from_dict({"columns": COLUMNS, **({} if counted else {"records": RECORDS})})
    results = []
    for name, steps in (("whole", ()), ("once", (12,)), ("often", (0, 3, 3, 7, 17))):
        folder = tmp_path / name
        folder.mkdir()
        options: dict[str, Any] = {"schema": schema}
        if not counted:
            options["delta"] = 1e-6
        if shared:
            options["ledger"] = folder / "ledger"
            Ledger.create(folder / "ledger", epsilon=2.0, delta=1e-5)
        for number, step in enumerate(steps):
            interrupt_fit(folder / "o.sundog", step, resume=number > 0, **options)
        release = fit(folder / "o.sundog", resume=bool(steps), **options)
        assert [charge.purpose for charge in release.certificate.charges] == ["number of records"] * counted + [
            "training"
        ]
        assert release.certificate.recheck(schema)[1:] == []  # the first is that the noise was seeded
        assert {path.name for path in folder.iterdir()} == {"o.sundog", "ledger"} - (
            {"ledger"} if not shared else set()
        )
        loaded = Release.load(folder / "o.sundog")
        certificate = release.certificate.to_dict()
        if shared:
            assert certificate["ledger"].pop("head")["lines"] > 1  # each folder has a ledger of its own
        results.append((certificate, loaded.model.state().tensors["means"].tolist()))
    if not counted:  # a count is drawn anew from the same seeded source in every process
        assert results[0] == results[1] == results[2]
    assert [result[0]["charges"] for result in results] == [results[0][0]["charges"]] * 3


def test_interrupted_after_the_last_step_it_is_not_trained_again(tmp_path: Path) -> None:
    out = tmp_path / "o.sundog"
    taken: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Coins, "state", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            fit(out)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Coins, "after", staticmethod(taken.append))
        release = fit(out, resume=True)
    assert taken == []
    assert len(release.certificate.charges) == 2


def test_without_a_place_it_trains_without_a_checkpoint() -> None:
    release = fit(None)
    assert [charge.purpose for charge in release.certificate.charges] == ["number of records", "training"]


def test_a_shared_ledger_that_lost_what_was_spent_is_refused(tmp_path: Path) -> None:
    out, path = tmp_path / "o.sundog", tmp_path / "l"
    Ledger.create(path, epsilon=2.0, delta=1e-5)
    interrupt_fit(out, 12, ledger=path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))
    with pytest.raises(LedgerError, match="lacks what the interrupted fit spent"):
        fit(out, ledger=path, resume=True)


def test_a_state_that_was_lost_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "o.sundog"
    interrupt_fit(out, 12)
    (Checkpoint.locate_folder(out) / "training.safetensors").unlink()
    with pytest.raises(BudgetExceededError, match="measurements of the interrupted fit were lost"):
        fit(out, resume=True)


def test_other_settings_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "o.sundog"
    interrupt_fit(out, 12)
    with pytest.raises(SundogError, match="had another settings"):
        fit(out, resume=True, settings={"epochs": 5})


def test_the_claim_holds_with_real_noise(tmp_path: Path) -> None:
    release = fit(tmp_path / "o.sundog", noise=None)
    assert release.verify() == []
    means = release.model.state().tensors["means"]
    assert abs(means[0] - 0.5) < 0.2
    assert abs(means[1] - 1 / 3) < 0.2
