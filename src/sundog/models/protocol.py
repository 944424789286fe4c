"""What a generative model is, as small protocols: plan, fit, sample, state.

    configuration → plan(schema, budget) → fit(records, plan, ledger) → sample(n) and state()

A model is planned before data is touched (`plan` sees the schema and the budget, never a record), fitted by spending
exactly its plan, sampled with a seedable generator, and written to the release as plain arrays and JSON. To add one,
write a folder in models/ with a `Configuration` (models/configuration.py), a `Model`, and a `ReleasedModel`
(models/released.py), and name the three in models/registry.py. A model that can be the component of a mixture is a
`PartsModel`, and has "clusters" among its configuration's options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from sundog.data.code_set import CodeSet
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.progress import Progress, silent

Codes = dict[str, Any]  # an array of codes a column, as in Records.codes
Where = Mapping[str, CodeSet | int]  # the codes, or the one, that a scalar column may have; or numbers of a choice


def to_code_set(codes: CodeSet | int) -> CodeSet:
    """Return a condition as a set of codes.

    >>> to_code_set(3)
    CodeSet(ranges=((3, 3),))
    """
    return codes if isinstance(codes, CodeSet) else CodeSet.of([codes])


class Plan(Protocol):
    """The charges of a fit. Each model has a frozen dataclass of its own, with the numbers it derived."""

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges of the fit, in the order in which they are made."""


@dataclass(frozen=True)
class State:
    """A fitted model as plain arrays and JSON values: what a release file holds of it."""

    tensors: dict[str, npt.NDArray[Any]]
    config: dict[str, Any]


@dataclass(frozen=True)
class Parts:
    """Disjoint parts of the records, each for a model of its own.

    Args:
        owner: the part of each record, a function of that record and of what is public; None if there is one part.
        sizes: about how many records each part has, as far as it is public.
    """

    owner: npt.NDArray[np.int64] | None
    sizes: tuple[float, ...]

    @property
    def counts(self) -> list[int]:
        """The sizes as whole numbers, 1 at least."""
        return [max(1, round(size)) for size in self.sizes]

    @classmethod
    def whole(cls, records: float) -> Parts:
        """Return all records as one part."""
        return cls(None, (records,))


class TrainingCanaries(Protocol):
    """Examples with known gradients, planted in a training that is audited and not released (auditing/canaries)."""

    def install(self, step: Any, examples: Any, training: Any) -> tuple[Any, Any]:
        """Return the step and the examples with canaries among them, given those of a training and its plan."""


@dataclass(frozen=True)
class FitContext:
    """How a model is fitted; nothing here changes what is spent.

    Args:
        seed: fixes initialisation, never privacy noise.
        progress: callback with the current stage and the fraction of it that is done.
        checkpoint: where a model that trains keeps its state; None where the release has no place on disk.
        device: where to train.
        show_loss: report the loss on private records to `progress`. That is NOT PRIVATE: for the curator's eyes only.
        public: public records, for models that can use them.
        canaries: planted in the training of networks, for an audit; None in every fit that is released.
    """

    seed: int | None = None
    progress: Progress = silent
    checkpoint: Checkpoint | None = None
    device: str = "cpu"
    show_loss: bool = False
    public: Records | None = None
    canaries: TrainingCanaries | None = None


class Model(Protocol):
    """A generative model of encoded records."""

    name: ClassVar[str]

    @classmethod
    def plan(
        cls, schema: Schema, budget: Budget, configuration: Any, *, already: Sequence[Charge], records: int | None
    ) -> Any:
        """Plan what to measure, without seeing data: together with `already`, at most the budget.

        Args:
            schema: of the records.
            budget: for `already` and the plan together.
            configuration: of the model's own class; `configuration.check(schema)` has passed.
            already: what was charged before.
            records: about how many there are, declared or paid for; None if that is not known.

        Returns:
            A `Plan` of the model's own class.
        """

    @classmethod
    def fit(cls, records: Records, plan: Any, ledger: Ledger, context: FitContext) -> Self:
        """Learn the records, spending exactly `plan.charges` from the ledger.

        After an interruption it continues from what it kept in the context's checkpoint, and charges nothing twice.
        """

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draw n records that satisfy `where`."""

    def state(self) -> State:
        """Return the arrays and the configuration that sampling needs."""

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """Return the model of a state; raise ReleaseError if the state is not one of this model and schema."""


class PartsModel(Model, Protocol):
    """A model that can be the component of a mixture."""

    @classmethod
    def fit_parts(cls, records: Records, parts: Parts, plan: Any, ledger: Ledger, context: FitContext) -> list[Self]:
        """Fit one model on each part. A record is in one part only, so all parts cost as much as one."""

    def log_evidence(self, where: Where) -> float:
        """Return an estimate of the logarithm of the probability that a record satisfies `where`."""


@runtime_checkable
class HasLogDensity(Protocol):
    """A fitted model that tells how probable a record is; audits ask it."""

    def log_density(self, records: Records) -> npt.NDArray[np.float64]:
        """Return the logarithm of the density of each record, up to a constant that is the same for all of them."""


@runtime_checkable
class HasPrivateState(Protocol):
    """A fitted model with a part for the curator that is not released, such as a critic."""

    private: State | None
