"""Threat models: what an attacker holds. Attacks ask for it here, so that none sees more than is declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.protocol import State
from sundog.release.release import Release


class Knowledge(StrEnum):
    """Something that an attacker may hold."""

    SYNTHETIC = "synthetic records"
    RELEASE = "the release"
    PRIVATE_FILE = "the private file of the fit"
    MEMBERS = "known members"
    NONMEMBERS = "known non-members"
    REFERENCE = "a reference sample"


class NotHeldError(SundogError):
    """An attack asked for something that the attacker does not hold."""


@dataclass(frozen=True)
class PrivateFile:
    """The content of the curator's file of a fit: the name of the model, the schema, and what was not released."""

    model: str
    schema: Schema
    state: State


@dataclass(frozen=True, eq=False)
class ThreatModel:
    """What an attacker holds; asking for anything else is an error.

    >>> ThreatModel().release
    Traceback (most recent call last):
    sundog.auditing.threat_model.NotHeldError: the attacker does not hold the release; this attack needs it

    Args:
        held: what the attacker holds, by its kind.
    """

    held: Mapping[Knowledge, Any] = field(default_factory=dict)

    def find_missing(self, needs: Iterable[Knowledge]) -> list[Knowledge]:
        """Return what an attack needs and the attacker does not hold."""
        return sorted(set(needs) - set(self.held))

    def without(self, kinds: Iterable[Knowledge]) -> ThreatModel:
        """Return the same attacker, who does not hold some of it."""
        return ThreatModel({kind: what for kind, what in self.held.items() if kind not in set(kinds)})

    @property
    def synthetic(self) -> Records:
        """The synthetic records: drawn from the release, or those that another tool made."""
        return self._get(Knowledge.SYNTHETIC)  # type: ignore[no-any-return]

    @property
    def release(self) -> Release:
        """The release, with its model."""
        return self._get(Knowledge.RELEASE)  # type: ignore[no-any-return]

    @property
    def private_file(self) -> PrivateFile:
        """What the curator keeps of the fit, such as a critic."""
        return self._get(Knowledge.PRIVATE_FILE)  # type: ignore[no-any-return]

    @property
    def members(self) -> Records:
        """Records that are known to be members; none of them is a candidate."""
        return self._get(Knowledge.MEMBERS)  # type: ignore[no-any-return]

    @property
    def nonmembers(self) -> Records:
        """Records that are known not to be members; none of them is a candidate."""
        return self._get(Knowledge.NONMEMBERS)  # type: ignore[no-any-return]

    @property
    def reference(self) -> Records:
        """Other records of the same population; none of them is a candidate."""
        return self._get(Knowledge.REFERENCE)  # type: ignore[no-any-return]

    def _get(self, kind: Knowledge) -> Any:
        if kind not in self.held:
            raise NotHeldError(f"the attacker does not hold {kind.value}; this attack needs it")
        return self.held[kind]
