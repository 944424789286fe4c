"""Inputs of an evaluation: from a release, a file of any tool, tables or arrays to records that can be compared."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.columns import Form, Scale
from sundog.data.reading.database import hide_password, hide_secrets, is_url
from sundog.data.reading.read import encode, read
from sundog.data.records import Records, concatenate
from sundog.data.schema import Schema
from sundog.errors import DataError, SchemaError
from sundog.evaluation.comparison import Comparison, choose_rows, make_rng, split, subsample
from sundog.evaluation.holdout_overlap import MOST, compute_copied_share
from sundog.progress import Progress, silent
from sundog.release.release import Release

ROWS = 100_000  # the most records of each kind to use
TEST_SHARE = 0.25  # of the real records are used for testing if no holdout is given
FEWEST = 20  # records of each kind


@dataclass(frozen=True)
class EvaluationRequest:
    """The data to compare and how much of it to use; the fields are arguments of `sundog.evaluate`."""

    synthetic: Any
    real: Any
    holdout: Any = None
    target: str | None = None
    schema: Schema | None = None
    labels: Any = None
    holdout_labels: Any = None
    _: KW_ONLY
    n: int | None = None
    rows: int = ROWS
    seed: int = 0
    progress: Progress = silent


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


def read_inputs(request: EvaluationRequest, *, whole_holdout: bool = False) -> Inputs:
    """Read all inputs; every fault is a DataError of one line.

    Args:
        request: what to read.
        whole_holdout: whether to use all held-out records, also where they are more than `rows`.
    """
    _refuse_small_request(request)
    release = load_release(request.synthetic)
    strict = choose_schema(release, request.schema, request.real)
    _check_target(strict, request.target)
    request.progress("reading", 0.0)
    shared = strict if release is not None else relax_schema(strict)
    with explain_draft(request.real, drafted=release is None and request.schema is None):
        real, owners = _read_real(request.real, strict, shared, request.labels)
        held_out = None
        if request.holdout is not None:
            held_out, _ = _read_real(request.holdout, strict, shared, request.holdout_labels)
        drawn, made = read_synthetic(
            request.synthetic, release, shared, n=request.n, rows=request.rows, seed=request.seed
        )
    _refuse_one_class(real, request.target)
    place = choose_rows(len(real), request.rows, make_rng(request.seed, "real rows"))
    chosen = train = real.take(place)
    if held_out is None:
        rng = make_rng(request.seed, "split")
        train, test = split(chosen, TEST_SHARE, rng, None if owners is None else owners[place])
    elif whole_holdout:
        test = held_out
    else:
        test = subsample(held_out, request.rows, make_rng(request.seed, "test rows"))
    counts = {"real": len(real), "held-out": 0 if held_out is None else len(held_out), "synthetic": made}
    used = {"real": len(train), "held-out": len(test), "synthetic": len(drawn)}
    _refuse_few(counts, used)
    target = _choose_target(strict, request.target)
    return Inputs(
        name=describe_source(request.synthetic),
        release=release,
        comparison=Comparison(chosen, drawn, train, test, target, request.seed, request.progress),
        real=real,
        held_out=held_out,
        notes=tuple(_note_limits(counts, {**used, "real": len(chosen)}, strict)),
        counts=counts,
        warning=_describe_overlap(real, held_out),
    )


def _refuse_small_request(request: EvaluationRequest) -> None:
    asked = request.rows if request.n is None else min(request.n, request.rows)
    if asked < FEWEST:
        raise DataError(f"{asked} records are too few; use at least {FEWEST}")


# --- synthetic data -----------------------------------------------------------------------------------------------


def load_release(synthetic: Any) -> Release | None:
    """Return the release, or the release at this path; None for other data."""
    if isinstance(synthetic, Release):
        return synthetic
    is_file = isinstance(synthetic, str | os.PathLike) and Path(synthetic).suffix == ".sundog"
    return Release.load(synthetic) if is_file else None


def read_synthetic(
    source: Any, release: Release | None, schema: Schema, *, n: int | None, rows: int, seed: int
) -> tuple[Records, int]:
    """Return the synthetic records, and how many there were before a subset was chosen.

    By default as many records are drawn as the release says it was fitted on: published figures must not reveal the
    exact number of real records.

    Args:
        source: the records, if they are not drawn from a release.
        release: the release, if there is one.
        schema: of the records.
        n: how many to draw from a release.
        rows: the most records to use.
        seed: fixes what is drawn.
    """
    if release is not None:
        count = min(n or release.records or rows, rows)
        return concatenate(list(release.batches(count, seed=seed))), count
    ownerless = schema.model_copy(update={"unit": None, "cap": 1})
    raw = read(source, ownerless, private=False)
    if raw.count <= rows:
        return encode(raw, ownerless), raw.count
    place = choose_rows(raw.count, rows, make_rng(seed, "synthetic rows"))
    return encode(raw.take(place), ownerless), raw.count


def describe_source(synthetic: Any) -> str:
    """Return the name to show for the synthetic data."""
    if isinstance(synthetic, str) and is_url(synthetic):
        return hide_secrets(synthetic)
    if isinstance(synthetic, str | os.PathLike):
        return Path(synthetic).name
    return "the release" if isinstance(synthetic, Release) else "the synthetic data"


# --- real data ----------------------------------------------------------------------------------------------------


def choose_schema(release: Release | None, schema: Schema | None, *real: Any) -> Schema:
    """Return the schema of the release, or the given one, or else one drafted from all real data."""
    if release is not None:
        if schema is not None:
            raise SchemaError("a release has its own schema; leave out the other one")
        return release.schema
    if schema is not None:
        return schema
    from sundog.data.drafting.draft import draft

    return draft(real[0], others=real[1:])


@contextmanager
def explain_draft(real: Any, *, drafted: bool) -> Iterator[None]:
    """Say in errors of columns how to edit the schema, if it was drafted from the real data: nobody has a file of it.

    >>> with explain_draft("visits.csv", drafted=True):
    ...     raise DataError("more.csv: column 'age': row 3: '131' is above max (99); widen the bounds")
    Traceback (most recent call last):
    sundog.errors.DataError: more.csv: column 'age': row 3: '131' is above max (99); widen the bounds; the schema was
    drafted from visits.csv: `sundog schema visits.csv -o schema.yaml`, edit it, and give `--schema schema.yaml`
    """
    try:
        yield
    except DataError as error:
        if not drafted or ": column " not in str(error):
            raise
        raise DataError(f"{error}; the schema was drafted from {_describe_draft(real)}") from None


def _describe_draft(real: Any) -> str:
    """Return what a schema was drafted from, and how to write it to a file."""
    if isinstance(real, str | os.PathLike):
        shown = hide_password(real) if isinstance(real, str) and is_url(real) else str(real)
        command = shlex.join(["sundog", "schema", shown, "-o", "schema.yaml"])
        return f"{describe_source(real)}: `{command}`, edit it, and give `--schema schema.yaml`"
    return "the real data: write it with `Schema.draft(data).save('schema.yaml')`, edit it, and give it as `schema`"


def relax_schema(schema: Schema) -> Schema:
    """Return the schema for data of other tools: undeclared values are counted as differences instead of refused.

    >>> schema = Schema.from_dict({"columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}})
    >>> relax_schema(schema).columns["sex"].values
    ('f', 'm', '(not declared)')
    """
    relaxed = {name: column.relax() for name, column in schema.columns.items()}
    return schema.model_copy(update={"columns": relaxed})  # its rules need not fit undeclared values


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
        kind = schema.columns[target].form.plural
        raise DataError(f"target: column {target!r} holds {kind}; name a column of single values")


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


def _describe_overlap(real: Records, held_out: Records | None) -> str | None:
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
