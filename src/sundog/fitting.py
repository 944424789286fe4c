"""One fit, stage by stage:

    read → check → count records → learn the schema → encode → plan → fit the model → certify

Whatever can be wrong with the data is said before the first charge. The result of each stage that spends goes into a
checkpoint, if the release has a place on disk, so that an interrupted fit can go on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sundog.checkpoint import Checkpoint
from sundog.data.learn import Lesson, prepare, unknown_columns
from sundog.data.read import Raw, encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.base import Model, Progress
from sundog.privacy.budget import Split
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import noisy_count
from sundog.privacy.noise import NoiseSource
from sundog.release.certificate import certify
from sundog.release.release import Release

LARGEST_DELTA = 1e-5
_SHARES = {"records": 0.02, "schema": 0.10}  # of ε, for the stages before the model, when they are needed
_SCHEMA_DELTA = 0.1  # of δ, for discovering categories


def default_delta(records: int) -> float:
    """1 / (10·n^1.1), and never above 1e-5: far below the chance of publishing one person at random.

    >>> default_delta(100), round(default_delta(1_000_000), 10)
    (1e-05, 2.51e-08)
    """
    return min(LARGEST_DELTA, 1 / (10 * max(records, 1) ** 1.1))


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    model: type[Model]
    epsilon: float
    delta: float | None
    seed: int | None
    settings: dict[str, Any]

    def to_dict(self, schema: Schema) -> dict[str, Any]:
        """The request as JSON, to recognise it by when it is resumed."""
        return {
            "model": self.model.name,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "seed": self.seed,
            "settings": self.settings,
            "schema": schema.to_dict(),
        }


class Fit:
    """The stages of one fit and the ledger they spend from."""

    def __init__(
        self,
        request: Request,
        schema: Schema,
        ledger: Ledger | str | Path | None,
        noise: NoiseSource | None,
        progress: Progress,
    ) -> None:
        self.request, self.schema, self.progress = request, schema, progress
        self.noise = noise
        self.shared = self._shared_ledger(ledger)
        self.checkpoint: Checkpoint | None = None

    def run(self, data: Any, *, labels: Any, out: Path | None, resume: bool) -> Release:
        """The whole fit."""
        self.progress("reading", 0.0)
        raw = read(data, self.schema, labels=labels)
        lesson = prepare(raw, self.schema)
        records = self._checked(raw)
        with self._ledger(out, resume) as ledger:
            split = self._split(ledger)
            self.progress(str(split), 0.0)
            count = self._count_records(raw, split, ledger)
            schema = self._learn_schema(lesson, split, ledger)
            if records is None:
                records = encode(raw, schema)
            del raw, lesson
            model = self._fit_model(records, count, ledger)
            release = Release(schema, model, certify(ledger, schema, shared=self.shared))
            if out is not None:
                self.progress("saving", 0.0)
                release.save(out)
        return release

    # --- before anything is spent ---

    def _checked(self, raw: Raw) -> Records | None:
        """The records, if the schema is complete; if not, they are encoded as far as it is, to find what is wrong."""
        unknown = unknown_columns(self.schema)
        if not unknown:
            return encode(raw, self.schema)
        known = {name: values for name, values in raw.columns.items() if name not in unknown}
        if known:
            columns = {name: self.schema.columns[name] for name in known}
            encode(replace(raw, columns=known), self.schema.model_copy(update={"columns": columns}))
        return None

    def _shared_ledger(self, ledger: Ledger | str | Path | None) -> Ledger | None:
        if ledger is None or isinstance(ledger, Ledger):
            return ledger
        if Path(ledger).exists():
            return Ledger.open(ledger, noise=self.noise)
        delta = self.request.delta if self.request.delta is not None else LARGEST_DELTA
        return Ledger.create(ledger, epsilon=self.request.epsilon, delta=delta, noise=self.noise)

    @contextlib.contextmanager
    def _ledger(self, out: Path | None, resume: bool) -> Iterator[Ledger]:
        """The ledger of this fit, with a checkpoint that stays if the fit is interrupted after it spent something."""
        delta = self.request.delta if self.request.delta is not None else LARGEST_DELTA
        if out is None:
            root = self.shared or Ledger(epsilon=self.request.epsilon, delta=delta, noise=self.noise)
            yield root.run(epsilon=self.request.epsilon, delta=min(delta, root.budget.delta))
            return
        asked = self.request.to_dict(self.schema)
        checkpoint = Checkpoint.resume(out, asked) if resume else Checkpoint.begin(out, asked)
        self.checkpoint = checkpoint
        ledger = None
        try:
            root = self.shared or self._own_ledger(checkpoint, delta)
            ledger = root.run(epsilon=self.request.epsilon, delta=min(delta, root.budget.delta), name=checkpoint.run)
            yield ledger
        except BaseException:
            if ledger is None or not ledger.charges:
                checkpoint.done()
            raise
        checkpoint.done()

    def _own_ledger(self, checkpoint: Checkpoint, delta: float) -> Ledger:
        path = checkpoint.ledger_path
        if path.exists():
            return Ledger.open(path, noise=self.noise)
        return Ledger.create(path, epsilon=self.request.epsilon, delta=delta, noise=self.noise)

    def _split(self, ledger: Ledger) -> Split:
        """Who gets what. Records are counted only if the model or δ needs it and nobody declared how many there are."""
        needs = {
            "records": self.schema.records is None
            and (self.request.delta is None or self.request.model.counts_records),
            "schema": bool(unknown_columns(self.schema)),
        }
        return Split(ledger.budget, {stage: share for stage, share in _SHARES.items() if needs[stage]})

    # --- the stages that spend ---

    def _count_records(self, raw: Raw, split: Split, ledger: Ledger) -> int | None:
        count = self.schema.records
        if "records" in split.shares:
            count = self._paid_count(raw, split.epsilon("records"), ledger)
        if self.request.delta is None and count is not None:
            ledger.tighten(delta=min(ledger.budget.delta, default_delta(count)))
        return count

    def _paid_count(self, raw: Raw, epsilon: float, ledger: Ledger) -> int:
        saved = self.checkpoint and self.checkpoint.load("records")
        if saved:
            return int(saved["count"])
        kept = raw.capped(self.schema.cap) if self.schema.unit else raw
        noisy = noisy_count(
            kept.count, epsilon=epsilon, ledger=ledger, purpose="number of records", contribution=self.schema.cap
        )
        if self.checkpoint:
            self.checkpoint.save("records", {"count": noisy})
        return noisy

    def _learn_schema(self, lesson: Lesson, split: Split, ledger: Ledger) -> Schema:
        if "schema" not in split.shares:
            return self.schema
        saved = self.checkpoint and self.checkpoint.load("schema")
        if saved:
            return Schema.from_dict(saved)
        self.progress("learning the schema", 0.0)
        delta = _SCHEMA_DELTA * ledger.budget.delta
        schema = lesson.learn(epsilon=split.epsilon("schema"), delta=delta, ledger=ledger)
        if self.checkpoint:
            self.checkpoint.save("schema", schema.to_dict())
        return schema

    def _fit_model(self, records: Records, count: int | None, ledger: Ledger) -> Model:
        saved = self.checkpoint and self.checkpoint.load_model()
        if saved:
            return self.request.model.from_state(records.schema, saved)
        self.progress("planning", 0.0)
        settings = {**self.request.model.defaults, **self.request.settings}
        plan = self.request.model.plan(
            records.schema, ledger.budget, already=ledger.charges, records=count, settings=settings
        )
        model = self.request.model.fit(records, plan, ledger, seed=self.request.seed, progress=self.progress)
        if self.checkpoint:
            self.checkpoint.save_model(model.state())
        return model
