"""Inputs of an evaluation: from a release, a file of any tool, tables or arrays to records that can be compared."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.columns import Form, Scale
from sundog.data.reading.database import hide_secrets, is_url
from sundog.data.reading.read import encode, read
from sundog.data.records import Records, concatenate
from sundog.data.schema import Schema
from sundog.errors import DataError, SchemaError
from sundog.evaluation.comparison import Comparison, split, subsample
from sundog.evaluation.holdout_overlap import MOST, compute_copied_share
from sundog.progress import Progress, silent
from sundog.release.release import Release

ROWS = 100_000  # the most records of each kind to use
TEST_SHARE = 0.25  # of the real records are used for testing if no holdout is given
FEWEST = 20  # records of each kind


@dataclass(frozen=True)
class Inputs:
    """The inputs of an evaluation as records.

    Args:
        name: the name of the synthetic data.
        release: the release, if the data is one.
        comparison: the records to compare, at most `ROWS` of each kind.
        real: all real records, for figures measured with budget.
        held_out: all held-out records, if any were given.
        notes: what a reader of the figures must know.
        counts: the number of records of each kind.
        warning: what makes the figures misleading, if anything.
    """

    name: str
    release: Release | None
    comparison: Comparison
    real: Records
    held_out: Records | None
    notes: tuple[str, ...]
    counts: dict[str, int]
    warning: str | None = None


def read_inputs(
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
    whole_holdout: bool = False,
    progress: Progress = silent,
) -> Inputs:
    """Read all inputs; every fault is a DataError of one line. See `evaluate` for the arguments.

    With `whole_holdout`, all held-out records are used, however many there are.
    """
    asked = rows if n is None else min(n, rows)
    if asked < FEWEST:
        raise DataError(f"{asked} records are too few; use at least {FEWEST}")
    release = load_release(synthetic)
    strict = choose_schema(release, schema, real)
    _check_target(strict, target)
    progress("reading", 0.0)
    shared = strict if release is not None else relax_schema(strict)
    everything, owners = _read_real(real, strict, shared, labels)
    _refuse_one_class(everything, target)
    held_out = None if holdout is None else _read_real(holdout, strict, shared, holdout_labels)[0]
    draws = Comparison(everything, everything, everything, everything, seed=seed)
    place = _choose_rows(len(everything), rows, draws.rng("real rows"))
    chosen = train = everything.take(place)
    if held_out is None:
        train, test = split(chosen, TEST_SHARE, draws.rng("split"), None if owners is None else owners[place])
    else:
        test = held_out if whole_holdout else subsample(held_out, rows, draws.rng("test rows"))
    drawn, made = _read_synthetic(synthetic, release, shared, n, rows, draws)
    counts = {"real": len(everything), "held-out": 0 if held_out is None else len(held_out), "synthetic": made}
    used = {"real": len(train), "held-out": len(test), "synthetic": len(drawn)}
    _refuse_few(counts, used)
    return Inputs(
        name=describe_source(synthetic),
        release=release,
        comparison=Comparison(chosen, drawn, train, test, _choose_target(strict, target), seed, progress),
        real=everything,
        held_out=held_out,
        notes=tuple(_note_limits(counts, {**used, "real": len(chosen)}, strict)),
        counts=counts,
        warning=_warn_of_overlap(everything, held_out),
    )


# --- synthetic data -----------------------------------------------------------------------------------------------


def load_release(synthetic: Any) -> Release | None:
    """Return the release, or the release at this path; None for other data."""
    if isinstance(synthetic, Release):
        return synthetic
    is_file = isinstance(synthetic, str | os.PathLike) and Path(synthetic).suffix == ".sundog"
    return Release.load(synthetic) if is_file else None


def _read_synthetic(
    synthetic: Any, release: Release | None, schema: Schema, n: int | None, rows: int, draws: Comparison
) -> tuple[Records, int]:
    """Return the synthetic records, and how many there were before a subset was chosen.

    A release is sampled as often as it says it had records: published figures must not reveal the exact number of real
    records.
    """
    if release is None:
        nobodys = schema.model_copy(update={"unit": None, "cap": 1})
        raw = read(synthetic, nobodys, private=False)
        chosen = raw if raw.count <= rows else raw.take(_choose_rows(raw.count, rows, draws.rng("synthetic rows")))
        return encode(chosen, nobodys), raw.count
    count = min(n or release.records or rows, rows)
    return concatenate(list(release.batches(count, seed=draws.seed))), count


def _choose_rows(count: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return all row numbers, or a sorted random subset of the given size."""
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


def describe_source(synthetic: Any) -> str:
    """Return the name to show for the synthetic data."""
    if isinstance(synthetic, str) and is_url(synthetic):
        return hide_secrets(synthetic)
    if isinstance(synthetic, str | os.PathLike):
        return Path(synthetic).name
    return "the release" if isinstance(synthetic, Release) else "the synthetic data"


# --- real data ----------------------------------------------------------------------------------------------------


def choose_schema(release: Release | None, schema: Schema | None, real: Any) -> Schema:
    """Return the schema of the release, or the given one, or else one drafted from the real data."""
    if release is not None:
        if schema is not None:
            raise SchemaError("a release has its own schema; leave out the other one")
        return release.schema
    return Schema.draft(real) if schema is None else schema


def relax_schema(schema: Schema) -> Schema:
    """Return the schema for data of other tools: undeclared values are counted as differences instead of refused.

    >>> schema = Schema.from_dict({"columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}})
    >>> relax_schema(schema).columns["sex"].values
    ('f', 'm', '(not declared)')
    """
    return schema.with_columns({name: column.relax() for name, column in schema.columns.items()})


def _read_real(source: Any, strict: Schema, shared: Schema, labels: Any) -> tuple[Records, NDArray[np.int64] | None]:
    """Return real records encoded with the shared schema and their owners; they must satisfy the strict schema."""
    raw = read(source, strict, labels=labels)
    if strict.unit is not None:
        raw = raw.bound_contributions(strict.cap)
    records = encode(raw, strict)
    owners = None if raw.unit is None else np.unique(raw.unit.to_numpy(), return_inverse=True)[1]
    return (records if shared is strict else encode(raw, shared)), owners


def _check_target(schema: Schema, target: str | None) -> None:
    if target is not None and target not in schema.columns:
        raise DataError(f"target: there is no column {target!r}; the columns are {', '.join(schema.columns)}")
    if target is not None and schema.columns[target].shape:
        kind = schema.columns[target].type
        raise DataError(f"target: column {target!r} holds {kind}s; name a column of single values")


def _refuse_one_class(records: Records, target: str | None) -> None:
    if target is not None and len(np.unique(records.codes[target])) < 2:
        raise DataError(f"target: column {target!r} has the same value in all real records; name another column")


def _choose_target(schema: Schema, target: str | None) -> str | None:
    """Return the given target, or else the only column of labels beside arrays."""
    if target is not None:
        return target
    arrays = [name for name, column in schema.columns.items() if column.shape]
    labels = [name for name, column in schema.scalars.items() if column.scale in (Scale.NOMINAL, Scale.ORDINAL)]
    return labels[0] if arrays and len(labels) == 1 else None


# --- warnings and notes --------------------------------------------------------------------------------------------


def _refuse_few(counts: dict[str, int], used: dict[str, int]) -> None:
    for kind, count in used.items():
        if count < FEWEST:
            there = counts[kind] or counts["real"]
            fix = "use more rows" if there > sum(used.values()) else f"give more than {there} of them"
            raise DataError(f"{count} {kind} records are too few for meaningful figures; {fix}")


def _warn_of_overlap(real: Records, held_out: Records | None) -> str | None:
    """Return a warning where the held-out records are copies of the real ones."""
    share = 0.0 if held_out is None else compute_copied_share(real, held_out)
    if share <= MOST:
        return None
    return (
        f"{share:.0%} of the held-out records are also among the real ones, so the figures are too optimistic; hold "
        "out records that the release was not fitted on"
    )


def _note_limits(counts: dict[str, int], used: dict[str, int], schema: Schema) -> Iterator[str]:
    for kind, count in counts.items():
        if used[kind] < count:
            yield f"{used[kind]:,} of {count:,} {kind} records were used, chosen at random."
    if not counts["held-out"]:
        yield "No records were held out: a random quarter of the real ones was used, which the model may have seen."
    if schema.unit is not None:
        yield f"Intervals treat records as independent; those of one {schema.unit} are not: they are a little narrow."
    for form in (Form.IMAGE, Form.SERIES, Form.SET):
        names = [name for name, column in schema.columns.items() if column.form is form]
        if len(names) > 1:
            yield f"Of {len(names)} columns of type {form} only {names[0]!r} was evaluated."
