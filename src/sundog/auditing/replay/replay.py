"""Replay a fit on neighbouring inputs, and say what the released values do not explain.

    record the fit of D → hand what it released to the fit of D + r → compare everything else

It takes a fit for each neighbour, and no statistics: a record that changes how another is encoded, a tensor's shape, a
file's name or a message is found the first time it happens.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import sparse

from sundog.auditing.replay.execution import Execution, FitSettings, PublicationSettings, Subject
from sundog.auditing.replay.neighbours import Pair, list_pairs
from sundog.auditing.replay.realised_noise import find_noise_faults
from sundog.auditing.replay.sources import Container, Table, open_source
from sundog.auditing.replay.transcript_comparison import Difference, compare_runs
from sundog.auditing.replay.values import Kind
from sundog.data.reading.read import Raw, encode, find_first_of_each, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import ArgumentError, SundogError
from sundog.privacy.transcript import RecordingSource, Released, ReplayingSource, Transcript
from sundog.progress import Progress, silent
from sundog.release.release import Release

Positions = npt.NDArray[np.int64]

_FEWEST = 8  # neighbours to compare, however long it takes: two of each stream


@dataclass(frozen=True)
class ReplayResult:
    """What replaying a fit has shown.

    Args:
        differences: what the released values do not explain; none for a correct fit.
        compared: how many neighbours of each kind were fitted and compared.
        refused: how many others were refused before anything was charged.
        draws: how many draws were compared, over all neighbours.
        seconds: of the processor that it took.
        is_cut: whether it ended because its time was over.
    """

    differences: tuple[Difference, ...]
    compared: Mapping[Kind, int]
    refused: int
    draws: int
    seconds: float
    is_cut: bool = False

    @property
    def fitted(self) -> int:
        """How many neighbours were compared."""
        return sum(self.compared.values())

    @property
    def passed(self) -> bool:
        """Whether nothing differed in at least one neighbour that was fitted."""
        return not self.differences and self.fitted > 0

    def __str__(self) -> str:
        shown = [f"neighbours compared: {self.fitted} ({self.draws} draws, {self.seconds:.1f} s)"]
        shown += [f"neighbours refused before anything was charged: {self.refused}"] if self.refused else []
        return "\n".join([*shown, *(map(str, self.differences) if self.differences else ["no difference"])])


def replay_fit(
    data: Any,
    schema: Schema,
    *,
    pairs: Iterable[Pair] | None = None,
    most: int | None = None,
    seconds: float = math.inf,
    records: int | None = None,
    progress: Progress = silent,
    **settings: Any,
) -> ReplayResult:
    """Fit data and its neighbours with the same released values, and compare everything else.

    >>> schema = Schema.from_dict({"records": 40, "columns": {"age": {"type": "integer", "min": 0, "max": 9}}})
    >>> data = {"age": [3, 4, 3, 7] * 10}
    >>> replay_fit(data, schema, model="independent", delta=1e-6, most=3).passed
    True

    Args:
        data: the path of a csv or parquet file, a DataFrame, a mapping of columns, or the array or list of the only
            column.
        schema: of the records.
        pairs: the neighbours; by default extremes, missing values, other spellings and types, copies and removals.
        most: how many neighbours to compare at most; those that are refused do not count.
        seconds: of the processor, after which it stops, but not before eight neighbours were compared.
        records: the most records to use, from the first on.
        progress: is called with the neighbour that is compared.
        settings: further ones of `FitSettings`.
    """
    subject = FitSettings(Schema.of(schema), **settings)
    return _replay(subject, data, pairs, most, seconds=seconds, records=records, progress=progress)


def replay_publication(
    data: Any, release: Release, *, epsilon: float, pairs: Iterable[Pair] | None = None, most: int | None = None
) -> ReplayResult:
    """Measure figures for publication on data and its neighbours with the same noisy counts, and compare the rest.

    Args:
        data: the real records, as for `replay_fit`.
        release: of these records.
        epsilon: what the figures cost.
        pairs: the neighbours.
        most: how many neighbours to compare at most; those that are refused do not count.
    """
    return _replay(PublicationSettings(release, epsilon), data, pairs, most)


def _replay(
    subject: Subject,
    data: Any,
    pairs: Iterable[Pair] | None,
    most: int | None,
    *,
    seconds: float = math.inf,
    records: int | None = None,
    progress: Progress = silent,
) -> ReplayResult:
    started = time.process_time()  # so that a busy machine compares as many
    schema = subject.schema
    if any(column.public for column in schema.columns.values()):
        raise ArgumentError("a schema with public columns has other neighbours; leave out `public: true` to replay it")
    source = open_source(data, schema, records=records)
    found: list[Difference] = []
    compared: Counter[Kind] = Counter()
    refused = draws = 0
    is_cut = False
    recordings: dict[int, _Recording] = {}
    for pair in list_pairs(source, schema, seed=subject.seed) if pairs is None else pairs:
        fitted, elapsed = compared.total(), time.process_time() - started
        is_cut = fitted >= _FEWEST and elapsed > seconds
        if is_cut or fitted == most:
            break
        progress(f"replay: neighbour {fitted + 1}", fitted / (most or math.inf))
        recording = recordings.setdefault(id(pair.without), _Recording(pair.without))
        replayed = recording.replay(pair, source.make, subject)
        if replayed is None:
            continue
        compared[pair.kind] += not replayed.refused
        refused += replayed.refused
        draws += replayed.draws
        found += replayed.differences
    return ReplayResult(tuple(found), dict(compared), refused, draws, time.process_time() - started, is_cut)


@dataclass(frozen=True)
class _Replayed:
    """What one neighbour has shown."""

    differences: list[Difference]
    refused: bool
    draws: int


class _Recording:
    """A fit that is recorded when it is first needed, and then replayed with any number of neighbours."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._run: Execution | None = None

    def replay(self, pair: Pair, container: Container, subject: Subject) -> _Replayed | None:
        """Replay the run with a neighbour; None if no source of this kind can hold it."""
        found: list[Difference] = []
        if self._run is None:
            self._run = self._record(container, subject)
            found += [Difference("nothing", *fault) for fault in find_noise_faults(self._run.transcript)]
        if self._run.error is not None:
            if pair.kind is Kind.REMOVAL and not self._run.transcript.events:
                return _Replayed(found, True, 0)  # such as a table that is empty without the record
            raise SundogError(f"the run to replay fails: {self._run.error}")
        with tempfile.TemporaryDirectory() as folder:
            try:
                source = container(pair.joined, Path(folder))
            except (ValueError, TypeError, OverflowError, pa.ArrowException):
                return None
            transcript = Transcript()
            added = find_added(source, subject.schema, pair.places)
            noise = ReplayingSource(subject.seed, transcript, self._run.transcript, added)
            after = subject.run(source, noise, transcript)
            refused = after.error is not None and not transcript.events
            found += compare_runs(self._run, after, pair.name)
            learned = self._run.outputs.get("schema")
            if not refused and learned is not None:
                before = container(self._table, _make_folder(folder))
                found += compare_encodings(before, source, learned, pair)
        return _Replayed(found, refused, sum(isinstance(event, Released) for event, _ in transcript.events))

    def _record(self, container: Container, subject: Subject) -> Execution:
        with tempfile.TemporaryDirectory() as folder:
            transcript = Transcript()
            noise = RecordingSource(subject.seed, transcript)
            return subject.run(container(self._table, Path(folder)), noise, transcript)


def find_added(source: Any, schema: Schema, places: Iterable[int]) -> tuple[int, ...]:
    """Return the positions of the added examples: records, or people if a person may have several records.

    >>> schema = Schema.from_dict({"unit": "who", "columns": {"x": {"type": "boolean"}}, "cap": 2})
    >>> find_added({"who": ["a", "new", "b", "new"], "x": [True] * 4}, schema, [1, 3])
    (1,)
    """
    try:
        raw = read(source, schema)
    except SundogError:
        return ()  # it will be refused
    kept = _find_kept(raw, schema)
    mine = np.isin(kept, list(places))
    if schema.unit is None or schema.cap == 1:
        return tuple(np.flatnonzero(mine).tolist())
    assert raw.unit is not None  # noqa: S101
    owners = list(dict.fromkeys(raw.unit.to_pylist()))
    return tuple(sorted({owners.index(raw.unit[int(place)].as_py()) for place in kept[mine]}))


def compare_encodings(before: Any, after: Any, schema: Schema, pair: Pair) -> list[Difference]:
    """Return the columns in which a common record is encoded differently beside the added one."""
    try:
        second = read(after, schema)
        alone, beside = encode(read(before, schema), schema), encode(second, schema)
    except SundogError as error:
        return [Difference(pair.name, "the schema of the release", f"does not fit the data: {error}")]
    common = np.flatnonzero(~np.isin(_find_kept(second, schema), pair.places))
    if len(alone) != len(common):
        what = f"{len(alone)} records are {len(common)} beside it"
        return [Difference(pair.name, "reading", what)]
    return [
        Difference(pair.name, f"encoding of column {name!r}", f"{changed} common records have other codes beside it")
        for name in schema.columns
        if (changed := _count_changed(alone, beside.take(common), name))
    ]


def _count_changed(alone: Records, beside: Records, name: str) -> int:
    first, second = (
        each.codes[name].toarray() if sparse.issparse(each.codes[name]) else each.codes[name]
        for each in (alone, beside)
    )
    return int((first != second).reshape(len(alone), -1).any(axis=1).sum())


def _find_kept(raw: Raw, schema: Schema) -> Positions:
    """Return the positions of the records that are used."""
    if raw.unit is None:
        return np.arange(raw.count)
    return np.asarray(find_first_of_each(raw.unit, schema.cap), np.int64)


def _make_folder(folder: str) -> Path:
    path = Path(folder) / "alone"
    path.mkdir()
    return path
