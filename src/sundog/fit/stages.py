"""The stages of a fit that spend: each takes values and returns its result, measured and paid for once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from sundog.data.bin_refinement import Refinement
from sundog.data.reading.read import Raw
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.data.schema_learning import SchemaLearning, list_nothing_learned
from sundog.errors import SundogError
from sundog.fit.request import SCHEMA_DELTA, Request
from sundog.fit.run import Run
from sundog.models.protocol import FitContext, HasPrivateState, Model, Plan, State
from sundog.privacy.budget import Split, compute_calibrated_delta
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.measure_once import keep_stage, load_stage, measure_stage
from sundog.privacy.mechanisms import noisy_count
from sundog.privacy.record_count import COUNT, compute_count_epsilon, exclude_counts
from sundog.progress import Progress


@dataclass(frozen=True)
class RecordCount:
    """About how many records there are.

    Args:
        records: declared or measured; None if neither was needed.
        paid: how many of the run's charges have paid for the stages so far.
    """

    records: int | None
    paid: int


@dataclass(frozen=True)
class LearnedSchema:
    """The schema after a stage that learns.

    Args:
        schema: with what was learned.
        paid: how many of the run's charges have paid for the stages so far.
    """

    schema: Schema
    paid: int


@dataclass(frozen=True)
class FittedModel:
    """A model, and the state that stays with the curator."""

    model: Model
    curator_state: State | None


def count_records(raw: Raw, schema: Schema, request: Request, split: Split, run: Run) -> RecordCount:
    """Count the records if the budget has a share for it; lower the run's δ if it follows from the count."""
    if "records" not in split.shares:
        return RecordCount(schema.records, paid=0)

    def measure(ledger: Ledger) -> dict[str, Any]:
        capped = raw.bound_contributions(schema.cap) if schema.unit else raw
        epsilon = split.get_epsilon("records")
        noisy = noisy_count(capped.count, epsilon=epsilon, ledger=ledger, purpose=COUNT, contribution=schema.cap)
        return {"count": noisy}

    stage = measure_stage("records", measure, run.ledger, run.checkpoint, paid=0)
    count = int(stage.result["count"])
    if request.chooses_delta:
        run.ledger.tighten(delta=compute_calibrated_delta(run.ledger.budget.delta, count))
    return RecordCount(count, stage.paid)


def learn_schema(learning: SchemaLearning, split: Split, run: Run, progress: Progress, *, paid: int) -> LearnedSchema:
    """Learn what the schema does not declare."""
    if "schema" not in split.shares:
        return LearnedSchema(learning.schema, paid)

    def measure(ledger: Ledger) -> dict[str, Any]:
        progress("learning the schema", 0.0)
        delta = SCHEMA_DELTA * ledger.budget.delta
        return learning.learn(epsilon=split.get_epsilon("schema"), delta=delta, ledger=ledger).to_dict()

    stage = measure_stage("schema", measure, run.ledger, run.checkpoint, paid=paid)
    schema = Schema.from_dict(stage.result)
    for name in list_nothing_learned(schema):
        warnings.warn(
            f"column {name!r}: no value was frequent enough to be learned, so every record is "
            f"{schema.columns[name].to_dict()['other']!r}; declare its values, or remove it",
            stacklevel=4,
        )
    return LearnedSchema(schema, stage.paid)


def refine_bins(
    records: Records, count: int | None, split: Split, run: Run, progress: Progress, *, paid: int
) -> LearnedSchema:
    """Choose the bins of columns that do not declare any."""
    plan = Refinement.plan(records.schema, epsilon=split.rest, delta=split.budget.delta)
    if not plan.names:
        return LearnedSchema(records.schema, paid)

    def measure(ledger: Ledger) -> dict[str, Any]:
        progress("refining bins", 0.0)
        schema, coarse = plan.refine(records, ledger, count=count)
        return {"schema": schema.to_dict(), "coarse": coarse}

    stage = measure_stage("bins", measure, run.ledger, run.checkpoint, paid=paid)
    if stage.result["coarse"]:
        names = ", ".join(repr(name) for name in stage.result["coarse"])
        progress(
            f"coarse bins: {names}\n  a value that fewer than about {plan.detection_limit:,.0f} records share is lost "
            "in the noise: declare it as `special`, or declare `edges`",
            0.0,
        )
    return LearnedSchema(Schema.from_dict(stage.result["schema"]), stage.paid)


def fit_model(
    records: Records, count: int | None, request: Request, run: Run, context: FitContext, *, paid: int
) -> FittedModel:
    """Fit the model with the rest of the budget; its own measurements are kept as it makes them."""
    kept = _load_model(records.schema, request.model, run)
    if kept is not None:
        return kept
    context.progress("planning", 0.0)
    plan = plan_model(records.schema, count, request, run.ledger, paid=paid)
    model = request.model.fit(records, plan, run.ledger, context)
    fitted = FittedModel(model, model.private if isinstance(model, HasPrivateState) else None)
    _keep_model(fitted, run)
    return fitted


def plan_model(schema: Schema, count: int | None, request: Request, ledger: Ledger, *, paid: int) -> Plan:
    """Plan the model with what the earlier stages have left of the budget.

    The ε of a count is subtracted from the budget first, so that the rest is private whatever δ, sampling rate or model
    the count chose (docs/privacy.md); all other charges are composed with the model's own. Charges that an interrupted
    fit made for the model itself are left out, so that its plan is the same as before.
    """
    charges = ledger.charges[:paid]
    budget = Budget(ledger.budget.epsilon - compute_count_epsilon(charges), ledger.budget.delta)
    already, configuration = exclude_counts(charges), request.configuration
    plan: Plan = request.model.plan(schema, budget, configuration, already=already, records=count)
    return plan


def _load_model(schema: Schema, model: type[Model], run: Run) -> FittedModel | None:
    stage, checkpoint = load_stage("model", run.ledger, run.checkpoint), run.checkpoint
    if stage is None or checkpoint is None:
        return None
    private = checkpoint.load_json("private")
    return FittedModel(
        model.from_state(schema, _load_state(checkpoint, "model", stage.result)),
        None if private is None else _load_state(checkpoint, "private", private),
    )


def _load_state(checkpoint: Checkpoint, name: str, config: dict[str, Any]) -> State:
    tensors = checkpoint.load_tensors(name)
    if tensors is None:
        raise checkpoint.make_unreadable_error(f"{name}.safetensors")
    return State(tensors, config)


def _keep_model(fitted: FittedModel, run: Run) -> None:
    state, private, checkpoint = fitted.model.state(), fitted.curator_state, run.checkpoint
    _refuse_diverged(fitted.model.name, state)
    if checkpoint is None:
        return
    checkpoint.save_tensors("model", state.tensors)
    if private is not None:
        checkpoint.save_tensors("private", private.tensors)
        checkpoint.save_json("private", private.config)
    keep_stage("model", state.config, run.ledger, checkpoint)


def _refuse_diverged(model: str, state: State) -> None:
    """Refuse weights that are not finite: nothing could be sampled from them."""
    if not all(np.isfinite(tensor).all() for tensor in state.tensors.values()):
        raise SundogError(
            f"model {model!r}: training diverged, and the weights are not finite; fit again with a smaller "
            "learning_rate or other settings (what was spent stays spent)"
        )
