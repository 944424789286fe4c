"""The ledger: the total budget of a dataset, checked before every measurement.

`spend` decides, records, and only then returns: a mechanism that calls it first can never measure what the budget
does not cover. A ledger lives in memory or in a file that several runs and processes share. A run (`ledger.run`) has
a budget of its own inside the total; both must allow a charge.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import secrets
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sundog.errors import BudgetError, BudgetExceededError, LedgerError
from sundog.privacy.accountant import METHODS, Method
from sundog.privacy.events import Charge, SampledGaussian
from sundog.privacy.journal import Journal, make_old_ledger_error
from sundog.privacy.noise import NoiseSource
from sundog.privacy.record_count import compute_fit_epsilon, is_fit_within_budget


@dataclass(frozen=True)
class Budget:
    """The ε and δ that may be spent.

    >>> Budget(epsilon=1.0, delta=1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < float("inf"):
            raise BudgetError(f"epsilon must be a positive number, not {self.epsilon}")
        if not 0 < self.delta < 1:
            raise BudgetError(f"delta must lie between 0 and 1, not {self.delta}")


class Entry(BaseModel):
    """Charges that were made together: one line of a ledger."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    run: str
    time: str
    private: bool
    charges: tuple[Charge, ...]


class Header(BaseModel):
    """The first line of a ledger file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["sundog-ledger"] = "sundog-ledger"
    version: Literal[1] = 1
    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
    created: str
    id: str


@dataclass(frozen=True)
class Head:
    """The state of a ledger file at one time: its number of lines, and the hash of the last.

    The hash covers every earlier line. Kept with a release, it shows whether the ledger was cut or rewritten since.
    """

    ledger: str
    lines: int
    hash: str


class Ledger:
    """A budget and everything that was charged to it.

    >>> from sundog.privacy.events import Gaussian
    >>> ledger = Ledger(epsilon=1.0, delta=1e-5)
    >>> ledger.spend(Charge(event=Gaussian(noise_multiplier=5.0), purpose="a sum"))
    >>> round(ledger.compute_spent(), 2)
    0.73
    >>> ledger.spend(Charge(event=Gaussian(noise_multiplier=1.0), purpose="too much"))
    Traceback (most recent call last):
    ...
    sundog.errors.BudgetExceededError: refused: 'too much' would bring ε to 4.478 of 1 (at δ = 1e-05); ...

    Args:
        epsilon: the total ε.
        delta: the δ at which ε is computed.
        noise: where the mechanisms that spend from this ledger draw their noise; the operating system by default.
    """

    def __init__(self, *, epsilon: float, delta: float, noise: NoiseSource | None = None) -> None:
        self.budget = Budget(epsilon, delta)
        self.noise = noise if noise is not None else NoiseSource()
        self.name = secrets.token_hex(8)
        self.id = ""  # a ledger file has one
        self._parent: Ledger | None = None
        self._journal: Journal | None = None
        self._entries: list[Entry] = []
        self._threads = threading.Lock()
        self._process = os.getpid()

    @classmethod
    def create(cls, path: str | Path, *, epsilon: float, delta: float, noise: NoiseSource | None = None) -> Ledger:
        """Create a ledger file; raise LedgerError if the file exists."""
        budget = Budget(float(epsilon), float(delta))
        header = Header(epsilon=budget.epsilon, delta=budget.delta, created=_format_now(), id=secrets.token_hex(8))
        Journal.create(Path(path), header.model_dump())
        return cls.open(path, noise=noise)

    @classmethod
    def open(cls, path: str | Path, *, noise: NoiseSource | None = None) -> Ledger:
        """Open a ledger file, which other runs may be using at the same time; reading needs no write access."""
        journal = Journal(Path(path))
        first = journal.read()[0]
        try:
            header = Header.model_validate(first)
        except ValidationError:
            if first.get("format") == "sundog-ledger" and "id" not in first:
                raise make_old_ledger_error(journal.path) from None
            raise LedgerError(f"{path}: is not a sundog ledger of version 1") from None
        ledger = cls(epsilon=header.epsilon, delta=header.delta, noise=noise)
        ledger._journal, ledger.id = journal, header.id
        if journal.torn:
            warnings.warn(
                f"{path}: the last line is incomplete, cut by a crash or an edit; it is not counted, and the next "
                "charge replaces it: restore a backup if anything was released for it",
                stacklevel=2,
            )
        return ledger

    def run(self, *, epsilon: float, delta: float, name: str | None = None) -> Ledger:
        """Return a budget inside this one, for one release; charges count against both.

        With the `name` of an earlier run, that run continues with what it has left.
        """
        if epsilon > self.budget.epsilon:
            raise BudgetExceededError(
                f"refused: the release asks for ε = {epsilon:g}, but the ledger holds {self.budget.epsilon:g} in all"
            )
        child = Ledger(epsilon=epsilon, delta=delta, noise=self.noise)
        child._parent = self
        name = name if name is not None else child.name
        child.name = name if self._parent is None else f"{self.name}/{name}"  # a run inside a run counts as both
        return child

    def tighten(self, *, delta: float) -> None:
        """Lower δ once it is known; it can never be raised."""
        if delta > self.budget.delta:
            raise BudgetExceededError(f"δ can be lowered but not raised, from {self.budget.delta:.3g} to {delta:.3g}")
        self.budget = Budget(self.budget.epsilon, delta)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries so far, of all processes."""
        with self._lock():
            return tuple(self._list_entries())

    @property
    def charges(self) -> tuple[Charge, ...]:
        """The charges of `entries`."""
        return _list_charges(self.entries)

    @property
    def own_entries(self) -> tuple[Entry, ...]:
        """The entries of this run, without those of other runs in the same file."""
        return tuple(entry for entry in self.entries if self._is_mine(entry))

    @property
    def private(self) -> bool:
        """Whether all noise was private: False once a charge was measured with test noise."""
        return self.noise.private and all(entry.private for entry in self.entries)

    @property
    def head(self) -> Head | None:
        """The current state of the file; None for a ledger in memory."""
        if self._journal is None:
            return None
        with self._lock():
            return Head(self.id, len(self._journal.heads), self._journal.heads[-1])

    def has(self, head: Head) -> bool:
        """Return whether the file still begins with the lines that it had in that state."""
        if self._journal is None:
            return False
        with self._lock():
            return self._journal.heads[head.lines - 1 : head.lines] == [head.hash]

    def compute_spent(self, method: Method = "pld") -> float:
        """Return ε so far at the ledger's δ, by `pld` (the claim), `rdp` or `moments`."""
        return compute_fit_epsilon(self.charges, delta=self.budget.delta, method=method)

    def check(self, *charges: Charge) -> None:
        """Raise BudgetExceededError if the charges could not be made now; record nothing."""
        with self._lock():
            self._check_all(charges)

    def spend(self, *charges: Charge) -> None:
        """Record the charges, all or none, or raise BudgetExceededError; measure only after it returns."""
        with self._lock(to_write=True):
            self._check_all(charges)
            self._record(Entry(run=self.name, time=_format_now(), private=self.noise.private, charges=charges))
        self.noise.note_charges(charges, paid=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole ledger as plain JSON values."""
        entries, delta = self.entries, self.budget.delta
        spent = {method: compute_fit_epsilon(_list_charges(entries), delta=delta, method=method) for method in METHODS}
        return {
            "epsilon": self.budget.epsilon,
            "delta": delta,
            "private": self.noise.private and all(entry.private for entry in entries),
            "spent": {method: epsilon if math.isfinite(epsilon) else None for method, epsilon in spent.items()},
            "entries": [entry.model_dump(mode="json") for entry in entries],
        }

    def _check_all(self, charges: Sequence[Charge]) -> None:
        ledger: Ledger | None = self
        while ledger is not None:
            ledger._check(charges)
            ledger = ledger._parent

    def _check(self, charges: Sequence[Charge]) -> None:
        before, delta = _list_charges(self._list_entries()), self.budget.delta
        if is_fit_within_budget([*before, *charges], epsilon=self.budget.epsilon, delta=delta):
            return
        spent = compute_fit_epsilon([*before, *charges], delta=delta)
        purposes = ", ".join(dict.fromkeys(f"'{charge.purpose}'" for charge in charges[:3]))
        earlier = compute_fit_epsilon(before, delta=delta)
        raise BudgetExceededError(
            f"refused: {purposes} would bring ε to {spent:.4g} of {self.budget.epsilon:.4g} (at δ = {delta:.3g}); "
            f"{earlier:.4g} was spent before; lower the request or open a larger ledger"
        )

    def _list_entries(self) -> list[Entry]:
        if self._parent is not None:  # the charges of this run, by any process
            return [entry for entry in self._parent._list_entries() if self._is_mine(entry)]
        if self._journal is None:
            return self._entries
        for line in self._journal.lines[1 + len(self._entries) :]:
            try:
                self._entries.append(Entry.model_validate_json(json.dumps(line)))
            except ValidationError:
                number = len(self._entries) + 2
                raise LedgerError(
                    f"{self._journal.path}: line {number} is not a ledger entry; restore a backup"
                ) from None
        return self._entries

    def _record(self, entry: Entry) -> None:
        if self._journal is not None:
            self._journal.append(entry.model_dump(mode="json"))
            return
        if self._parent is not None:
            self._parent._record(entry)
        else:
            self._entries.append(entry)

    def _is_mine(self, entry: Entry) -> bool:
        return entry.run == self.name or entry.run.startswith(self.name + "/")

    @contextmanager
    def _lock(self, *, to_write: bool = False) -> Iterator[None]:
        """Lock the root of this ledger against other threads, and its file against other processes that write."""
        root = self
        while root._parent is not None:
            root = root._parent
        if root._journal is None and os.getpid() != root._process:
            raise LedgerError("a ledger in memory cannot be shared between processes; use a ledger file")
        with root._threads, nullcontext() if root._journal is None else root._journal.lock(shared=not to_write):
            yield


def merge_blocks(charges: Iterable[Charge]) -> list[Charge]:
    """Merge the charges of a training that was paid for in blocks into one, at the position of the first block.

    Only sampled Gaussians are merged: two equal charges for anything else are two measurements.

    >>> block = Charge(event=SampledGaussian(noise_multiplier=1.0, sample_rate=0.1), count=40, purpose="training")
    >>> [charge.count for charge in merge_blocks([block, block])]
    [80]
    """
    found: list[Charge] = []
    places: dict[tuple[SampledGaussian, str], int] = {}
    for charge in charges:
        if not isinstance(charge.event, SampledGaussian):
            found.append(charge)
            continue
        place = places.setdefault((charge.event, charge.purpose), len(found))
        if place == len(found):
            found.append(charge)
        else:
            found[place] = found[place].model_copy(update={"count": found[place].count + charge.count})
    return found


def _list_charges(entries: Iterable[Entry]) -> tuple[Charge, ...]:
    return tuple(charge for entry in entries for charge in entry.charges)


def _format_now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
