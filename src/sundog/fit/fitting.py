"""One fit, stage by stage.

    read → check → count records → learn the schema → encode → refine bins → plan → fit the model → certify

Whatever can be wrong is said before the first charge: with the data, the plan, the place of the release. The result of
each stage that spends goes into a checkpoint, if the release has a place on disk, so that an interrupted fit can go on.
Nothing is charged twice: what was charged and lost before it was kept, nobody has seen, and the same charge pays for it
again (docs/ledger.md).
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from pydantic import ValidationError

from sundog.data.bin_refinement import SHARE, Refinement, wants_refinement
from sundog.data.reading.read import Raw, encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.data.schema_learning import SchemaLearning, nothing_learned, prepare, unknown_columns
from sundog.errors import BudgetError, DataError, LedgerError, SundogError
from sundog.files import FULL, os_error_of, refuse_full
from sundog.fit.preflight import note_written, rehearse, room_for
from sundog.fit.request import SCHEMA_DELTA, Request, dearest_charges
from sundog.fit.stages import Stages
from sundog.models.protocol import FitContext, Model, Plan, State
from sundog.privacy.budget import (
    LARGEST_DELTA,
    LARGEST_MEANINGFUL_DELTA,
    LARGEST_MEANINGFUL_EPSILON,
    Split,
    calibrated_delta,
    default_delta,
    promised,
)
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.counted import COUNT, epsilon_of_counts, without_counts
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.mechanisms import noisy_count
from sundog.privacy.noise import NoiseSource
from sundog.progress import Progress
from sundog.release.certificate import certify
from sundog.release.heads import refuse_contradictions
from sundog.release.private import private_path, save_private
from sundog.release.release import Release

_SHARES = {"records": 0.02, "schema": 0.10}  # of ε, for the stages before the model, when they are needed
_GUESSES = (100, 10_000, 1_000_000)  # numbers of records, where nobody has said how many


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
        self.request, self.schema, self.progress = request, schema.declared(), progress
        self.ledger, self.noise = ledger, noise
        self.shared: Ledger | None = None
        self.checkpoint: Checkpoint | None = None
        self.public: Records | None = None
        self.private: State | None = None
        self.release: Release | None = None  # once there is one, even if it cannot be saved

    def run(self, data: Any, *, labels: Any, out: Path | None, resume: bool) -> Release:
        """The whole fit."""
        promised(self.request.epsilon, LARGEST_DELTA if self.request.delta is None else self.request.delta)
        self.request.model.check(self.schema, self._settings)
        self.progress("reading", 0.0)
        raw = read(data, self.schema, labels=labels)
        learning = prepare(raw, self.schema)
        records = self._checked(raw)
        public = self._public_data()
        if out is not None:
            refuse_full(out.parent, room_for(self.schema, self._settings))
        with self._opened(out, resume) as ledger:
            stages = Stages(self.checkpoint, ledger)
            delta = self._promised_delta(ledger)
            split = self._split(ledger)
            if not ledger.charges:  # a fit that goes on has been checked before
                self._rehearse(ledger, out)
                self._refuse_early(split, ledger)
            self._warn_of(ledger.budget)  # now: an input error is one line, and nothing is spent yet
            count = self._count_records(raw, split, stages)
            self.request = self.request.chosen(self.schema, count)
            split = replace(split, budget=ledger.budget, promised_delta=delta)
            self.progress(str(split), 0.0)
            schema = self._learn_schema(learning, split, stages)
            if records is None:
                records = encode(raw, schema)
            del raw, learning
            schema = self._refine_bins(records, count, split, stages)
            records = replace(records, schema=schema)
            self.public = None if public is None else encode(public, schema)
            model = self._fit_model(records, count, stages)
            chosen = count if self.request.chooses_delta and "records" in split.shares else None
            certificate = certify(
                ledger, schema, shared=self.shared, assumptions=model.assumptions, delta=delta, records=chosen
            )
            self.release = Release(schema, model, certificate)
            if out is not None:
                self._save(self.release, out)
        return self.release

    def _save(self, release: Release, out: Path) -> None:
        self.progress("saving", 0.0)
        if self.checkpoint:
            note_written(self.checkpoint, release.hash)
        self._save_private(private_path(out), release.schema)  # first: no new release lies beside an old critic
        release.save(out)

    def _save_private(self, path: Path, schema: Schema) -> None:
        """Writes what stays with the curator; what an earlier fit left there belongs to a release that is gone."""
        if self.private is None:
            path.unlink(missing_ok=True)
        else:
            save_private(path, self.request.model.name, schema, self.private)

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

    def _public_data(self) -> Raw | None:
        if self.request.public is None:
            return None
        public, least = read(self.request.public, self.schema), max(2, self.request.settings.get("clusters", 1))
        self._checked(public)
        if public.count < least:
            raise DataError(f"the public data has {public.count} records; at least {least} are needed")
        return public

    @contextlib.contextmanager
    def _opened(self, out: Path | None, resume: bool) -> Iterator[Ledger]:
        """The ledger of this fit, with a checkpoint that stays if the fit is interrupted after it spent something."""
        if isinstance(self.ledger, Ledger) and self.noise is not None:
            raise SundogError("the noise of a fit is that of its ledger; give one or the other")
        # A ledger in memory dies with the process: there would be nothing to resume.
        if out is None or isinstance(self.ledger, Ledger):
            self.shared = self._shared_ledger(resume=False)
            yield self._run_of(self.shared or self._new_ledger(None), None)
            return
        asked = self.request.to_dict(self.schema, self.ledger)
        self.checkpoint = Checkpoint.resume(out, asked) if resume else Checkpoint.begin(out, asked)
        ledger = None
        try:
            self.shared = self._shared_ledger(resume=resume)
            if self.shared is not None:
                shared = Path(str(self.ledger))
                refuse_contradictions(self.shared, shared, {shared.parent, out.parent})
            path = self.checkpoint.ledger_path
            if resume and self.shared is None and not path.exists():
                raise LedgerError(
                    f"{self.checkpoint.folder}: has no ledger to go on with; delete the folder and fit again (what it "
                    "spent, if anything, stays spent)"
                )
            own = self.shared or self._new_ledger(path, must_exist=resume)
            ledger = self._run_of(own, self.checkpoint.run)
            yield ledger
        except BaseException as error:
            if not resume and (ledger is None or not ledger.charges):
                self.checkpoint.done()  # else never: what an earlier process spent is not forgotten
            elif (full := os_error_of(error)) is not None and full.errno in FULL:
                where = full.strerror if error is full else error
                raise SundogError(
                    f"{where}; what was measured is kept in {self.checkpoint.folder}: free space, then run the same "
                    "command with --resume"
                ) from None
            raise
        else:
            self.checkpoint.done()
        finally:
            self.checkpoint.release()

    def _shared_ledger(self, *, resume: bool) -> Ledger | None:
        if self.ledger is None or isinstance(self.ledger, Ledger):
            return self.ledger
        return self._new_ledger(Path(self.ledger), must_exist=resume)

    def _new_ledger(self, path: Path | None, *, must_exist: bool = False) -> Ledger:
        """A ledger as large as this fit, in memory or in a file, unless the file is there already."""
        epsilon, delta = self.request.epsilon, self.request.delta
        delta = LARGEST_DELTA if delta is None else delta
        if path is None:
            return Ledger(epsilon=epsilon, delta=delta, noise=self.noise)
        if must_exist or path.exists():
            return Ledger.open(path, noise=self.noise)
        return Ledger.create(path, epsilon=epsilon, delta=delta, noise=self.noise)

    def _run_of(self, root: Ledger, name: str | None) -> Ledger:
        """A budget for this fit inside the ledger; where no δ was asked for, a ledger that is shared says which."""
        delta = root.budget.delta if self.request.delta is None else self.request.delta
        return root.run(epsilon=self.request.epsilon, delta=delta, name=name)

    def _split(self, ledger: Ledger) -> Split:
        """Who gets what. Records are counted only if the model or δ needs it and nobody declared how many there are."""
        needs = {
            "records": self.schema.records is None
            and (self.request.chooses_delta or self.request.model.counts_records),
            "schema": bool(unknown_columns(self.schema)),
        }
        shares = {stage: share for stage, share in _SHARES.items() if needs[stage]}
        refined = any(wants_refinement(column) for column in self.schema.columns.values())
        return Split(ledger.budget, shares, bins=SHARE if refined else 0.0)

    def _promised_delta(self, ledger: Ledger) -> float:
        """The δ of the certificate, which no record has a say in: what was asked for, or by the declared records."""
        if self.request.chooses_delta:
            ledger.tighten(delta=min(ledger.budget.delta, default_delta(self.schema.records or 1)))
        return ledger.budget.delta

    def _warn_of(self, budget: Budget) -> None:
        if not self.schema.reviewed:
            warnings.warn(
                "the schema was drafted from the data and not reviewed: what it reveals is outside the guarantee; "
                "look through it, then set `reviewed: true`",
                stacklevel=4,
            )
        if budget.epsilon > LARGEST_MEANINGFUL_EPSILON:
            warnings.warn(
                f"epsilon = {budget.epsilon:g} protects hardly anybody: the odds of a guess about a record may change "
                f"by a factor of e^{budget.epsilon:g}; 10 or less is usual",
                stacklevel=4,
            )
        if budget.delta > LARGEST_DELTA:
            warnings.warn(
                f"delta = {budget.delta:g} is large: it would allow publishing one record in {1 / budget.delta:,.0f}; "
                f"{LARGEST_DELTA:g} or less is usual",
                stacklevel=4,
            )

    def _rehearse(self, ledger: Ledger, out: Path | None) -> None:
        """Makes the certificate and, but for its weights, the release file, and throws them away."""
        if self.shared is not None and self.shared.budget.delta > LARGEST_MEANINGFUL_DELTA:
            raise BudgetError(
                f"the shared ledger's δ = {self.shared.budget.delta:g} promises nothing, and `verify` would say no; "
                f"start a ledger with a δ of {LARGEST_MEANINGFUL_DELTA:g} or less"
            )
        try:
            certificate = certify(ledger, self.schema, shared=self.shared)
        except ValidationError as error:
            problem = error.errors()[0]
            raise SundogError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}, for a certificate") from None
        if out is not None:
            folder = out.parent if self.checkpoint is None else self.checkpoint.folder
            rehearse(folder, self.schema, self.request.model.name, certificate)

    def _refuse_early(self, split: Split, ledger: Ledger) -> None:
        """Refuses what cannot be planned, or what a shared ledger has no room for, before the first charge.

        Where records are counted first, nobody knows yet which plan that will lead to. Then a shared ledger must have
        room for plans of very different numbers of records, at the largest δ: the dearest that could come of it.
        """
        exact = self.schema.records is not None or not self.request.model.counts_records
        for count in (self.schema.records,) if exact else _GUESSES:
            try:
                charges = dearest_charges(self.request, self.schema, split, count)
            except SundogError:
                if exact and "schema" not in split.shares:
                    raise
                return  # what is too little for this plan may be enough for that of the real records
            if self.shared is None:
                return
            ledger.check(*charges)

    # --- the stages that spend ---

    def _count_records(self, raw: Raw, split: Split, stages: Stages) -> int | None:
        count = self.schema.records
        if "records" in split.shares:
            count = self._paid_count(raw, split.epsilon("records"), stages)
            if self.request.chooses_delta:
                stages.ledger.tighten(delta=calibrated_delta(stages.ledger.budget.delta, count))
        return count

    def _paid_count(self, raw: Raw, epsilon: float, stages: Stages) -> int:
        def measure(paying: Ledger) -> dict[str, Any]:
            kept = raw.capped(self.schema.cap) if self.schema.unit else raw
            purpose, cap = COUNT, self.schema.cap
            noisy = noisy_count(kept.count, epsilon=epsilon, ledger=paying, purpose=purpose, contribution=cap)
            return {"count": noisy}

        return int(stages.measured("records", measure)["count"])

    def _learn_schema(self, learning: SchemaLearning, split: Split, stages: Stages) -> Schema:
        if "schema" not in split.shares:
            return self.schema

        def measure(paying: Ledger) -> dict[str, Any]:
            self.progress("learning the schema", 0.0)
            delta = SCHEMA_DELTA * paying.budget.delta
            return learning.learn(epsilon=split.epsilon("schema"), delta=delta, ledger=paying).to_dict()

        schema = Schema.from_dict(stages.measured("schema", measure))
        for name in nothing_learned(schema):
            warnings.warn(
                f"column {name!r}: no value was frequent enough to be learned, so every record is "
                f"{schema.columns[name].to_dict()['other']!r}; declare its values, or remove it",
                stacklevel=4,
            )
        return schema

    def _refine_bins(self, records: Records, count: int | None, split: Split, stages: Stages) -> Schema:
        plan = Refinement.plan(records.schema, epsilon=split.rest, delta=split.budget.delta)
        if not plan.names:
            return records.schema

        def measure(paying: Ledger) -> dict[str, Any]:
            self.progress("refining bins", 0.0)
            schema, coarse = plan.refine(records, paying, count=count)
            return {"schema": schema.to_dict(), "coarse": coarse}

        found = stages.measured("bins", measure)
        if found["coarse"]:
            names = ", ".join(repr(name) for name in found["coarse"])
            self.progress(
                f"coarse bins: {names}\n  a value that fewer than about {plan.hidden:,.0f} records share is lost in "
                "the noise: declare it as `special`, or declare `edges`",
                0.0,
            )
        return Schema.from_dict(found["schema"])

    def _fit_model(self, records: Records, count: int | None, stages: Stages) -> Model:
        found = stages.finished("model")
        if found is None:
            self.progress("planning", 0.0)
            plan = self._plan(records.schema, *_rest(stages), count)
            model = self.request.model.fit(records, plan, stages.ledger, self._workshop)
            fitted, self.private = model.state(), model.private
            self._refuse_astray(fitted)
            self._keep_model(fitted, stages)
        else:
            checkpoint = cast(Checkpoint, self.checkpoint)
            fitted = State(checkpoint.load_tensors("model"), found["result"])
            kept = checkpoint.load("private")
            self.private = None if kept is None else State(checkpoint.load_tensors("private"), kept)
        return self.request.model.from_state(records.schema, fitted)

    def _keep_model(self, fitted: State, stages: Stages) -> None:
        if self.checkpoint is None:
            return
        self.checkpoint.save_tensors("model", fitted.tensors)
        if self.private is not None:
            self.checkpoint.save_tensors("private", self.private.tensors)
            self.checkpoint.save("private", self.private.config)
        stages.finish("model", {"result": fitted.config})

    def _refuse_astray(self, fitted: State) -> None:
        """Refuses weights that are no numbers: nothing could be drawn from them."""
        if not all(np.isfinite(tensor).all() for tensor in fitted.tensors.values()):
            raise SundogError(
                f"model {self.request.model.name!r}: its training went astray, and its weights are no numbers now; fit "
                "anew with a smaller learning_rate or other settings (what was spent stays spent)"
            )

    def _plan(self, schema: Schema, budget: Budget, already: Sequence[Charge], count: int | None) -> Plan:
        return self.request.model.plan(schema, budget, already=already, records=count, settings=self._settings)

    @property
    def _settings(self) -> dict[str, Any]:
        return {**self.request.model.defaults, **self.request.settings}

    @property
    def _workshop(self) -> FitContext:
        asked = self.request
        return FitContext(asked.seed, self.progress, self.checkpoint, asked.device, asked.show_loss, self.public)


def _rest(stages: Stages) -> tuple[Budget, Sequence[Charge]]:
    """What is left for the model, and what was charged to it already.

    A count is taken off the budget beforehand, so that the rest is private whatever δ, sampling rate or model the count
    chose (docs/privacy.md); everything else is composed with the model's own charges. What a model has spent on itself
    before it was interrupted is left out, so that its plan is the same as before.
    """
    budget = stages.ledger.budget
    rest = budget.epsilon - epsilon_of_counts(stages.charges)
    return Budget(rest, budget.delta), without_counts(stages.charges)
