"""A release: what anybody needs to draw synthetic records and to check the guarantee."""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import math
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

import sundog
from sundog import notebook
from sundog.data.conditions import Conditions, encode_conditions
from sundog.data.records import Records, concatenate
from sundog.data.rules import RuleSet
from sundog.data.schema import Schema
from sundog.data.writing.frames import OUTPUT_TYPES, convert_records
from sundog.errors import ArgumentError, DataError, SundogError
from sundog.models.protocol import Model
from sundog.models.registry import get_model, read_model
from sundog.progress import Progress, silent
from sundog.release import signing
from sundog.release.archive import FORMAT, VERSION
from sundog.release.certificate import Certificate
from sundog.release.document import Document, make_malformed_error, serialize_schema
from sundog.release.rejection_sampling import RejectionSampler

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from sundog.data.writing.write import Stream

_BATCH_VALUES = 2**20  # values drawn at a time: small enough for caches, large enough for vectors

_LIBRARIES = ("sundog", "numpy", "randomgen", "scipy")


def get_library_versions() -> dict[str, str]:
    """Return the versions of the libraries that a release records."""
    return {name: _get_version(name) for name in _LIBRARIES}


@functools.cache  # finding one takes milliseconds
def _get_version(name: str) -> str:
    """Return the version of a package, or `unknown` if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return sundog.__version__ if name == "sundog" else "unknown"


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A fitted model with its schema and certificate."""

    schema: Schema
    model: Model
    certificate: Certificate
    created: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
    libraries: Mapping[str, str] = field(default_factory=get_library_versions)
    signature: signing.Signature | None = None
    manifest: dict[str, Any] = field(default_factory=dict, repr=False)  # exactly as it was read, because it is signed

    @property
    def records(self) -> int | None:
        """About how many records the model was fitted on, if that was declared or measured."""
        return self.document.model.records

    def __repr__(self) -> str:
        """Return a short text: the certificate and the schema can be printed by themselves."""
        promise = f"epsilon={self.certificate.epsilon:g}, delta={self.certificate.delta:.3g}"
        return f"Release(model={self.model.name!r}, columns={len(self.schema.columns)}, {promise})"

    def _repr_html_(self) -> str:
        """Return the release as a notebook shows it: a table, and the certificate."""
        signer = "nobody" if self.signature is None else signing.compute_fingerprint(self.signature.public_key)
        about = [
            ("model", self.model.name),
            ("made from", "" if self.records is None else f"about {self.records:,} records"),
            ("columns", ", ".join(self.schema.columns)),
            ("created", self.created),
            ("signed by", signer),
        ]
        return notebook.build_fragment("Release", notebook.build_table(about), self.certificate._repr_html_())

    # --- the file ---

    def save(self, path: str | Path) -> None:
        """Write the `.sundog` file, whole or not at all."""
        self.document.save(path)

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a `.sundog` file, in which nothing can execute; raise ReleaseError, in one line, if it is malformed."""
        document = Document.load(path)
        try:
            document.refuse_unpaid()
            model = get_model(document.manifest["model"]["name"]).from_state(document.schema.modelled, document.state)
        except (SundogError, TypeError, ValueError, OverflowError) as error:
            raise make_malformed_error(path, error) from None
        return cls(
            schema=document.schema,
            model=model,
            certificate=document.certificate,
            created=document.manifest["created"],
            libraries=document.manifest["libraries"],
            signature=document.signature,
            manifest=document.manifest,
        )

    @functools.cached_property
    def document(self) -> Document:
        """The content of the release file."""
        state = self.model.state()
        manifest = self.manifest or {
            "created": self.created,
            "libraries": dict(self.libraries),
            **make_manifest(self.schema, self.model.name, state.config, self.certificate),
        }
        released = read_model(self.model.name, self.schema.modelled, state)
        return Document(self.schema, released, self.certificate, manifest, state, self.signature)

    # --- trust ---

    @property
    def hash(self) -> str:
        """The hash of the content, the same for every packing, which a signature covers."""
        return self.document.hash

    def sign(self, key: Ed25519PrivateKey) -> Release:
        """Return the same release, signed with the key; raise ReleaseError if it does not add up."""
        return replace(self, signature=self.document.sign(key).signature)

    def verify(self, public_key: Ed25519PublicKey | None = None) -> list[str]:
        """Return its problems: events that do not add up, noise that is not private, a signature that does not hold.

        An empty list means that the events add up to the guarantee and, if a `public_key` is given, that its owner
        signed the release. Without a key nobody vouches for it: `document.verify` also says this.
        """
        return self.document.verify(public_key).problems

    # --- records ---

    @overload
    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: Conditions | None = None,
        as_: Literal["pandas"] = "pandas",
    ) -> pd.DataFrame: ...

    @overload
    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: Conditions | None = None,
        as_: Literal["polars"],
    ) -> pl.DataFrame: ...

    @overload
    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: Conditions | None = None,
        as_: Literal["arrow", "arrays"],
    ) -> Any: ...

    def sample(
        self,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: Conditions | None = None,
        as_: Literal["pandas", "polars", "arrow", "arrays"] = "pandas",
    ) -> Any:
        """Draw synthetic records: a DataFrame, with the dtypes that the schema declares.

        Args:
            n: how many; by default about as many as the model was fitted on.
            seed: the same seed and n give the same records. Draws are spread evenly over all n of them, so
                `sample(100)` is not the start of `sample(1000)`; for that, draw 1,000 and keep the first 100.
            where: what must hold: columns and their values, such as {"sex": "Female", "age": [41, 42]}, or texts such
                as ["age>=40", "job in cook, nurse"]; of a mixture also {"cluster": 3}.
            as_: `pandas`, `polars` (an extra) or `arrow` for a table; `arrays` for a dict with the values of each
                column, the only form for images.
        """
        if as_ not in OUTPUT_TYPES:
            raise ArgumentError(f"as_ must be {', '.join(OUTPUT_TYPES[:-1])} or {OUTPUT_TYPES[-1]}, not {as_!r}")
        records = concatenate(list(self.batches(self._count(n), seed=seed, where=where)))
        return convert_records(records, as_)

    def write(
        self,
        path: str | Path | Stream,
        n: int | None = None,
        *,
        seed: int | None = None,
        where: Conditions | None = None,
        progress: Progress = silent,
    ) -> int:
        """Draw records into a csv, JSON lines, parquet or npz file, in constant memory, or into a picture.

        Return their number. See `sample` for the arguments.
        """
        from sundog.data.writing.write import choose_count, open_writer

        count, written = self._count(choose_count(path, n, self.records)), 0
        batches = self.batches(count, seed=seed, where=where)
        with open_writer(path, self.schema) as writer:
            for batch in batches:
                writer.write(batch)
                written += len(batch)
                progress(f"sampling: {written:,} of {count:,} records", written / max(count, 1))
        return count

    def batches(self, n: int, *, seed: int | None = None, where: Conditions | None = None) -> Iterator[Records]:
        """Draw n records, a batch at a time and so in constant memory."""
        sampler = self._make_sampler(where)
        if seed is not None and not (isinstance(seed, int | np.integer) and seed >= 0):
            raise DataError(f"seed must be a whole number, zero or more, not {seed!r}")
        root = secrets.randbits(128) if seed is None else int(seed)
        return self._draw(n, root, sampler)

    def measure_acceptance(self, n: int = 500, *, where: Conditions | None = None) -> float:
        """Return about which share of the model's records satisfy the schema's rules; the others are drawn again."""
        return self._make_sampler(where).measure_acceptance(n, np.random.default_rng(0))

    def _make_sampler(self, where: Conditions | None) -> RejectionSampler:
        conditions = encode_conditions(where or {}, self.schema, self.document.model.choices)
        return RejectionSampler(self.model, self.schema, self._rules, conditions, self._batch_size)

    def _draw(self, n: int, root: int, sampler: RejectionSampler) -> Iterator[Records]:
        for index, start in enumerate(range(0, max(n, 1), self._batch_size)):
            rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence([root, index])))
            size = min(self._batch_size, n - start)
            yield Records(self.schema, sampler.draw(size, rng), size)

    @functools.cached_property
    def _rules(self) -> RuleSet:
        return self.schema.bind_rules()

    @property
    def _batch_size(self) -> int:
        width = sum(math.prod(column.shape) for column in self.schema.columns.values())
        return max(64, _BATCH_VALUES // width)

    def _count(self, n: int | None) -> int:
        count = self.records if n is None else n
        if count is None:
            raise DataError("say how many records to draw: the release does not say how many there were")
        if not (isinstance(count, int | np.integer) and count >= 0):
            raise DataError(f"n must be a whole number, zero or more, not {count!r}")
        return int(count)


def make_manifest(schema: Schema, model: str, config: dict[str, Any], certificate: Certificate) -> dict[str, Any]:
    """Return the manifest of a release, without its date and the versions of libraries."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "schema": serialize_schema(schema),
        "model": {"name": model, "config": config},
        "certificate": certificate.to_dict(),
    }
