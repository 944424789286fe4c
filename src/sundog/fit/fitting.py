"""One fit, from private data to a release.

    read → check → count records → learn the schema → encode → refine bins → plan → fit the model → certify → save

Problems with the data, the plan or the place of the release are reported before the first charge. The stages
that spend keep their results in a checkpoint, if the release is saved to disk, so that an interrupted fit can be
resumed without charging or measuring anything twice (`privacy/measure_once.py`, docs/ledger.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sundog.data.reading.read import Raw, encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.data.schema_learning import SchemaLearning, list_unknown_columns, prepare
from sundog.errors import DataError
from sundog.files import refuse_full
from sundog.fit.preflight import check_before_spending, estimate_room, note_written, refuse_other_public, warn_of_risks
from sundog.fit.request import Request, split_budget
from sundog.fit.rule_check import drop_derived, refuse_broken_rules, report_acceptance
from sundog.fit.run import Run, RunOptions, open_run
from sundog.fit.stages import FittedModel, count_records, fit_model, learn_schema, refine_bins
from sundog.models.protocol import FitContext, State
from sundog.models.registry import read_model
from sundog.privacy.budget import LARGEST_DELTA, check_budget, compute_default_delta
from sundog.privacy.ledger import Ledger
from sundog.progress import Progress
from sundog.release.certificate import certify
from sundog.release.curator_file import get_curator_path, save_curator_file
from sundog.release.release import Release


@dataclass(frozen=True)
class Fitted:
    """The result of a fit: the release, and the state that stays with the curator (such as a GAN's critic)."""

    release: Release
    curator_state: State | None


@dataclass(frozen=True)
class _Inputs:
    """The data as read: records are encoded if the schema is complete; if not, it is learned from the data first."""

    raw: Raw
    learning: SchemaLearning
    records: Records | None
    public: Raw | None


def run_fit(
    request: Request,
    schema: Schema,
    data: Any,
    options: RunOptions,
    *,
    labels: Any,
    progress: Progress,
    deliver: Callable[[Fitted], None],
) -> None:
    """Run a whole fit.

    Args:
        request: what was asked for.
        schema: what is publicly known about the data.
        data: the private data.
        options: the ledger to spend from and the file to save.
        labels: class labels of images or series, when they are not part of the data.
        progress: is called with the current stage and the part of it that is done.
        deliver: is called with the result before it is saved; if saving fails, the caller can save it elsewhere.
    """
    check_budget(request.epsilon, LARGEST_DELTA if request.delta is None else request.delta)
    whole = schema.declare_learned()
    schema = whole.modelled
    inputs = _read_inputs(request, whole, data, labels, progress)
    if options.out is not None:
        refuse_full(options.out.parent, estimate_room(schema, request.configuration))
    with open_run(request, whole, options) as run:
        delta = _promise_delta(request, schema, run.ledger)
        split = split_budget(request, schema, run.ledger.budget)
        check_before_spending(request, whole, split, run, options.out)
        warn_of_risks(whole, run.ledger.budget)
        counted = count_records(inputs.raw, schema, request, split, run)
        request = request.choose_model(schema, counted.records)
        split = replace(split, budget=run.ledger.budget, promised_delta=delta)
        progress(str(split), 0.0)
        learned = learn_schema(inputs.learning, split, run, progress, paid=counted.paid)
        records = encode(inputs.raw, learned.schema) if inputs.records is None else inputs.records
        public = inputs.public
        del inputs  # the raw data may be large
        refined = refine_bins(records, counted.records, split, run, progress, paid=learned.paid)
        records = replace(records, schema=refined.schema)
        context = _make_context(request, run, progress, None if public is None else encode(public, refined.schema))
        model = fit_model(records, counted.records, request, run, context, paid=refined.paid)
        count = counted.records if request.chooses_delta and "records" in split.shares else None
        fitted = _certify(model, whole.with_columns(refined.schema.columns), run, delta=delta, records=count)
        deliver(fitted)
        if options.out is not None:
            _save(fitted, options.out, run, progress)
    report_acceptance(fitted.release, progress)


def _read_inputs(request: Request, schema: Schema, data: Any, labels: Any, progress: Progress) -> _Inputs:
    """Read the private and the public data; raise if private records break a rule of the schema."""
    progress("reading", 0.0)
    raw, modelled = read(data, schema, labels=labels), schema.modelled
    learning = prepare(raw, modelled)
    records = _encode_known(raw, schema)
    refuse_broken_rules(raw, schema, records)
    raw = replace(raw, columns={name: raw.columns[name] for name in modelled.columns})
    records = None if records is None else drop_derived(records, modelled)
    return _Inputs(raw, learning, records, _read_public(request, modelled))


def _encode_known(raw: Raw, schema: Schema) -> Records | None:
    """Return the records if the schema is complete; if not, check the columns that it declares, and return None."""
    unknown = list_unknown_columns(schema)
    if not unknown:
        return encode(raw, schema)
    known = {name: values for name, values in raw.columns.items() if name not in unknown}
    if known:
        columns = {name: schema.columns[name] for name in known}
        encode(replace(raw, columns=known), schema.model_copy(update={"columns": columns}))
    return None


def _read_public(request: Request, schema: Schema) -> Raw | None:
    if request.public is None:
        return None
    public, least = read(request.public, schema), max(2, request.configuration.components)
    refuse_broken_rules(public, schema, _encode_known(public, schema))
    if public.count < least:
        raise DataError(f"the public data has {public.count} records; at least {least} are needed")
    return public


def _promise_delta(request: Request, schema: Schema, ledger: Ledger) -> float:
    """Return the δ of the certificate: as requested, or by the declared number of records, never by the data."""
    if request.chooses_delta:
        ledger.tighten(delta=min(ledger.budget.delta, compute_default_delta(schema.records or 1)))
    return ledger.budget.delta


def _make_context(request: Request, run: Run, progress: Progress, public: Records | None) -> FitContext:
    refuse_other_public(run.checkpoint, public)
    return FitContext(request.seed, progress, run.checkpoint, request.device, request.show_loss, public)


def _certify(fitted: FittedModel, schema: Schema, run: Run, *, delta: float, records: int | None) -> Fitted:
    model = read_model(fitted.model.name, schema.modelled, fitted.model.state())
    certificate = certify(run.ledger, schema, shared=run.shared, model=model, delta=delta, records=records)
    return Fitted(Release(schema, fitted.model, certificate), fitted.curator_state)


def _save(fitted: Fitted, out: Path, run: Run, progress: Progress) -> None:
    """Save the curator's file first, so that a new release never lies beside an old critic."""
    progress("saving", 0.0)
    release, path = fitted.release, get_curator_path(out)
    if run.checkpoint is not None:
        note_written(run.checkpoint, release.hash)
    if fitted.curator_state is None:
        path.unlink(missing_ok=True)  # of an earlier release in this place
    else:
        save_curator_file(path, release.model.name, release.schema, fitted.curator_state)
    release.save(out)
