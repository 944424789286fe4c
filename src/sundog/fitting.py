"""One fit, stage by stage.

    read → check → count records → learn the schema → encode → refine bins → plan → fit the model → certify

Whatever can be wrong with the data is said before the first charge. The result of each stage that spends goes into a
checkpoint, if the release has a place on disk, so that an interrupted fit can go on.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sundog.checkpoint import Checkpoint
from sundog.data.database import is_url, without_secrets
from sundog.data.learn import Lesson, nothing_learned, prepare, unknown_columns
from sundog.data.read import Raw, encode, read
from sundog.data.records import Records
from sundog.data.refine import SHARE, Refinement, wants_refinement
from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError, LedgerError, ReleaseError, SundogError
from sundog.models import AUTO, get_model
from sundog.models.base import Model, Plan, State, Workshop
from sundog.models.choice import best_model
from sundog.privacy.budget import LARGEST_DELTA, Split, calibrated_delta, default_delta, promised
from sundog.privacy.counted import COUNT, epsilon_of_counts, is_count
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.mechanisms import noisy_count
from sundog.privacy.noise import NoiseSource
from sundog.progress import Progress
from sundog.release.certificate import certify
from sundog.release.private import private_path, save_private
from sundog.release.release import Release

_SHARES = {"records": 0.02, "schema": 0.10}  # of ε, for the stages before the model, when they are needed
_FRUGAL_DELTA = 1e-9  # below the default for any number of records that fits on a disk
_MANY = 10**6  # records, where nobody has said how many
_GUESSED = 1e-3  # of that δ, for a plan for so many
_SCHEMA_DELTA = 0.1  # of δ, for discovering categories


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    model: type[Model]
    epsilon: float
    delta: float | None
    seed: int | None
    settings: dict[str, Any]
    device: str = "cpu"
    show_loss: bool = False
    public: Any = None
    is_open: bool = False  # whether another model will do, if there are fewer records than was thought

    def chosen(self, schema: Schema, count: int | None) -> Request:
        """The same request, with the model that is best for about so many records if that is open."""
        if not self.is_open or count is None:
            return self
        public = self.public is not None
        name = best_model(schema, epsilon=self.epsilon, records=count, device=self.device, public=public)
        return replace(self, model=get_model(name))

    @property
    def _public_name(self) -> str | bool:
        """What is kept of where the public data came from: never a password."""
        if isinstance(self.public, str) and is_url(self.public):
            return without_secrets(self.public)
        return str(self.public) if isinstance(self.public, str | Path) else self.public is not None

    def to_dict(self, schema: Schema, ledger: str | Path | None) -> dict[str, Any]:
        """The request as JSON, to recognise it by when it is resumed."""
        return {
            "model": AUTO if self.is_open else self.model.__name__,  # a mixture is of something
            "epsilon": self.epsilon,
            "delta": self.delta,
            "seed": self.seed,
            "settings": self.settings,
            "device": self.device,
            "public": self._public_name,
            "schema": schema.to_dict(),
            "ledger": None if ledger is None else str(ledger),
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
        self.request, self.schema, self.progress = request, schema.declared(), progress
        self.ledger, self.noise = ledger, noise
        self.shared: Ledger | None = None
        self.checkpoint: Checkpoint | None = None
        self.public: Records | None = None
        self.private: State | None = None
        self.kept_charges = 0  # how many charges the results of finished stages stand for

    def run(self, data: Any, *, labels: Any, out: Path | None, resume: bool) -> Release:
        """The whole fit."""
        promised(self.request.epsilon, LARGEST_DELTA if self.request.delta is None else self.request.delta)
        for path in () if out is None else (out, private_path(out)):
            if path.exists() and not path.is_file():
                raise ReleaseError(f"{path}: is not a regular file; choose another name for the release")
        self.request.model.check(self.schema, self._settings)
        self.progress("reading", 0.0)
        raw = read(data, self.schema, labels=labels)
        lesson = prepare(raw, self.schema)
        records = self._checked(raw)
        public = self._public_data()
        with self._opened(out, resume) as ledger:
            delta = self._promised_delta(ledger)
            split = self._split(ledger)
            self._refuse_early(split, ledger)
            count = self._count_records(raw, split, ledger)
            self.request = self.request.chosen(self.schema, count)
            split = replace(split, budget=ledger.budget)
            self._warn_of(ledger.budget.delta)
            self.progress(str(split), 0.0)
            schema = self._learn_schema(lesson, split, ledger)
            if records is None:
                records = encode(raw, schema)
            del raw, lesson
            schema = self._refine_bins(records, count, split, ledger)
            records = replace(records, schema=schema)
            self.public = None if public is None else encode(public, schema)
            model = self._fit_model(records, count, ledger)
            chosen = count if self._chooses_delta and "records" in split.shares else None
            certificate = certify(
                ledger, schema, shared=self.shared, assumptions=model.assumptions, delta=delta, records=chosen
            )
            release = Release(schema, model, certificate)
            if out is not None:
                self.progress("saving", 0.0)
                self._save_private(private_path(out), schema)  # first: no new release lies beside an old critic
                release.save(out)
        return release

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
            path = self.checkpoint.ledger_path
            if resume and self.shared is None and not path.exists():
                raise LedgerError(
                    f"{self.checkpoint.folder}: has no ledger to go on with; delete the folder and fit again (what it "
                    "spent, if anything, stays spent)"
                )
            own = self.shared or self._new_ledger(path, must_exist=resume)
            ledger = self._run_of(own, self.checkpoint.run)
            yield ledger
        except BaseException:
            if not resume and (
                ledger is None or not ledger.charges
            ):  # what an earlier process spent is never forgotten
                self.checkpoint.done()
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
            "records": self.schema.records is None and (self._chooses_delta or self.request.model.counts_records),
            "schema": bool(unknown_columns(self.schema)),
        }
        shares = {stage: share for stage, share in _SHARES.items() if needs[stage]}
        refined = any(wants_refinement(column) for column in self.schema.columns.values())
        return Split(ledger.budget, shares, bins=SHARE if refined else 0.0)

    @property
    def _chooses_delta(self) -> bool:
        return self.request.delta is None

    def _promised_delta(self, ledger: Ledger) -> float:
        """The δ of the certificate, which no record has a say in: what was asked for, or by the declared records."""
        if self._chooses_delta:
            ledger.tighten(delta=min(ledger.budget.delta, default_delta(self.schema.records or 1)))
        return ledger.budget.delta

    def _warn_of(self, delta: float) -> None:
        if delta > LARGEST_DELTA:
            warnings.warn(
                f"delta = {delta:g} is large: it would allow publishing one record in {1 / delta:,.0f}; "
                f"{LARGEST_DELTA:g} or less is usual",
                stacklevel=4,
            )

    def _refuse_early(self, split: Split, ledger: Ledger) -> None:
        """Asks a shared ledger before the first charge: what it refuses to a very frugal plan, it will refuse to all.

        The plan for a tiny δ has more noise, and so spends less, than the one that will be made. Where nobody knows yet
        how many records there are, it is of another shape than that one, and so has to be more frugal still.
        """
        begun = self.request.model.resumes and ledger.charges  # some of the plan may be paid for already
        known = not split.shares.get("schema")
        if self.shared is None or not known or begun or (self.checkpoint and self.checkpoint.load("model")):
            return
        left = self.request.epsilon * (1 - split.shares.get("records", 0.0))
        guessed = self.schema.records is None and self.request.model.counts_records
        frugal = Budget(left, min(ledger.budget.delta, _FRUGAL_DELTA) * (_GUESSED if guessed else 1.0))
        bins = Refinement.plan(self.schema, epsilon=frugal.epsilon, delta=frugal.delta).charges
        try:
            plan = self._plan(self.schema, frugal, bins, self.schema.records or _MANY)
        except SundogError:
            if guessed:  # what is too little for this plan may be enough for that of the real number of records
                return
            raise
        ledger.check(*bins, *plan.charges)

    # --- the stages that spend ---

    def _count_records(self, raw: Raw, split: Split, ledger: Ledger) -> int | None:
        count = self.schema.records
        if "records" in split.shares:
            count = self._paid_count(raw, split.epsilon("records"), ledger)
            if self._chooses_delta:
                ledger.tighten(delta=calibrated_delta(ledger.budget.delta, count))
        return count

    def _paid_count(self, raw: Raw, epsilon: float, ledger: Ledger) -> int:
        def measure() -> dict[str, Any]:
            kept = raw.capped(self.schema.cap) if self.schema.unit else raw
            purpose, cap = COUNT, self.schema.cap
            noisy = noisy_count(kept.count, epsilon=epsilon, ledger=ledger, purpose=purpose, contribution=cap)
            return {"count": noisy}

        return int(self._stage("records", ledger, measure)["count"])

    def _learn_schema(self, lesson: Lesson, split: Split, ledger: Ledger) -> Schema:
        if "schema" not in split.shares:
            return self.schema

        def measure() -> dict[str, Any]:
            self.progress("learning the schema", 0.0)
            delta = _SCHEMA_DELTA * ledger.budget.delta
            return lesson.learn(epsilon=split.epsilon("schema"), delta=delta, ledger=ledger).to_dict()

        schema = Schema.from_dict(self._stage("schema", ledger, measure))
        for name in nothing_learned(schema):
            warnings.warn(
                f"column {name!r}: no value was frequent enough to be learned, so every record is "
                f"{schema.columns[name].to_dict()['other']!r}; declare its values, or remove it",
                stacklevel=4,
            )
        return schema

    def _refine_bins(self, records: Records, count: int | None, split: Split, ledger: Ledger) -> Schema:
        plan = Refinement.plan(records.schema, epsilon=split.rest, delta=split.budget.delta)
        if not plan.names:
            return records.schema

        def measure() -> dict[str, Any]:
            self.progress("refining bins", 0.0)
            schema, coarse = plan.refine(records, ledger, count=count)
            return {"schema": schema.to_dict(), "coarse": coarse}

        found = self._stage("bins", ledger, measure)
        if found["coarse"]:
            names = ", ".join(repr(name) for name in found["coarse"])
            self.progress(
                f"coarse bins: {names}; a value that fewer than about {plan.hidden:,.0f} records share is lost in the "
                "noise: declare it as `special`, or declare `edges`",
                0.0,
            )
        return Schema.from_dict(found["schema"])

    def _fit_model(self, records: Records, count: int | None, ledger: Ledger) -> Model:
        def measure() -> dict[str, Any]:
            self.progress("planning", 0.0)
            plan = self._plan(records.schema, *self._rest(ledger), count)
            model = self.request.model.fit(records, plan, ledger, self._workshop)
            fitted, self.private = model.state(), model.private
            self._refuse_astray(fitted)
            tensors.update(fitted.tensors)
            if self.checkpoint:
                self.checkpoint.save_tensors("model", tensors)
                if self.private is not None:
                    self.checkpoint.save_tensors("private", self.private.tensors)
                    self.checkpoint.save("private", self.private.config)
            return fitted.config

        tensors: dict[str, Any] = {}
        config = self._stage("model", ledger, measure)
        if not tensors and self.checkpoint:
            tensors = self.checkpoint.load_tensors("model")
            kept = self.checkpoint.load("private")
            self.private = None if kept is None else State(self.checkpoint.load_tensors("private"), kept)
        return self.request.model.from_state(records.schema, State(tensors, config))

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
    def _workshop(self) -> Workshop:
        asked = self.request
        return Workshop(asked.seed, self.progress, self.checkpoint, asked.device, asked.show_loss, self.public)

    def _rest(self, ledger: Ledger) -> tuple[Budget, Sequence[Charge]]:
        """What is left for the model, and what was charged to it already.

        A count is taken off the budget beforehand, so that the rest is private whatever δ, sampling rate or model the
        count chose (docs/privacy.md); everything else is composed with the model's own charges. What a model has spent
        on itself before it was interrupted is left out, so that its plan is the same as before.
        """
        before = ledger.charges[: None if self.checkpoint is None else self.kept_charges]
        rest = ledger.budget.epsilon - epsilon_of_counts(before)
        return Budget(rest, ledger.budget.delta), [charge for charge in before if not is_count(charge)]

    def _stage(self, name: str, ledger: Ledger, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result of a stage: from the checkpoint where it was finished before, measured and kept otherwise."""
        if self.checkpoint is None:
            return measure()
        saved = self.checkpoint.load(name, "result", "charges")
        if saved is None:
            lost = len(ledger.charges) > self.kept_charges and not self.request.model.resumes
            if name == "model" and lost:
                raise BudgetExceededError(
                    f"{self.checkpoint.folder}: what this fit had measured was lost when it was interrupted, and is "
                    "spent all the same; delete the folder and fit again, from another budget"
                )
            saved = {"result": measure(), "charges": len(ledger.charges)}
            self.checkpoint.save(name, saved)
        if len(ledger.charges) < saved["charges"]:
            raise LedgerError(
                f"{self.ledger}: lacks what the interrupted fit spent; resume with the ledger it began with"
            )
        self.kept_charges = saved["charges"]
        return dict(saved["result"])
