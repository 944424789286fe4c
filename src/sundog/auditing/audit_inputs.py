"""Inputs of an audit: the release or synthetic records, members, non-members, and what else an attacker may hold."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.auditing.threat_model import Knowledge, PrivateFile, ThreatModel
from sundog.data.columns import Form
from sundog.data.reading.read import Raw, encode, find_first_of_each, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.comparison import choose_rows, make_rng
from sundog.evaluation.holdout_overlap import compute_copied_share
from sundog.evaluation.inputs import (
    choose_schema,
    describe_source,
    explain_draft,
    load_release,
    read_synthetic,
    relax_schema,
)
from sundog.privacy.ledger import Ledger
from sundog.progress import Progress
from sundog.release.curator_file import load_curator_file
from sundog.release.release import Release

Integers = npt.NDArray[np.int64]

ROWS, QUICK_ROWS = 100_000, 5_000  # the most records of each kind to use
_BYTES = 2**28  # of the images and series of each kind, unless a number of records was asked for
FEWEST = 20  # records of each kind, or people
_MOST_COPIED = 0.02  # of the non-members may be members
_FIXES = {
    "non-members": "give records that the release was not fitted on",
    "reference": "give further records of the population, or leave it out",
}


@dataclass(frozen=True)
class RealData:
    """Where real records come from."""

    members: Any
    nonmembers: Any
    reference: Any
    labels: Any
    nonmember_labels: Any


@dataclass(frozen=True)
class AuditRequest:
    """What to audit, and with what; the fields are the arguments of `sundog.audit`, in their order."""

    synthetic: Any
    members: Any
    nonmembers: Any
    reference: Any
    private: str | Path | None
    schema: Schema | None
    labels: Any
    nonmember_labels: Any
    attack: str
    audits: Sequence[str]
    device: str
    settings: Mapping[str, Any]
    n: int | None
    rows: int | None
    quick: bool
    seed: int
    publish: float | None
    ledger: Ledger | str | Path | None
    progress: Progress

    @property
    def real(self) -> RealData:
        """Where real records come from."""
        return RealData(self.members, self.nonmembers, self.reference, self.labels, self.nonmember_labels)

    @property
    def most(self) -> int:
        """The most records of each kind to use, or people."""
        return self.rows or (QUICK_ROWS if self.quick else ROWS)


@dataclass(frozen=True, eq=False)
class Sample:
    """Real records of one kind.

    Args:
        name: of the file or object, for messages.
        records: those that are used.
        places: the position of each among the records that were read, from 0.
        people: the number of the owner of each, from 0; the record itself where there is no unit.
        owners: the ids of the owners of all that were read; empty where there is no unit.
        count: how many records were read.
    """

    name: str
    records: Records
    places: Integers
    people: Integers
    owners: frozenset[str]
    count: int

    def take(self, index: Any) -> Sample:
        """Return a part of the records; owners keep their numbers."""
        rows = np.arange(len(self.records))[index]
        return Sample(self.name, self.records.take(rows), self.places[rows], self.people[rows], self.owners, self.count)


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """The inputs of an audit as records.

    Args:
        name: of what is audited.
        release: the release, if it is one.
        schema: of all records.
        members: records that the release was fitted on.
        nonmembers: records of the same population that it was not fitted on.
        held: what the attacker holds, except for the reference sample if none was given.
        notes: what a reader of the figures must know.
    """

    name: str
    release: Release | None
    schema: Schema
    members: Sample
    nonmembers: Sample
    held: ThreatModel
    notes: tuple[str, ...]


def read_audit_inputs(request: AuditRequest) -> AuditInputs:
    """Read all inputs; every fault is a DataError of one line."""
    if request.most < FEWEST:
        raise DataError(f"{request.most} records of each kind are too few for an audit; use at least {FEWEST}")
    _refuse_same_source(request.real)
    release = load_release(request.synthetic)
    strict = choose_schema(release, request.schema, request.members, request.nonmembers)
    shared = strict if release is not None else relax_schema(strict)
    request = replace(request, rows=request.rows or limit_rows(request.most, shared))
    request.progress("reading", 0.0)
    with explain_draft(request.members, drafted=release is None and request.schema is None):
        return _read_with_schema(request, release, strict, shared)


def _read_with_schema(request: AuditRequest, release: Release | None, strict: Schema, shared: Schema) -> AuditInputs:
    """Read all inputs; real records must satisfy the strict schema, and all are encoded with the shared one."""
    real = request.real
    members = _read_sample(real.members, real.labels, "members", request, strict, shared)
    nonmembers = _read_sample(real.nonmembers, real.nonmember_labels, "non-members", request, strict, shared)
    _refuse_overlap(members, nonmembers)
    synthetic, made = read_synthetic(
        request.synthetic, release, shared, n=request.n, rows=2 * request.most, seed=request.seed
    )
    if len(synthetic) < FEWEST:
        name = describe_source(request.synthetic)
        raise DataError(f"{name}: {len(synthetic)} synthetic records are too few to attack; give at least {FEWEST}")
    held: dict[Knowledge, Any] = {Knowledge.SYNTHETIC: synthetic}
    if release is not None:
        held[Knowledge.RELEASE] = release
    if real.reference is not None:
        reference = _read_sample(real.reference, None, "reference", request, strict, shared)
        _refuse_overlap(members, reference)
        _refuse_overlap(nonmembers, reference)
        held[Knowledge.REFERENCE] = reference.records
    if request.private is not None:
        held[Knowledge.PRIVATE_FILE] = PrivateFile(*load_curator_file(request.private))
    return AuditInputs(
        name=describe_source(request.synthetic),
        release=release,
        schema=shared,
        members=members,
        nonmembers=nonmembers,
        held=ThreatModel(held),
        notes=tuple(_note_limits(members, nonmembers, synthetic, made)),
    )


def limit_rows(most: int, schema: Schema) -> int:
    """Return how many records of each kind to use: fewer if images or series are large, to bound the memory.

    >>> limit_rows(100_000, Schema.from_dict({"columns": {"x": {"type": "image", "shape": [128, 128, 3]}}}))
    5461
    """
    arrays = [column for column in schema.columns.values() if column.shape and column.form is not Form.SET]
    size = sum(math.prod(column.shape) * column.dtype.itemsize for column in arrays)
    return min(most, max(FEWEST, _BYTES // max(1, size)))


def _read_sample(
    source: Any, labels: Any, purpose: str, request: AuditRequest, strict: Schema, shared: Schema
) -> Sample:
    """Return real records, or a random subset of them; they must satisfy the strict schema."""
    whole = read(source, strict, labels=labels)
    kept = np.arange(whole.count) if whole.unit is None else find_first_of_each(whole.unit, strict.cap)
    raw = whole if len(kept) == whole.count else whole.take(kept)
    count = raw.count if raw.unit is None else len(set(raw.unit.to_pylist()))
    if count < FEWEST:
        raise DataError(f"{raw.name}: too few {purpose} for an audit: {count}; give at least {FEWEST}")
    places = _choose_places(raw, request.most, make_rng(request.seed, f"{purpose} rows"))
    chosen = raw if len(places) == raw.count else raw.take(places)
    records = encode(chosen, strict)
    if shared is not strict:
        records = encode(chosen, shared)
    if raw.unit is None or chosen.unit is None:
        return Sample(raw.name, records, kept[places], np.arange(len(records)), frozenset(), raw.count)
    people = np.unique(chosen.unit.to_pylist(), return_inverse=True)[1].astype(np.int64)
    return Sample(raw.name, records, kept[places], people, frozenset(raw.unit.to_pylist()), raw.count)


def _choose_places(raw: Raw, most: int, rng: np.random.Generator) -> Integers:
    """Return the positions of all records, or of a random subset; with all records of `most` people if there is a unit.

    If records of people were left out, a person's number of records would depend on how many others there are, which
    may differ between members and non-members.
    """
    if raw.unit is None:
        return choose_rows(raw.count, most, rng)
    owners = np.unique(raw.unit.to_pylist(), return_inverse=True)[1]
    chosen = choose_rows(int(owners.max()) + 1, most, rng)
    return np.flatnonzero(np.isin(owners, chosen))


def _refuse_overlap(members: Sample, others: Sample) -> None:
    """Raise if records or people are of both kinds."""
    both = members.owners & others.owners
    if both:
        raise DataError(f"{others.name}: {len(both):,} of its people are in {members.name} too; remove them from one")
    share = 0.0 if members.owners else compute_copied_share(members.records, others.records)
    if share > _MOST_COPIED:
        raise DataError(
            f"{others.name}: {share:.0%} of its records are in {members.name} too; give records that the release was "
            "not fitted on"
        )


def _refuse_same_source(real: RealData) -> None:
    """Raise if records are given twice: of many records, random subsets are compared, which have few in common."""
    given = {"members": real.members, "non-members": real.nonmembers, "reference": real.reference}
    for (first, one), (second, other) in itertools.combinations(given.items(), 2):
        if other is not None and _is_same(one, other):
            shown = describe_source(other) if isinstance(other, str | os.PathLike) else type(other).__name__
            raise DataError(f"{shown}: these are the {first}; {_FIXES[second]}")


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two sources are the same object, or paths of the same file."""
    if isinstance(one, str | os.PathLike) and isinstance(other, str | os.PathLike):
        return Path(one).resolve() == Path(other).resolve()
    return one is other


def _note_limits(members: Sample, nonmembers: Sample, synthetic: Records, made: int) -> Iterator[str]:
    for kind, sample in (("members", members), ("non-members", nonmembers)):
        if len(sample.records) < sample.count:
            yield f"{len(sample.records):,} of {sample.count:,} {kind} were used, chosen at random."
    if len(synthetic) < made:
        yield f"{len(synthetic):,} of {made:,} synthetic records were used, chosen at random."
