"""What a fit was asked for, how its budget is split, and the most that it may be charged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sundog.data.bin_refinement import SHARE, Refinement
from sundog.data.columns import BooleanColumn
from sundog.data.reading.database import hide_secrets, is_url
from sundog.data.schema import Schema
from sundog.data.schema_learning import list_unknown_columns
from sundog.models.auto import best_model
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
    """What was asked for."""

    configuration: Configuration
    epsilon: float
    delta: float | None
    seed: int | None
    device: str = "cpu"
    show_loss: bool = False
    public: Any = None
    is_open: bool = False  # whether the model may still be chosen by the number of records

    def chosen(self, schema: Schema, count: int | None) -> Request:
        """Return this request with the best model for about `count` records, if the choice is still open."""
        if not self.is_open or count is None:
            return self
        public = self.public is not None
        name = best_model(schema, epsilon=self.epsilon, records=count, device=self.device, public=public)
        return replace(self, configuration=configure(name, {}, public=public))

    @property
    def model(self) -> type[Model]:
        """The class of the model, which may import torch."""
        return get_model(self.configuration.name)

    @property
    def _public_name(self) -> str | bool:
        """Where the public data came from, without passwords."""
        if isinstance(self.public, str) and is_url(self.public):
            return hide_secrets(self.public)
        return str(self.public) if isinstance(self.public, str | Path) else self.public is not None

    def to_dict(self, schema: Schema, ledger: str | Path | None) -> dict[str, Any]:
        """Return the request as JSON, to compare with when the fit is resumed."""
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
        """Whether δ follows from the number of records."""
        return self.delta is None


def split_budget(request: Request, schema: Schema, budget: Budget) -> Split:
    """Return the share of each stage; records are counted only if the model or δ depends on their undeclared number."""
    needed = {
        "records": schema.records is None and (request.chooses_delta or request.configuration.counts_records),
        "schema": bool(list_unknown_columns(schema)),
    }
    shares = {stage: share for stage, share in _SHARES.items() if needed[stage]}
    refined = any(column.awaits_refinement for column in schema.columns.values())
    return Split(budget, shares, bins=SHARE if refined else 0.0)


def dearest_charges(request: Request, schema: Schema, split: Split, count: int | None) -> list[Charge]:
    """Return the most that all stages of a fit may be charged; nothing is measured.

    Args:
        request: what was asked for.
        schema: as declared; columns that are still to be learned are planned as boolean ones.
        split: the share of each stage, at the largest δ that may be calibrated to.
        count: about how many records to plan for.
    """
    budget, schema_delta = split.budget, SCHEMA_DELTA * split.budget.delta
    counting, learning = [], []
    if "records" in split.shares:
        event = DiscreteLaplace(rate=split.epsilon("records") / schema.cap, sensitivity=schema.cap)
        counting = [Charge(event=event, purpose=COUNT)]
    if "schema" in split.shares:
        learning = [
            Charge(event=Pure(epsilon=split.epsilon("schema")), purpose="schema"),
            Charge(event=Failure(delta=schema_delta), purpose="schema"),
        ]
    schema = _completed(schema)
    before = [*learning, *Refinement.plan(schema, epsilon=split.rest, delta=budget.delta).charges]
    request = request.chosen(schema, count)
    rest = Budget(budget.epsilon - split.epsilon("records"), budget.delta)
    plan = request.model.plan(schema, rest, request.configuration, already=before, records=count)
    return [*plan.charges, *counting, *before]


def _completed(schema: Schema) -> Schema:
    unknown = dict.fromkeys(list_unknown_columns(schema), BooleanColumn())
    return schema.model_copy(update={"columns": {**schema.columns, **unknown}})
