"""Checks before the first charge: the place of the release, the disk, the plan and the certificate."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from pydantic import ValidationError
from scipy import sparse

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.data.schema_learning import list_unknown_columns
from sundog.errors import BudgetError, DataError, SundogError
from sundog.files import refuse_folder, refuse_output
from sundog.fit.request import Request, bound_charges
from sundog.fit.run import Run
from sundog.models.configuration import Configuration
from sundog.privacy.budget import LARGEST_DELTA, LARGEST_MEANINGFUL_DELTA, LARGEST_MEANINGFUL_EPSILON, Split
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.ledger import Budget
from sundog.release.archive import Archive, compute_content_hash, is_release, read_archive, write_archive
from sundog.release.certificate import Certificate, certify
from sundog.release.curator_file import get_curator_path, is_curator_file
from sundog.release.release import get_library_versions, make_manifest

_FORCE = "add --force (in Python, overwrite=True)"
_LEAST_ROOM = 2**20  # bytes that a fit needs at least
_NUMBER = 4  # bytes of a weight
_COPIES = 12  # of a network: two states of a training, each with an optimiser's moments and an average; the release
_WRITTEN = "release"  # in a checkpoint: the release that this fit has written, or was about to
_PUBLIC = "public"  # in a checkpoint: the public records that this fit began with
_GUESSES = (100, 10_000, 1_000_000)  # numbers of records to plan for, if none is declared


def refuse_fit_output(out: Path, inputs: Mapping[str, Any], *, overwrite: bool) -> None:
    """Raise if a release cannot be written to `out`, or would replace an input, or a file that is not a release.

    Args:
        out: the release to be written.
        inputs: what the fit reads, by role; values that are not paths are skipped.
        overwrite: whether an earlier release may be replaced; an interrupted fit may replace what it wrote itself.
    """
    refuse_folder(out)
    folder = Checkpoint.locate_folder(out)
    for role, given in inputs.items():
        if isinstance(given, str | os.PathLike) and Path(os.path.realpath(given)).is_relative_to(folder.resolve()):
            raise DataError(f"{given}: the {role} is in {folder.name}, which the fit removes; move it elsewhere")
    if is_release(out):
        refuse_output(
            out,
            inputs,
            replaces=lambda path: overwrite or _has_written(folder, path),
            fix=f"choose another name, or {_FORCE} to replace it. What the earlier release spent is counted only if "
            "both name the same ledger (--ledger FILE)",
        )
    else:
        refuse_output(out, inputs, fix="it is not a release, and not replaced; choose another name")
    refuse_output(
        get_curator_path(out),
        inputs,
        replaces=lambda path: (overwrite or Checkpoint.is_begun(out)) and is_curator_file(path),
        fix=f"it belongs to an earlier release; choose another name, or {_FORCE} to replace both",
    )


def check_before_spending(request: Request, schema: Schema, split: Split, run: Run, out: Path | None) -> None:
    """Raise if the certificate or the release file cannot be made, or the plan cannot be paid for.

    A resumed fit that has spent something was checked before.
    """
    if run.ledger.charges:
        return
    if run.shared is not None and run.shared.budget.delta > LARGEST_MEANINGFUL_DELTA:
        raise BudgetError(
            f"the shared ledger's δ = {run.shared.budget.delta:g} promises nothing, and `verify` would say no; "
            f"start a ledger with a δ of {LARGEST_MEANINGFUL_DELTA:g} or less"
        )
    try:
        certificate = certify(run.ledger, schema, shared=run.shared)
    except ValidationError as error:
        problem = error.errors()[0]
        raise SundogError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}, for a certificate") from None
    if out is not None:
        folder = out.parent if run.checkpoint is None else run.checkpoint.folder
        _rehearse(folder, schema, request.configuration.name, certificate)
    _refuse_unaffordable(request, schema, split, run)


def _rehearse(folder: Path, schema: Schema, model: str, certificate: Certificate) -> None:
    """Write the release without its weights, read it back and remove it."""
    about = {"created": "", "libraries": get_library_versions()}
    manifest = {**about, **make_manifest(schema, model, {}, certificate)}
    trial = folder / "trial.sundog"
    write_archive(trial, Archive(manifest, {}))
    trial.unlink()


def _refuse_unaffordable(request: Request, schema: Schema, split: Split, run: Run) -> None:
    """Raise if the fit cannot be planned, or a shared ledger has no room for its plan.

    Where records are counted first, the plan is not known yet. Then a shared ledger must have room for plans of very
    different numbers of records, at the largest δ.
    """
    exact = schema.records is not None or not request.configuration.counts_records
    for count in (schema.records,) if exact else _GUESSES:
        try:
            charges = bound_charges(request, schema, split, count)
        except SundogError:
            if exact and "schema" not in split.shares:
                raise
            return  # too little budget for this plan may be enough for that of the counted records
        if run.shared is None:
            return
        run.ledger.check(*charges)


def warn_of_risks(schema: Schema, budget: Budget) -> None:
    """Warn of an unreviewed schema, and of an ε or δ that protects little."""
    if not schema.reviewed:
        warnings.warn(
            "the schema was drafted from the data and not reviewed: what it reveals is outside the guarantee; "
            "look through it, then set `reviewed: true`",
            stacklevel=4,
        )
    if budget.epsilon > LARGEST_MEANINGFUL_EPSILON:
        warnings.warn(
            f"epsilon = {budget.epsilon:g} protects hardly anybody: the odds of a guess about a record may change "
            f"by a factor of e^{budget.epsilon:g}; 10 or less is usual",
            stacklevel=4,
        )
    if budget.delta > LARGEST_DELTA:
        warnings.warn(
            f"delta = {budget.delta:g} is large: it would allow publishing one record in {1 / budget.delta:,.0f}; "
            f"{LARGEST_DELTA:g} or less is usual",
            stacklevel=4,
        )


def estimate_room(schema: Schema, configuration: Configuration) -> int:
    """Return about how many bytes a fit needs for checkpoint and release, without columns still to be learned."""
    unknown = list_unknown_columns(schema)
    width = sum(column.feature_count for name, column in schema.columns.items() if name not in unknown)
    return _LEAST_ROOM + _COPIES * _NUMBER * width * configuration.weights_per_feature


def refuse_other_public(checkpoint: Checkpoint | None, public: Records | None) -> None:
    """Raise if a resumed fit has other public records than it began with; a new one takes note of them.

    What was measured before was chosen by the public records, so that a fit cannot go on with others.
    """
    if checkpoint is None or public is None:
        return
    digest = compute_content_hash({}, _list_arrays(public))
    noted = checkpoint.load_json(_PUBLIC, "hash")
    if noted is None:
        checkpoint.save_json(_PUBLIC, {"hash": digest})
    elif noted["hash"] != digest:
        raise DataError(
            "the public data is not what the interrupted fit began with; give the same, or start again without --resume"
        )


def _list_arrays(records: Records) -> dict[str, NDArray[Any]]:
    """Return the codes as plain arrays, each with a name."""
    arrays: dict[str, NDArray[Any]] = {}
    for name, codes in records.codes.items():
        if sparse.issparse(codes):
            arrays |= {f"{name}/rows": codes.indptr, f"{name}/items": codes.indices}
        else:
            arrays[name] = codes
    return arrays


def note_written(checkpoint: Checkpoint, digest: str) -> None:
    """Keep the hash of the release that is about to be written: a resumed fit may replace it."""
    checkpoint.save_json(_WRITTEN, {"hash": digest})


def _has_written(folder: Path, path: Path) -> bool:
    noted = Checkpoint(folder, "").load_json(_WRITTEN, "hash")
    if noted is None:
        return False
    found = read_archive(path)
    return bool(compute_content_hash(found.manifest, found.tensors) == noted["hash"])
