"""What a fit was asked for, and the most that it may be charged for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sundog.data.bin_refinement import Refinement
from sundog.data.columns import BooleanColumn
from sundog.data.reading.database import is_url, without_secrets
from sundog.data.schema import Schema
from sundog.data.schema_learning import unknown_columns
from sundog.models.auto import best_model
from sundog.models.protocol import Model
from sundog.models.registry import AUTO, get_model
from sundog.privacy.budget import Split
from sundog.privacy.counted import COUNT
from sundog.privacy.events import Charge, DiscreteLaplace, Failure, Pure
from sundog.privacy.ledger import Budget

SCHEMA_DELTA = 0.1  # of δ, for discovering categories


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

    @property
    def chooses_delta(self) -> bool:
        """Whether δ follows from the number of records."""
        return self.delta is None


def dearest_charges(request: Request, schema: Schema, split: Split, count: int | None) -> list[Charge]:
    """The most that a fit may be charged in all of its stages, for about so many records; nothing is measured yet.

    Args:
        request: what was asked for.
        schema: what is known of the data; columns that are still to be learned get a stand-in.
        split: who gets what, at the largest δ that may be calibrated to.
        count: how many records to plan for.
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
    settings = {**request.model.defaults, **request.settings}
    plan = request.model.plan(schema, rest, already=before, records=count, settings=settings)
    return [*plan.charges, *counting, *before]


def _completed(schema: Schema) -> Schema:
    unknown = dict.fromkeys(unknown_columns(schema), BooleanColumn())
    return schema.model_copy(update={"columns": {**schema.columns, **unknown}})
