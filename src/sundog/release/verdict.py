"""The verdict of `verify`: whether a release adds up, and who signed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["holds", "unsigned", "signed by an unknown key", "no"]


@dataclass(frozen=True)
class Verdict:
    """The result of verifying a release.

    Anybody can make a release that adds up, from any data: it holds only if it is signed by a known key.

    >>> Verdict(problems=[], warnings=[], hash="ab", signed_by=None, by_known_key=False).status
    'unsigned'

    Args:
        problems: why the release is rejected; empty if everything adds up.
        warnings: what a reader should know even if it adds up.
        hash: of the content.
        signed_by: the fingerprint of the key that signed it.
        by_known_key: whether that key was compared with a known one.
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
        """0 if it holds, 1 if it is rejected, 3 if it adds up but was not signed by a known key."""
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
