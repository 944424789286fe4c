"""The result of an audit: findings, each with its verdict, and everything needed to show them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundog import notebook
from sundog.auditing.finding import Finding
from sundog.auditing.membership import AttackResult, MembershipResults
from sundog.auditing.worst_records import WorstRecord
from sundog.evaluation.evaluator import write_text
from sundog.evaluation.measure import Measure
from sundog.release.certificate import Certificate

PRIVATE = "measured on private records without a budget: as private as the records, not for publication"

_HEADS = ("attack", "ε ≥", "area", "TPR at 1% FPR", "top 100")


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit found.

    Args:
        name: of what was audited.
        findings: one for each way of auditing.
        membership: the attacks in detail.
        similarity: the share of synthetic records nearer to a member than to a non-member, which is no evidence.
        worst: the members that attacks recognise best, for the curator's eyes.
        not_tried: what an attacker might do that this audit did not.
        about: the settings needed to repeat the audit.
        notes: what a reader must know.
        certificate: of the release; None for other data.
    """

    name: str
    findings: tuple[Finding, ...]
    membership: MembershipResults
    similarity: Measure
    worst: tuple[WorstRecord, ...]
    not_tried: tuple[str, ...]
    about: Mapping[str, str | int | float | None]
    notes: tuple[str, ...]
    certificate: Certificate | None = None

    def __repr__(self) -> str:
        """Return a short text: `to_text` has the figures."""
        return f"Audit({self.name!r}, {', '.join(f'{each.name}: {each.verdict.value}' for each in self.findings)})"

    @property
    def is_violated(self) -> bool:
        """Whether a finding proves that the certificate's promise is broken."""
        return any(finding.is_violation for finding in self.findings)

    @property
    def is_unusable(self) -> bool:
        """Whether the real records do not allow a verdict."""
        return any(finding.is_unusable for finding in self.findings)

    @property
    def headline(self) -> str:
        """The verdicts in a few sentences."""
        return " ".join(f"{finding.verdict.value.capitalize()}. {finding.summary}" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        results = self.membership
        return {
            "private": PRIVATE,
            "about": {"name": self.name, **self.about},
            "headline": self.headline,
            "violated": self.is_violated,
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
            "tried": [result.name for result in results.attacks],
            "not_tried": list(self.not_tried),
            "share_of_members": results.share,
            "attacks": {result.name: result.to_dict() for result in results.attacks},
            "baselines": {result.name: result.to_dict() for result in (results.random, results.blind)},
            "similarity": {"nearer_to_members": self.similarity.to_dict()},
            "worst_records": [record.to_dict() for record in self.worst],
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
        }

    def to_json(self, path: str | Path) -> None:
        """Write `to_dict` to a file."""
        write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one self-contained HTML page, and write it to `path` if given."""
        from sundog.auditing.report.audit_page import render_audit_page

        return write_text(render_audit_page(self), path)

    def to_text(self) -> str:
        """Return the headline, a table of the attacks, and what was not tried, for a terminal."""
        rows = [_HEADS, *map(_list_cells, [*self.membership.attacks, self.membership.blind, self.membership.random])]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADS))]
        table = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        notes = [f"note: {note}" for note in self.notes]
        untried = ["not tried:", *(f"  {each}" for each in self.not_tried)]
        return "\n".join([self.headline, *(line.rstrip() for line in table), *notes, *untried])

    def _repr_html_(self) -> str:
        """Return the headline and a table as HTML for a notebook; they are as private as the records."""
        rows = [_list_cells(result) for result in (*self.membership.attacks, self.membership.blind)]
        return notebook.build_fragment(
            self.name,
            notebook.build_paragraph(self.headline),
            notebook.build_table(rows, _HEADS),
            notebook.build_paragraph(PRIVATE),
        )


def _list_cells(result: AttackResult) -> tuple[str, ...]:
    shown = (_format_short(result.measures[name]) for name in ("auc", "tpr_at_0.01", "top_accuracy"))
    return (result.name, f"{result.bound.epsilon:.2f}", *shown)


def _format_short(measure: Measure) -> str:
    return f"{measure.value:.3f} ({measure.low:.3f} to {measure.high:.3f})"
