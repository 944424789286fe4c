"""Inputs of an audit: the release or synthetic records, members, non-members, and what else an attacker may hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sundog.audit.threat_model import Knowledge, PrivateFile, ThreatModel
from sundog.data.reading.read import Raw, encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.comparison import choose_rows, make_rng
from sundog.evaluation.holdout_overlap import compute_copied_share
from sundog.evaluation.inputs import choose_schema, describe_source, load_release, read_synthetic, relax_schema
from sundog.progress import Progress, silent
from sundog.release.curator_file import load_curator_file
from sundog.release.release import Release

Integers = npt.NDArray[np.int64]

ROWS, QUICK_ROWS = 100_000, 5_000  # the most records of each kind to use
FEWEST = 20  # records of each kind
_MOST_COPIED = 0.02  # of the non-members may be members


@dataclass(frozen=True)
class AuditRequest:
    """What to audit, and with what; the fields are arguments of `sundog.audit`."""

    synthetic: Any
    members: Any
    nonmembers: Any
    reference: Any = None
    private: str | Path | None = None
    schema: Schema | None = None
    labels: Any = None
    nonmember_labels: Any = None
    reference_labels: Any = None
    _: KW_ONLY
    attack: str = "all"
    n: int | None = None
    rows: int | None = None
    quick: bool = False
    seed: int = 0
    progress: Progress = silent

    @property
    def most(self) -> int:
        """The most records of each kind to use."""
        return self.rows or (QUICK_ROWS if self.quick else ROWS)


@dataclass(frozen=True, eq=False)
class Sample:
    """Real records of one kind.

    Args:
        name: of the file or object, for messages.
        records: those that are used.
        places: the position of each among the records that were read, from 0.
        people: the number of the owner of each, from 0; the record itself where there is no unit.
        count: how many records were read.
    """

    name: str
    records: Records
    places: Integers
    people: Integers
    count: int

    def take(self, index: Any) -> Sample:
        """Return a part of the records; owners keep their numbers."""
        rows = np.arange(len(self.records))[index]
        return Sample(self.name, self.records.take(rows), self.places[rows], self.people[rows], self.count)


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
    release = load_release(request.synthetic)
    strict = choose_schema(release, request.schema, request.members)
    shared = strict if release is not None else relax_schema(strict)
    request.progress("reading", 0.0)
    raw, members = _read_sample(request.members, strict, shared, request.labels, request, "members")
    others, nonmembers = _read_sample(
        request.nonmembers, strict, shared, request.nonmember_labels, request, "non-members"
    )
    _refuse_overlap(raw, members, others, nonmembers)
    synthetic, made = read_synthetic(
        request.synthetic, release, shared, n=request.n, rows=2 * request.most, seed=request.seed
    )
    if len(synthetic) < FEWEST:
        raise DataError(
            f"{describe_source(request.synthetic)}: {len(synthetic)} synthetic records are too few to attack"
        )
    held: dict[Knowledge, Any] = {Knowledge.SYNTHETIC: synthetic}
    if release is not None:
        held[Knowledge.RELEASE] = release
    if request.reference is not None:
        read_reference = _read_sample(request.reference, strict, shared, request.reference_labels, request, "reference")
        _refuse_overlap(raw, members, *read_reference)
        _refuse_overlap(others, nonmembers, *read_reference)
        held[Knowledge.REFERENCE] = read_reference[1].records
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


def _read_sample(
    source: Any, strict: Schema, shared: Schema, labels: Any, request: AuditRequest, purpose: str
) -> tuple[Raw, Sample]:
    """Return real records as they were read, and a random subset of them, encoded."""
    raw = read(source, strict, labels=labels)
    if strict.unit is not None:
        raw = raw.bound_contributions(strict.cap)
    if raw.count < FEWEST:
        raise DataError(f"{raw.name}: {raw.count} {purpose} are too few for an audit; give at least {FEWEST}")
    places = choose_rows(raw.count, request.most, make_rng(request.seed, f"{purpose} rows"))
    chosen = raw if len(places) == raw.count else raw.take(places)
    records = encode(chosen, strict)
    if shared is not strict:
        records = encode(chosen, shared)
    people = np.arange(len(records)) if records.unit is None else np.unique(records.unit, return_inverse=True)[1]
    return raw, Sample(raw.name, records, places, np.asarray(people, np.int64), raw.count)


def _refuse_overlap(raw: Raw, members: Sample, others: Raw, nonmembers: Sample) -> None:
    """Raise if records or people are of both kinds."""
    if raw.unit is not None and others.unit is not None:
        shared = set(_list_ids(raw.unit)) & set(_list_ids(others.unit))
        if shared:
            raise DataError(
                f"{others.name}: {len(shared):,} of its people are in {raw.name} too; remove them from one of the two"
            )
        return
    share = compute_copied_share(members.records, nonmembers.records)
    if share > _MOST_COPIED:
        raise DataError(
            f"{others.name}: {share:.0%} of its records are in {raw.name} too; give records that the release was not "
            "fitted on"
        )


def _list_ids(unit: pa.ChunkedArray) -> list[str]:
    return unit.unique().to_pylist()  # type: ignore[no-any-return]


def _note_limits(members: Sample, nonmembers: Sample, synthetic: Records, made: int) -> Iterator[str]:
    for kind, sample in (("members", members), ("non-members", nonmembers)):
        if len(sample.records) < sample.count:
            yield f"{len(sample.records):,} of {sample.count:,} {kind} were used, chosen at random."
    if len(synthetic) < made:
        yield f"{len(synthetic):,} of {made:,} synthetic records were used, chosen at random."
