"""From whatever was given (a release, a file of any tool, tables, arrays) to records that can be compared."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sundog.data.columns import Column, ImageColumn, ListedColumn, OrderedColumn, SeriesColumn, SetColumn
from sundog.data.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError, SchemaError
from sundog.evaluate.comparison import Comparison, at_most, split
from sundog.progress import Progress, silent
from sundog.release.release import Release

ROWS = 100_000  # of each kind are looked at, at most
TEST_SHARE = 0.25  # of the real records stand in for a holdout that was not given
FEWEST = 20  # records of each kind
UNDECLARED = "(not declared)"  # what another tool made up


@dataclass(frozen=True)
class Inputs:
    """What was given, as records.

    Args:
        name: of what is on trial.
        release: it, if it is a release.
        comparison: the records to look at, at most `ROWS` of each kind.
        real: all real records, for what is measured with budget.
        held_out: all records that were held out, if there were any.
        notes: what a reader of the figures must know.
        counts: how many records there were of each kind.
    """

    name: str
    release: Release | None
    comparison: Comparison
    real: Records
    held_out: Records | None
    notes: tuple[str, ...]
    counts: dict[str, int]


def gather(
    synthetic: Any,
    *,
    real: Any,
    holdout: Any = None,
    target: str | None = None,
    schema: Schema | None = None,
    labels: Any = None,
    holdout_labels: Any = None,
    n: int | None = None,
    rows: int = ROWS,
    seed: int = 0,
    progress: Progress = silent,
) -> Inputs:
    """Reads everything; whatever is wrong with it is a DataError of one line. See `evaluate` for the arguments."""
    if rows < FEWEST:
        raise DataError(f"rows is {rows}; look at {FEWEST} records at least")
    release = _as_release(synthetic)
    schema = _schema_for(release, schema, real)
    _check_target(schema, target)
    progress("reading", 0.0)
    everything = _records(real, schema, labels)
    _refuse_one_class(everything, target)
    held_out = None if holdout is None else _records(holdout, schema, holdout_labels)
    empty = Comparison(everything, everything, everything, everything, seed=seed)
    chosen = at_most(everything, rows, empty.rng("real rows"))
    if held_out is None:
        train, test = split(chosen, TEST_SHARE, empty.rng("split"))
    else:
        train, test = chosen, at_most(held_out, rows, empty.rng("test rows"))
    drawn, made = _synthetic(synthetic, release, schema, len(everything) if n is None else n, rows, empty)
    comparison = Comparison(chosen, drawn, train, test, _target(schema, target), seed, progress)
    counts = {"real": len(everything), "held out": 0 if held_out is None else len(held_out), "synthetic": made}
    _refuse_few(counts)
    looked_at = {"real": len(chosen), "held out": len(test), "synthetic": len(drawn)}
    return Inputs(
        name=_name(synthetic),
        release=release,
        comparison=comparison,
        real=everything,
        held_out=held_out,
        notes=tuple(_notes(counts, looked_at)),
        counts=counts,
    )


# --- what is on trial ----------------------------------------------------------------------------------------------


def _as_release(synthetic: Any) -> Release | None:
    if isinstance(synthetic, Release):
        return synthetic
    is_file = isinstance(synthetic, str | os.PathLike) and Path(synthetic).suffix == ".sundog"
    return Release.load(synthetic) if is_file else None


def _synthetic(
    synthetic: Any, release: Release | None, schema: Schema, n: int, rows: int, draws: Comparison
) -> tuple[Records, int]:
    """The records on trial, and how many there were before some were chosen."""
    if release is None:
        nobodys = schema.model_copy(update={"unit": None, "cap": 1})
        raw = read(synthetic, nobodys)
        places = draws.rng("synthetic rows").permutation(raw.count)[:rows]
        return encode(raw if raw.count <= rows else raw.take(np.sort(places)), nobodys), raw.count
    count = min(n, rows)
    batches = list(release.batches(count, seed=draws.seed))
    codes = {name: _stacked([batch.codes[name] for batch in batches]) for name in schema.columns}
    return Records(schema, codes, count), count


def _stacked(parts: list[Any]) -> Any:
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


def _name(synthetic: Any) -> str:
    if isinstance(synthetic, str | os.PathLike):
        return Path(synthetic).name
    return "the release" if isinstance(synthetic, Release) else "the synthetic data"


# --- what is real --------------------------------------------------------------------------------------------------


def _schema_for(release: Release | None, schema: Schema | None, real: Any) -> Schema:
    """That of the release; or the one that was given, or else drafted from the real data, forgiving in both cases."""
    if release is not None:
        if schema is not None:
            raise SchemaError("a release has its own schema; leave out the other one")
        return release.schema
    return forgiving(Schema.draft(real) if schema is None else schema)


def forgiving(schema: Schema) -> Schema:
    """The same schema for data that was not made by it: nothing is refused that can be counted as a difference.

    >>> schema = Schema.from_dict({"columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}})
    >>> forgiving(schema).columns["sex"].values
    ('f', 'm', '(not declared)')
    """
    return schema.with_columns({name: _forgiving(column) for name, column in schema.columns.items()})


def _forgiving(column: Column) -> Column:
    if isinstance(column, ImageColumn | SetColumn):
        return column
    declared: dict[str, Any] = {**column.model_dump(exclude_defaults=True), "nullable": True}
    if isinstance(column, OrderedColumn | SeriesColumn):
        declared["out_of_bounds"] = "clamp"
    if isinstance(column, ListedColumn) and column.values is not None and column.undeclared == "error":
        values = tuple(str(value) for value in column.values)
        declared |= {"values": (*values, UNDECLARED), "undeclared": "other", "other": UNDECLARED}
    return type(column).model_validate(declared)


def _records(source: Any, schema: Schema, labels: Any) -> Records:
    return encode(read(source, schema, labels=labels), schema)


def _check_target(schema: Schema, target: str | None) -> None:
    if target is not None and target not in schema.columns:
        raise DataError(f"target: there is no column {target!r}; the columns are {', '.join(schema.columns)}")
    if target is not None and schema.columns[target].shape:
        raise DataError(f"target: column {target!r} holds {schema.columns[target].type}s; name one of single values")


def _refuse_one_class(records: Records, target: str | None) -> None:
    if target is not None and len(np.unique(records.codes[target])) < 2:
        raise DataError(f"target: column {target!r} has one value in all real records; name a column to predict")


def _target(schema: Schema, target: str | None) -> str | None:
    """The column that was named; or the labels, where arrays have one column of them."""
    if target is not None:
        return target
    arrays = [name for name, column in schema.columns.items() if column.shape]
    labels = [name for name, column in schema.columns.items() if isinstance(column, ListedColumn)]
    return labels[0] if arrays and len(labels) == 1 else None


# --- what to say about it ------------------------------------------------------------------------------------------


def _refuse_few(counts: dict[str, int]) -> None:
    for kind, count in counts.items():
        if count < FEWEST and (count or kind != "held out"):
            raise DataError(f"there are {count} {kind} records; give at least {FEWEST} for figures that mean something")
    if not counts["held out"] and TEST_SHARE * counts["real"] < FEWEST:
        least = round(FEWEST / TEST_SHARE)
        raise DataError(f"there are {counts['real']} real records, too few to hold some out; give {least} or a holdout")


def _notes(counts: dict[str, int], looked_at: dict[str, int]) -> list[str]:
    notes = [
        f"{looked_at[kind]:,} of {counts[kind]:,} {kind} records were looked at, chosen at random; "
        "what that leaves open is in the intervals."
        for kind in counts
        if 0 < looked_at[kind] < counts[kind]
    ]
    if not counts["held out"]:
        notes.append(
            "No records were held out: a random quarter of the real ones stood in, which the model may have learned."
        )
    return notes
