"""The request for a fit: the chosen configuration, the split of its budget, and the most that it may be charged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sundog.data.bin_refinement import SHARE, Refinement
from sundog.data.columns import BooleanColumn
from sundog.data.reading.database import hide_secrets, is_url
from sundog.data.schema import Schema
from sundog.data.schema_learning import list_unknown_columns
from sundog.models.auto import choose_model
from sundog.models.configuration import Configuration
from sundog.models.protocol import Model
from sundog.models.registry import AUTO, configure, get_model
from sundog.privacy.budget import Split
from sundog.privacy.events import Charge, DiscreteLaplace, Failure, Pure
from sundog.privacy.ledger import Budget
from sundog.privacy.record_count import COUNT

SCHEMA_DELTA = 0.1  # of δ, for discovering categories
_SHARES = {"records": 0.02, "schema": 0.10}  # of ε, for the stages before the model, where they are needed


@dataclass(frozen=True)
class Request:
    """What was asked for, with the configuration of the chosen model."""

    configuration: Configuration
    epsilon: float
    delta: float | None
    seed: int | None
    device: str = "cpu"
    show_loss: bool = False
    public: Any = None
    is_open: bool = False  # whether the model may still be chosen by the number of records

    def choose_model(self, schema: Schema, count: int | None) -> Request:
        """Return this request with the best model for about `count` records, if the choice is still open.

        `auto` chooses twice by the same rule. The first choice rests on public facts alone: options, disk space and
        the plan are checked for it, and it decides whether records are counted. A noisy count, once paid for, may then
        choose another model.
        """
        if not self.is_open or count is None:
            return self
        configuration = choose_configuration(
            AUTO, schema, epsilon=self.epsilon, records=count, device=self.device, public=self.public is not None
        )
        return replace(self, configuration=configuration)

    @property
    def model(self) -> type[Model]:
        """The class of the model, which may import torch."""
        return get_model(self.configuration.name)

    @property
    def _public_name(self) -> str | bool:
        """The source of the public data, without passwords."""
        if isinstance(self.public, str) and is_url(self.public):
            return hide_secrets(self.public)
        return str(self.public) if isinstance(self.public, str | Path) else self.public is not None

    def to_dict(self, schema: Schema, ledger: str | Path | None) -> dict[str, Any]:
        """Return the request as JSON, to be compared when the fit is resumed."""
        return {
            "model": AUTO if self.is_open else self.configuration.title,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "seed": self.seed,
            "settings": self.configuration.to_dict(),
            "device": self.device,
            "public": self._public_name,
            "schema": schema.to_dict(),
            "ledger": None if ledger is None else str(ledger),
        }

    @property
    def chooses_delta(self) -> bool:
        """Whether δ follows from the number of records, because none was given."""
        return self.delta is None


def choose_configuration(
    model: str,
    schema: Schema,
    *,
    epsilon: float,
    records: int | None,
    device: str = "cpu",
    public: bool = False,
    clusters: int = 1,
    settings: Mapping[str, Any] | None = None,
) -> Configuration:
    """Return the configuration of a model, checked against the schema; `auto` is the best model for these records.

    Args:
        model: `auto` or the name of a model.
        schema: of the records.
        epsilon: the budget.
        records: about how many there are: declared, or counted with noise; None if neither.
        device: where networks train.
        public: whether there are public records.
        clusters: how many components the model is to have.
        settings: settings of the model by name.
    """
    schema = schema.modelled
    if model == AUTO:
        model = choose_model(schema, epsilon=epsilon, records=records, device=device, public=public, clusters=clusters)
    configuration = configure(model, settings or {}, clusters=clusters, public=public)
    configuration.check(schema)
    return configuration


def split_budget(request: Request, schema: Schema, budget: Budget) -> Split:
    """Return the share of each stage; records are counted only if the model or δ depends on an undeclared number."""
    needed = {
        "records": schema.records is None and (request.chooses_delta or request.configuration.counts_records),
        "schema": bool(list_unknown_columns(schema)),
    }
    shares = {stage: share for stage, share in _SHARES.items() if needed[stage]}
    refined = any(column.awaits_refinement for column in schema.columns.values())
    return Split(budget, shares, bins=SHARE if refined else 0.0)


def bound_charges(request: Request, schema: Schema, split: Split, count: int | None) -> list[Charge]:
    """Return the largest charges that all stages of a fit may make; nothing is measured.

    Args:
        request: what was asked for.
        schema: as declared; columns that are still to be learned are planned as boolean ones.
        split: the share of each stage, at the largest δ that noise may be calibrated to.
        count: about how many records to plan for.
    """
    budget, schema_delta = split.budget, SCHEMA_DELTA * split.budget.delta
    counting, learning = [], []
    if "records" in split.shares:
        event = DiscreteLaplace(rate=split.get_epsilon("records") / schema.cap, sensitivity=schema.cap)
        counting = [Charge(event=event, purpose=COUNT)]
    if "schema" in split.shares:
        learning = [
            Charge(event=Pure(epsilon=split.get_epsilon("schema")), purpose="schema"),
            Charge(event=Failure(delta=schema_delta), purpose="schema"),
        ]
    schema = _fill_unknown_columns(schema.modelled)
    before = [*learning, *Refinement.plan(schema, epsilon=split.rest, delta=budget.delta).charges]
    request = request.choose_model(schema, count)
    rest = Budget(budget.epsilon - split.get_epsilon("records"), budget.delta)
    plan = request.model.plan(schema, rest, request.configuration, already=before, records=count)
    return [*plan.charges, *counting, *before]


def _fill_unknown_columns(schema: Schema) -> Schema:
    unknown = dict.fromkeys(list_unknown_columns(schema), BooleanColumn())
    return schema.model_copy(update={"columns": {**schema.columns, **unknown}})
