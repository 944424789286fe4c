"""The content of a release file, without a model that can sample.

Reading, verifying and signing a release do not need its model, so nothing here imports one: `verify`, `certificate` and
`sign` are fast, also on hostile files.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sundog.data.schema import Schema
from sundog.errors import ReleaseError, SundogError
from sundog.models.protocol import State
from sundog.models.registry import read_model
from sundog.models.released import ReleasedModel
from sundog.privacy.record_count import COUNT, is_count
from sundog.release import signing
from sundog.release.archive import Archive, compute_content_hash, read_archive, write_archive
from sundog.release.certificate import Certificate
from sundog.release.verdict import Verdict

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_FIELDS = {"format", "version", "created", "libraries", "schema", "model", "certificate"}
_BAD_CONTENT = (SundogError, KeyError, TypeError, ValueError, AttributeError, OverflowError)


@dataclass(frozen=True, eq=False)
class Document:
    """The manifest and the arrays of a release, and their signature.

    Args:
        schema: what was publicly known, and what was learned.
        model: what is needed of the model to check it.
        certificate: what was promised, and what was spent.
        manifest: exactly as it was read or will be written, because it is signed.
        state: the model's arrays and configuration.
        signature: None if it is not signed.
    """

    schema: Schema
    model: ReleasedModel
    certificate: Certificate
    manifest: dict[str, Any]
    state: State
    signature: signing.Signature | None = None

    @classmethod
    def load(cls, path: str | Path) -> Document:
        """Read a `.sundog` file, in which nothing can execute; raise ReleaseError, in one line, if it is malformed."""
        archive = read_archive(path)
        try:
            return cls._from_archive(archive)
        except _BAD_CONTENT as error:
            raise make_malformed_error(path, error) from None

    @classmethod
    def _from_archive(cls, archive: Archive) -> Document:
        manifest = archive.manifest
        model, libraries = manifest["model"], manifest["libraries"]
        about = (manifest["created"], *libraries, *libraries.values())
        # Unknown fields are refused: the signature would not cover what is dropped here.
        if set(manifest) != _FIELDS or set(model) != {"name", "config"} or not isinstance(model["config"], dict):
            raise ReleaseError("the manifest is malformed")
        if not all(isinstance(text, str) and text.isprintable() for text in about):
            raise ReleaseError("the manifest is malformed")
        certificate = Certificate.from_dict(manifest["certificate"])
        schema = _parse_schema(manifest["schema"])
        if not schema.complete:
            raise ReleaseError("the schema is not complete")
        state = State(tensors=archive.tensors, config=model["config"])
        return cls(
            schema=schema,
            model=read_model(str(model["name"]), schema.modelled, state),
            certificate=certificate,
            manifest=manifest,
            state=state,
            signature=archive.signature,
        )

    def save(self, path: str | Path) -> None:
        """Write the `.sundog` file, whole or not at all."""
        write_archive(path, Archive(self.manifest, self.state.tensors, self.signature))

    @functools.cached_property
    def hash(self) -> str:
        """The hash of the content, the same for every packing, which a signature covers."""
        return compute_content_hash(self.manifest, self.state.tensors)

    @functools.cached_property
    def problems(self) -> list[str]:
        """What does not add up, apart from the signature."""
        return [
            *self.certificate.recheck(self.schema, self.model),
            *(f"no charge pays for the {part}" for part in self._find_unpaid_count()),
            *(f"no charge pays for the {part}" for part in self.model.find_unpaid(self.certificate.charges)),
            *self._check_count(),
        ]

    def refuse_unpaid(self) -> None:
        """Raise ReleaseError if something in it was learned from private data and no charge paid for it."""
        if missing := [*self.certificate.find_unpaid_parts(self.schema), *self._find_unpaid_count()]:
            raise ReleaseError(f"no charge of its certificate pays for the {missing[0]}")

    def verify(self, public_key: Ed25519PublicKey | None = None) -> Verdict:
        """Check that everything adds up, and who signed it."""
        problems, signer = list(self.problems), None
        if self.signature is None:
            problems += [] if public_key is None else ["it is not signed"]
        else:
            signer = signing.compute_fingerprint(self.signature.public_key)
            if not signing.check(self.hash, self.signature):
                problems.append("the signature does not hold")
            elif not signing.check(self.hash, self.signature, public_key=public_key):
                problems.append("the signature is not by the given key")
        return Verdict(
            problems=problems,
            warnings=self.certificate.list_warnings(),
            hash=self.hash,
            signed_by=signer,
            by_known_key=public_key is not None,
        )

    def sign(self, key: Ed25519PrivateKey) -> Document:
        """Return a signed copy; raise ReleaseError if the release does not add up."""
        if self.problems:
            raise ReleaseError(f"not signed, because it does not add up: {self.problems[0]}; fit it again")
        return replace(self, signature=signing.sign(self.hash, key))

    def _find_unpaid_count(self) -> list[str]:
        """Return the number of records, if the model's plan needed it and it is neither declared nor paid for."""
        needed = self.model.counts_records or self.certificate.conditional is not None
        known = self.schema.records is not None or any(map(is_count, self.certificate.charges))
        return [COUNT] if needed and not known else []

    def _check_count(self) -> list[str]:
        """Return a problem if the model was planned for another number of records than the certificate says."""
        given = self.certificate.conditional
        if given is None or not self.model.counts_records or self.model.records == max(1, given.records):
            return []
        return ["the number of records in the certificate is not the one that the model was made for"]


def make_malformed_error(path: str | Path, error: Exception) -> ReleaseError:
    """Return the error for a file whose content is not a release."""
    what = f"lacks {error}" if isinstance(error, KeyError) else f"{error}"
    return ReleaseError(f"{path}: {(what.splitlines() or ['is malformed'])[0]}; ask for a new copy")


def serialize_schema(schema: Schema) -> dict[str, Any]:
    """Return the schema with its columns as a list, because canonical JSON sorts the keys of a mapping."""
    declared = schema.to_dict()
    columns = [{"name": name, **column} for name, column in declared["columns"].items()]
    return {**declared, "columns": columns}


def _parse_schema(declared: Mapping[str, Any]) -> Schema:
    columns = [dict(column) for column in declared["columns"]]
    return Schema.from_dict({**declared, "columns": {column.pop("name"): column for column in columns}})
