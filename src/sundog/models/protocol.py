"""The one small protocol behind which every generative model sits.

A model is planned before data is touched (`plan` sees the schema and the budget, never a record), fitted by spending
exactly its plan, sampled with a seedable generator, and taken apart into plain arrays and JSON for the release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from sundog.data.code_set import CodeSet
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.model_state import State
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Budget, Ledger
from sundog.progress import Progress, silent

__all__ = ["Codes", "FitContext", "Model", "Parts", "Plan", "State", "Where"]

Codes = dict[str, Any]  # an array of codes a column, as in Records.codes
Where = Mapping[str, CodeSet | int]  # the codes, or the one, that a scalar column may have; or numbers of a choice


def allowed(codes: CodeSet | int) -> CodeSet:
    """A condition as a set of codes.

    >>> allowed(3)
    CodeSet(ranges=((3, 3),))
    """
    return codes if isinstance(codes, CodeSet) else CodeSet.of([codes])


@dataclass(frozen=True)
class Plan:
    """What a model is going to spend, and the numbers it derived from that."""

    charges: tuple[Charge, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Parts:
    """Disjoint parts of the records, each for a model of its own.

    Args:
        owner: the part of each record, by nothing but the record and what is public; None where one part has all.
        sizes: about how many records each part has, as far as it is public.
    """

    owner: npt.NDArray[np.int64] | None
    sizes: tuple[float, ...]

    @classmethod
    def whole(cls, records: float) -> Parts:
        """One part."""
        return cls(None, (records,))


@dataclass(frozen=True)
class FitContext:
    """Where a model is fitted and who watches: nothing here changes what is spent.

    Args:
        seed: fixes initialisation, never privacy noise.
        progress: is told what is being done, and how much of it is.
        checkpoint: where a model that trains keeps its state; None where the release has no place on disk.
        device: where to train.
        show_loss: tell `progress` the loss of private records. That is NOT PRIVATE: for the curator's eyes only.
        public: records that are public, for models that can make use of them.
    """

    seed: int | None = None
    progress: Progress = silent
    checkpoint: Checkpoint | None = None
    device: str = "cpu"
    show_loss: bool = False
    public: Records | None = None


class Model(Protocol):
    """A generative model of encoded records."""

    name: ClassVar[str]
    options: ClassVar[frozenset[str]]  # which of clusters, public, device and show_loss it understands
    defaults: ClassVar[Mapping[str, Any]]  # settings that `--set name=value` may change
    counts_records: ClassVar[bool]  # whether the plan needs to know (about) how many records there are

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        """Refuses settings that are wrong whatever the schema is."""

    @classmethod
    def check(cls, schema: Schema, settings: Mapping[str, Any]) -> None:
        """Refuses a schema or settings that it cannot work with, before anything is spent."""

    @classmethod
    def plan(
        cls,
        schema: Schema,
        budget: Budget,
        *,
        already: Sequence[Charge],
        records: int | None,
        settings: Mapping[str, Any],
    ) -> Plan:
        """Decides what to measure: together with `already`, at most the budget. Sees no data."""

    @classmethod
    def fit(cls, records: Records, plan: Plan, ledger: Ledger, context: FitContext) -> Self:
        """Learns the records, spending exactly `plan.charges` from the ledger.

        After an interruption it goes on from what it kept in the context's checkpoint, and charges nothing twice.
        """

    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draws n records that satisfy `where`."""

    def log_evidence(self, where: Where) -> float:
        """The logarithm of the probability that a record satisfies `where`, as well as it can be estimated."""

    @property
    def choices(self) -> Mapping[str, int]:
        """What `where` may name besides columns, and how many values it has."""

    @property
    def assumptions(self) -> Sequence[str]:
        """What it took to be public besides the schema; the certificate says so."""

    @property
    def private(self) -> State | None:
        """What a fit leaves for the curator besides the release, such as a critic; None for nothing."""

    @property
    def records(self) -> int | None:
        """About how many records it was fitted on, as far as the budget told."""

    def unexplained(self, charges: Sequence[Charge]) -> list[str]:
        """What the model learned from private data and none of the charges paid for."""

    def state(self) -> State:
        """Everything that sampling needs."""

    @classmethod
    def from_state(cls, schema: Schema, state: State) -> Self:
        """The model that `state` came from; raises ReleaseError if it cannot be one."""
