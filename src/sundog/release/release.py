"""A release: everything a stranger needs to draw synthetic records and to check the promise, and nothing else."""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import math
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sundog.data.columns import ScalarColumn
from sundog.data.records import Records, joined
from sundog.data.schema import Schema
from sundog.errors import DataError, ReleaseError, SundogError
from sundog.models import get_model
from sundog.models.base import Model, State
from sundog.progress import Progress, silent
from sundog.release import signing
from sundog.release.archive import FORMAT, VERSION, Archive, content_hash, read_archive, write_archive
from sundog.release.certificate import Certificate

if TYPE_CHECKING:
    import pandas as pd
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_BATCH_VALUES = 2**20  # values drawn at a time: small enough for caches, large enough for vectors

_FIELDS = {"format", "version", "created", "libraries", "schema", "model", "certificate"}
_LIBRARIES = ("sundog", "dp-accounting", "numpy", "randomgen", "scipy")


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in _LIBRARIES}


@dataclass(frozen=True, eq=False)
class Release:
    """A fitted model with its schema and certificate."""

    schema: Schema
    model: Model
    certificate: Certificate
    created: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
    libraries: Mapping[str, str] = field(default_factory=_versions)
    signature: signing.Signature | None = None
    manifest: dict[str, Any] = field(default_factory=dict, repr=False)  # as it was read: what was signed, to the letter

    @property
    def records(self) -> int | None:
        """About how many records the model was fitted on, as far as the budget told."""
        return self.model.records

    # --- the file ---

    def save(self, path: str | Path) -> None:
        """Writes the `.sundog` file, all of it or nothing."""
        state = self.model.state()
        write_archive(path, Archive(self._manifest, state.tensors, self.signature))

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Reads a `.sundog` file; nothing in it can execute, and a bad one is a ReleaseError of one line."""
        archive = read_archive(path)
        try:
            return cls._from_archive(archive)
        except (SundogError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else f"{error}"
            raise ReleaseError(f"{path}: {what.splitlines()[0]}; ask for a new copy") from None

    @classmethod
    def _from_archive(cls, archive: Archive) -> Release:
        manifest = archive.manifest
        schema = _schema(manifest["schema"])
        if not schema.complete:
            raise ReleaseError("the schema is not complete")
        model, libraries = manifest["model"], manifest["libraries"]
        # Nothing that is not understood: what is dropped here would not be under the signature.
        if set(manifest) != _FIELDS or set(model) != {"name", "config"} or not isinstance(model["config"], dict):
            raise ReleaseError("the manifest is malformed")
        state = State(tensors=archive.tensors, config=model["config"])
        return cls(
            schema=schema,
            model=get_model(str(model["name"])).from_state(schema, state),
            certificate=Certificate.from_dict(manifest["certificate"]),
            created=_text(manifest["created"]),
            libraries={name: _text(version) for name, version in libraries.items()},
            signature=archive.signature,
            manifest=manifest,
        )

    @functools.cached_property
    def _manifest(self) -> dict[str, Any]:
        return self.manifest or {
            "format": FORMAT,
            "version": VERSION,
            "created": self.created,
            "libraries": dict(self.libraries),
            "schema": _ordered(self.schema),
            "model": {"name": self.model.name, "config": self.model.state().config},
            "certificate": self.certificate.to_dict(),
        }

    # --- trust ---

    @functools.cached_property
    def hash(self) -> str:
        """The canonical hash of the content, whatever the packing: what a signature covers."""
        return content_hash(self._manifest, self.model.state().tensors)

    def signed(self, key: Ed25519PrivateKey) -> Release:
        """The same release with a signature of the key's owner."""
        return replace(self, signature=signing.sign(self.hash, key))

    def verify(self, public_key: Ed25519PublicKey | None = None) -> list[str]:
        """What is wrong with it: events that do not add up, noise that is not private, a signature that does not hold.

        An empty list means that the release keeps what its certificate says (and was signed by the owner of
        `public_key`, when one is given).
        """
        problems = self.certificate.recheck(self.schema, self.model.assumptions)
        problems += [f"no charge pays for the {what}" for what in self.model.unexplained(self.certificate.charges)]
        if public_key is not None and self.signature is None:
            problems.append("it is not signed")
        elif self.signature is not None and not signing.check(self.hash, self.signature, public_key=public_key):
            problems.append("the signature is not by the given key" if public_key else "the signature does not hold")
        return problems

    # --- records ---

    def sample(
        self, n: int | None = None, *, seed: int | None = None, where: Mapping[str, Any] | None = None
    ) -> pd.DataFrame | dict[str, Any]:
        """Draws synthetic records: a DataFrame, or a dict of arrays where a column holds images, series or sets.

        Args:
            n: how many; about as many as there were, by default.
            seed: the same seed and n give the same records. Draws are spread evenly over all n of them, so
                `sample(100)` is not the start of `sample(1000)`; for that, draw 1,000 and keep the first 100.
            where: values that columns must have, such as {"sex": "Female"}; of a mixture also {"cluster": 3}.
        """
        count = self._count(n)
        records = joined(list(self.batches(count, seed=seed, where=where)))
        if all(isinstance(column, ScalarColumn) for column in self.schema.columns.values()):
            from sundog.data.write import to_frame

            return to_frame(records)
        return {name: column.decode(records.codes[name]) for name, column in self.schema.columns.items()}

    def write(
        self,
        path: str | Path,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: Mapping[str, Any] | None = None,
        progress: Progress = silent,
    ) -> int:
        """Draws records into a csv, parquet or npz file, in constant memory, or into a picture; returns how many."""
        from sundog.data.write import count_for, open_writer

        count, written = self._count(count_for(path, n, self.records)), 0
        batches = self.batches(count, seed=seed, where=where)
        with open_writer(path, self.schema) as writer:
            for batch in batches:
                writer.write(batch)
                written += len(batch)
                progress("sampling", written / max(count, 1))
        return count

    def batches(self, n: int, *, seed: int | None = None, where: Mapping[str, Any] | None = None) -> Iterator[Records]:
        """Draws n records a batch at a time, so that any number of them passes through constant memory."""
        conditions = self._encoded(where or {})
        if seed is not None and seed < 0:
            raise DataError(f"seed must be zero or more, not {seed}")
        root = secrets.randbits(128) if seed is None else seed
        return self._draw(n, root, conditions)

    def _draw(self, n: int, root: int, conditions: Mapping[str, int]) -> Iterator[Records]:
        for index, start in enumerate(range(0, max(n, 1), self._batch_size)):
            rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence([root, index])))
            size = min(self._batch_size, n - start)
            yield Records(self.schema, self.model.sample(size, rng, conditions), size)

    @property
    def _batch_size(self) -> int:
        width = sum(math.prod(column.shape) for column in self.schema.columns.values())
        return max(64, _BATCH_VALUES // width)

    def _count(self, n: int | None) -> int:
        count = self.records if n is None else n
        if count is None or count < 0:
            raise DataError("say how many records to draw (n must be zero or more)")
        return count

    def _encoded(self, where: Mapping[str, Any]) -> dict[str, int]:
        return {name: self._condition(name, value) for name, value in where.items()}

    def _condition(self, name: str, value: Any) -> int:
        column = self.schema.columns.get(name)
        if column is None and name in self.model.choices:
            return _choice(name, value, self.model.choices[name])
        if column is None:
            raise DataError(f"where: there is no column {name!r}; the columns are {', '.join(self.schema.columns)}")
        if not isinstance(column, ScalarColumn):
            raise DataError(f"where: column {name!r} holds {column.type}s; conditions are on single values")
        if column.nullable and isinstance(value, str) and value in self.schema.nulls:
            value = None
        try:
            return int(_strict(column).encode([value], where="")[0])
        except DataError as error:
            reason = str(error).removeprefix(": row 1").lstrip(": ").partition(";")[0]
            raise DataError(f"where: column {name!r}: {reason}; ask for a value that the schema declares") from None


def _choice(name: str, value: Any, count: int) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = -1
    if not 0 <= number < count or str(number) != str(value).strip():
        raise DataError(f"where: {name!r} is a number from 0 to {count - 1}, not {value!r}")
    return number


def _strict(column: ScalarColumn) -> ScalarColumn:
    """The same column without forgiveness: what would be clamped, or become `other`, is no value to ask for."""
    forgiving = {"learn": False, "out_of_bounds": "error", "undeclared": "error", "other": None}
    return column.model_copy(update={key: value for key, value in forgiving.items() if hasattr(column, key)})


def _ordered(schema: Schema) -> dict[str, Any]:
    """The schema with its columns as a list: canonical JSON sorts the keys of a mapping, and columns have an order."""
    declared = schema.to_dict()
    columns = [{"name": name, **column} for name, column in declared["columns"].items()]
    return {**declared, "columns": columns}


def _schema(declared: dict[str, Any]) -> Schema:
    columns = [dict(column) for column in declared["columns"]]
    return Schema.from_dict({**declared, "columns": {column.pop("name"): column for column in columns}})


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ReleaseError("the manifest is malformed")
    return value
