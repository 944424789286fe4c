"""A training that can be stopped and resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.training.toy import DELTA, EPSILON, Toy, make_toy

from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.training.trainer import Trainer
from sundog.training.training_state import TrainingState, load_state

BLOCK = 3


class Bench:
    """A ledger file and a checkpoint folder, in which one training after another can be started."""

    def __init__(self, folder: Path, *, seeded: bool = True) -> None:
        folder.mkdir(exist_ok=True)
        self.out, self.path, self.seeded = folder / "o.sundog", folder / "ledger", seeded
        if not self.path.exists():
            Ledger.create(self.path, epsilon=EPSILON, delta=DELTA)

    def run(self, prepare: Callable[[Trainer], None] | None = None, **options: Any) -> Toy:
        """One process, as it were: begins, or resumes what was left."""
        there = Checkpoint.locate_folder(self.out).exists()
        checkpoint = Checkpoint.resume(self.out, {}) if there else Checkpoint.begin(self.out, {})
        try:
            trained = make_toy(self.ledger(checkpoint.run), checkpoint=checkpoint, **{"block": BLOCK, **options})
            if prepare is not None:
                prepare(trained.trainer)
            trained.trainer.run()
        finally:
            checkpoint.release()
        return trained

    def ledger(self, run: str) -> Ledger:
        noise = NoiseSource.seeded(3) if self.seeded else None
        return Ledger.open(self.path, noise=noise).run(epsilon=EPSILON, delta=DELTA, name=run)

    def state(self) -> TrainingState | None:
        return load_state(Checkpoint(Checkpoint.locate_folder(self.out), ""), "training")

    @property
    def done(self) -> int:
        state = self.state()
        return 0 if state is None else state.done

    @property
    def paid(self) -> int:
        return sum(charge.count for charge in Ledger.open(self.path).charges)


def stop_after_save(count: int) -> Callable[[Trainer], None]:
    def prepare(trainer: Trainer) -> None:
        save, saved = trainer._save, 0

        def patched() -> None:
            nonlocal saved
            save()
            saved += 1
            if saved == count:
                raise KeyboardInterrupt

        trainer._save = patched  # type: ignore[method-assign]

    return prepare
