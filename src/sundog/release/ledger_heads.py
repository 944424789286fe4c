"""Ledger heads: a ledger compared with the releases that were made from it.

Each release records the head of its ledger: a hash of every line that the file had then. A ledger that was restored
from an old backup, cut or rewritten as a whole looks sound, but no longer has that head.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sundog.errors import LedgerError, ReleaseError
from sundog.privacy.ledger import Head, Ledger
from sundog.release.archive import read_manifest
from sundog.release.certificate import Certificate


def get_head(certificate: Certificate) -> Head | None:
    """Return the state of the ledger file that paid for the release, as the certificate records it."""
    recorded = None if certificate.ledger is None else certificate.ledger.head
    if recorded is None or recorded.ledger is None:
        return None
    return Head(recorded.ledger, recorded.lines, recorded.hash)


def compare_with_ledger(certificate: Certificate, ledger: Ledger) -> list[str]:
    """Return the contradictions between a release and the ledger that should have paid for it.

    >>> from sundog.data.schema import Schema
    >>> from sundog.release.certificate import certify
    >>> schema = Schema.from_dict({"columns": {"b": {"type": "boolean"}}})
    >>> folder = getfixture("tmp_path")
    >>> one, other = (Ledger.create(folder / name, epsilon=1.0, delta=1e-6) for name in ("one", "other"))
    >>> certificate = certify(one.run(epsilon=0.5, delta=1e-6), schema, shared=one)
    >>> compare_with_ledger(certificate, one)
    []
    >>> compare_with_ledger(certificate, other)
    ['it was made from another ledger']
    """
    head = get_head(certificate)
    if head is None:
        return ["its certificate records no ledger file"]
    if head.ledger != ledger.id:
        return ["it was made from another ledger"]
    if not ledger.has(head):
        return [f"the ledger lacks lines that it had when this release was made ({head.lines} of them), or has others"]
    return []


def find_contradictions(ledger: Ledger, folders: Iterable[Path]) -> list[Path]:
    """Return the releases in these folders that were made from this ledger, and record lines that it lacks."""
    paths = {path.resolve() for folder in folders for path in folder.glob("*.sundog") if path.is_file()}
    return [path for path in sorted(paths) if _is_contradicted(path, ledger)]


def refuse_contradictions(ledger: Ledger, path: Path, folders: Iterable[Path]) -> None:
    """Raise if a release in these folders shows that the ledger lost charges."""
    found = find_contradictions(ledger, folders)
    if found:
        raise LedgerError(
            f"{path}: lacks charges that it had when {found[0].name} was made from it; restore the newest copy of the "
            "ledger (what was spent stays spent)"
        )


def _is_contradicted(path: Path, ledger: Ledger) -> bool:
    try:
        head = get_head(Certificate.from_dict(read_manifest(path).get("certificate")))
    except ReleaseError:  # not a release
        return False
    return head is not None and head.ledger == ledger.id and not ledger.has(head)
