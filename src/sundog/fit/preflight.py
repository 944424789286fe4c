"""What a fit needs at its end, checked before its first charge: a release must not be lost at the last step."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sundog.data.bins import bin_count
from sundog.data.columns import Column, ScalarColumn
from sundog.data.schema import Schema
from sundog.data.schema_learning import unknown_columns
from sundog.errors import DataError
from sundog.files import refuse_folder, refuse_output
from sundog.privacy.checkpoint import Checkpoint
from sundog.release.archive import Archive, content_hash, is_release, read_archive, write_archive
from sundog.release.certificate import Certificate
from sundog.release.private import is_private, private_path
from sundog.release.release import installed_versions, new_manifest

_FORCE = "add --force (in Python, overwrite=True)"
_LEAST_ROOM = 2**20  # bytes
_NUMBER = 4  # bytes
_COPIES = 12  # of a network: two states of a training, each with an optimiser's moments and an average; the release
_HIDDEN = 128  # units of a network that chooses their number by the shape of its records
_WRITTEN = "release"  # in a checkpoint: what this fit has written, or was about to


def refuse_fit_output(out: Path, inputs: Mapping[str, Any], *, overwrite: bool) -> None:
    """Raises if a release cannot be written to `out`, or would destroy an input, or anything but a release.

    Args:
        out: the release to be.
        inputs: what the fit reads, by what it is; whatever is not a path is passed over.
        overwrite: whether an earlier release may be replaced; an interrupted fit may replace what it wrote itself.
    """
    refuse_folder(out)
    folder = Checkpoint.folder_for(out)
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
        private_path(out),
        inputs,
        replaces=lambda path: (overwrite or Checkpoint.is_begun(out)) and is_private(path),
        fix=f"it belongs to an earlier release; choose another name, or {_FORCE} to replace both",
    )


def rehearse(folder: Path, schema: Schema, model: str, certificate: Certificate) -> None:
    """Writes the release without its weights, reads it back and removes it: what can be wrong with it is said now."""
    about = {"created": "", "libraries": installed_versions()}
    manifest = {**about, **new_manifest(schema, model, {}, certificate)}
    trial = folder / "trial.sundog"
    write_archive(trial, Archive(manifest, {}))
    trial.unlink()


def room_for(schema: Schema, settings: Mapping[str, Any]) -> int:
    """About how many bytes a fit needs for its checkpoint and the release, but for what is yet to be learned."""
    unknown = unknown_columns(schema)
    width = sum(_width(column) for name, column in schema.columns.items() if name not in unknown)
    hidden = settings.get("hidden", 1) or _HIDDEN
    clusters = settings.get("clusters", 1)
    return _LEAST_ROOM + _COPIES * _NUMBER * width * max(1, int(hidden)) * max(1, int(clusters))


def _width(column: Column) -> int:
    """How many features a column has."""
    return bin_count(column) if isinstance(column, ScalarColumn) else math.prod(column.shape)


def note_written(checkpoint: Checkpoint, digest: str) -> None:
    """Remembers the release that is about to be written: a fit that goes on may replace it."""
    checkpoint.save(_WRITTEN, {"hash": digest})


def _has_written(folder: Path, path: Path) -> bool:
    noted = Checkpoint(folder, "").load(_WRITTEN, "hash")
    if noted is None:
        return False
    found = read_archive(path)
    return bool(content_hash(found.manifest, found.tensors) == noted["hash"])
