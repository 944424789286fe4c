"""The answer of `verify`: whether a release adds up, and who vouches for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["holds", "unsigned", "signed by an unknown key", "no"]


@dataclass(frozen=True)
class Verdict:
    """The result of verifying a release.

    A release that adds up and is not signed may have been made by anybody, from anything: it holds only if somebody
    who is known signed it.

    >>> Verdict(problems=[], warnings=[], hash="ab", signed_by=None, by_known_key=False).status
    'unsigned'

    Args:
        problems: why the answer is no; empty where everything adds up.
        warnings: what a reader should know although it adds up.
        hash: of the content.
        signed_by: the fingerprint of the key that signed it.
        by_known_key: whether that key was compared with one that is known.
    """

    problems: list[str]
    warnings: list[str]
    hash: str
    signed_by: str | None
    by_known_key: bool

    @property
    def status(self) -> Status:
        """The result in a few words."""
        if self.problems:
            return "no"
        if self.signed_by is None:
            return "unsigned"
        return "holds" if self.by_known_key else "signed by an unknown key"

    @property
    def exit_code(self) -> int:
        """0 where it holds, 1 where the answer is no, 3 where it adds up and nobody known vouches for it."""
        return {"holds": 0, "no": 1}.get(self.status, 3)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain JSON values."""
        return {
            "ok": self.status == "holds",
            "status": self.status,
            "problems": self.problems,
            "warnings": self.warnings,
            "hash": self.hash,
            "signed_by": self.signed_by,
        }
