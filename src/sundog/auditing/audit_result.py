"""The result of an audit: findings, each with its verdict, and everything needed to show them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sundog import notebook
from sundog.auditing.finding import Finding, Verdict
from sundog.auditing.finding_figures import list_figures
from sundog.auditing.membership import AttackResult, MembershipResults
from sundog.auditing.membership_finding import MembershipAudit
from sundog.auditing.worst_records import WorstRecord
from sundog.errors import SundogError
from sundog.evaluation.evaluator import write_text
from sundog.evaluation.measure import Measure, Measures, nest_names
from sundog.release.certificate import Certificate

PRIVATE = "measured on private records without a budget: as private as the records, not for publication"
_GRAVEST = (Verdict.BROKEN, Verdict.UNUSABLE, Verdict.LEAKS, Verdict.HOLDS, Verdict.SILENT)
_CONCLUSIONS = {
    Verdict.HOLDS: "Nothing was found that breaks the promise of ε = {}",
    Verdict.BROKEN: "The promise of ε = {} is broken",
}

_HEADS = ("attack", "ε ≥", "at best", "area", "TPR at 1% FPR", "top 100")


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit found.

    Args:
        name: of what was audited.
        findings: one for each way of auditing.
        attacked: the attacks on membership in detail; None if there were none.
        not_tried: what an attacker might do that this audit did not.
        about: the settings needed to repeat the audit.
        notes: what a reader must know.
        certificate: of the release; None for other data.
        published: the figures paid for with budget; everything else is private.
    """

    name: str
    findings: tuple[Finding, ...]
    attacked: MembershipAudit | None
    not_tried: tuple[str, ...]
    about: Mapping[str, str | int | float | None]
    notes: tuple[str, ...]
    certificate: Certificate | None = None
    published: Measures = field(default_factory=dict)

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
    def membership(self) -> MembershipResults:
        """The attacks on membership in detail."""
        return self._get_attacked().results

    @property
    def similarity(self) -> Measure:
        """The share of synthetic records nearer to a member than to a non-member, which is no evidence."""
        return self._get_attacked().similarity

    @property
    def worst(self) -> tuple[WorstRecord, ...]:
        """The members that attacks recognise best, for the curator's eyes."""
        return () if self.attacked is None else self.attacked.worst

    def _get_attacked(self) -> MembershipAudit:
        if self.attacked is None:
            raise SundogError("membership was not audited; add it to the audits")
        return self.attacked

    @property
    def _privacy(self) -> str:
        return PRIVATE + (", except `published`" if self.published else "")

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict of all findings."""
        return min((finding.verdict for finding in self.findings), key=_GRAVEST.index)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The conclusion, and what each audit found."""
        return (self.conclusion, *(f"{finding.name.capitalize()}: {finding.summary}" for finding in self.findings))

    @property
    def conclusion(self) -> str:
        """Whether anything was found that breaks the promise, in a sentence."""
        words, certificate = self.verdict.value.capitalize(), self.certificate
        if certificate is not None and self.verdict in _CONCLUSIONS:
            words = _CONCLUSIONS[self.verdict].format(f"{certificate.epsilon:.3g}")
        names = [finding.name for finding in self.findings if finding.verdict is self.verdict]
        by = f" ({', '.join(names)})" if len(names) < len(self.findings) else ""
        return f"{words}{by}."

    @property
    def headline(self) -> str:
        """The conclusion and the findings in a few sentences."""
        return " ".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible dictionary."""
        return {
            "private": self._privacy,
            "about": {"name": self.name, **self.about},
            "headline": self.headline,
            "violated": self.is_violated,
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
            "not_tried": list(self.not_tried),
            **({} if self.attacked is None else _describe_attacks(self.attacked)),
            "published": nest_names(self.published),
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
        """Return that all is private, the findings, a table of the attacks, and what was not tried, for a terminal."""
        table: list[str] = []
        if self.attacked is not None:
            rows = [_HEADS, *map(_list_cells, self.attacked.results.list_all())]
            widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADS))]
            table = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        figures = [line for finding in self.findings for line in list_figures(finding)]
        notes = [f"note: {note}" for note in self.notes]
        untried = ["not tried:", *(f"  {each}" for each in self.not_tried)]
        return "\n".join([self._privacy, *self.sentences, *table, *figures, *notes, *untried])

    def _repr_html_(self) -> str:
        """Return the headline and a table as HTML for a notebook; they are as private as the records."""
        rows = [] if self.attacked is None else [_list_cells(result) for result in self.attacked.results.list_all()]
        return notebook.build_fragment(
            self.name,
            *map(notebook.build_paragraph, self.sentences),
            *([notebook.build_table(rows, _HEADS)] if rows else []),
            notebook.build_paragraph(PRIVATE),
        )


def _describe_attacks(attacked: MembershipAudit) -> dict[str, Any]:
    results = attacked.results
    return {
        "tried": [result.name for result in results.attacks],
        "share_of_members": results.share,
        "attacks": {result.name: result.to_dict() for result in results.attacks},
        "baselines": {result.name: result.to_dict() for result in (results.random, results.blind)},
        "similarity": {"nearer_to_members": attacked.similarity.to_dict()},
        "worst_records": [record.to_dict() for record in attacked.worst],
    }


def _list_cells(result: AttackResult) -> tuple[str, ...]:
    shown = (_format_short(result.measures[name]) for name in ("auc", "tpr_at_0.01", "top_accuracy"))
    return (result.name, f"{result.bound.epsilon:.2f}", f"{result.provable:.2f}", *shown)


def _format_short(measure: Measure) -> str:
    return f"{measure.value:.3f} ({measure.low:.3f} to {measure.high:.3f})"
