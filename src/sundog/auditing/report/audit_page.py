"""An audit as one HTML page, in the style of evaluation reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sundog.auditing.audit_publication import METRICS as PUBLISHED
from sundog.auditing.membership_measures import METRICS
from sundog.auditing.report.fit_audit_sections import render_fit_audit
from sundog.auditing.report.membership_plots import plot_curves
from sundog.evaluation.measure import Measure
from sundog.evaluation.report.markup import Html, build_document, join, tag
from sundog.evaluation.report.measure_table import render_measure
from sundog.evaluation.report.number_text import format_percent, format_power, format_range
from sundog.evaluation.report.report_page import (
    render_banner,
    render_certificate_section,
    render_guarantee,
    render_notes,
    render_published,
    render_settings,
)
from sundog.evaluation.report.svg import render_gallery

if TYPE_CHECKING:
    from sundog.auditing.audit_result import Audit
    from sundog.auditing.finding import Finding
    from sundog.auditing.membership import AttackResult, MembershipResults
    from sundog.auditing.membership_finding import MembershipAudit
    from sundog.release.certificate import Certificate

_SHORT_HEADS = {
    "auc": "Area",
    "tpr_at_0.001": "Members found at 0.1% false alarms",
    "tpr_at_0.01": "at 1%",
    "tpr_at_0.1": "at 10%",
    "top_accuracy": "Members among the top 100",
    "advantage": "Advantage",
}
_FINDING_HEADS = (
    "Audit",
    "Verdict",
    "ε is at least",
    "Could prove at most",
    "ε is promised to be at most",
    "at a δ of",
)
_READING = (
    "Each attack scores members and non-members without knowing which is which. An attack that learns nothing has an "
    "area of ½, finds as many members as it raises false alarms, and has no advantage. Run again on members alone, of "
    "whom a half play the non-members, every sound attack has an area of about ½. Ranges are 95% intervals of single "
    "figures; the bounds on ε hold for all attacks together."
)
_SIMILARITY = (
    "Reports on synthetic data often show that it is no nearer to its training data than to other data, and conclude "
    "that it is private. The conclusion does not follow. Such a score is an average over all records: where a hundred "
    "records are copied into a hundred thousand it cannot move, and those hundred people are exposed. The people at "
    "risk are those with rare records, who count least in an average. And a release can reveal somebody without being "
    "near to them: through a marginal, a category that nobody else has, or the weights of a model."
)
_SHARED = (
    "A correct release is accused in at most 5% of audits, by all findings together, if who was a member was a matter "
    "of chance. Attacks on membership look at what was released; the other audits repeat its fit, and look at the "
    "program that made it."
)
_EVIDENCE = (
    "An attack that finds members proves a leak. Attacks that find none prove nothing: others may. Only the "
    "certificate bounds what all attacks together can find, if the program keeps what it promises."
)


def render_audit_page(audit: Audit) -> str:
    """Render a self-contained page: no script, font or picture is loaded from elsewhere."""
    return build_document(
        f"{audit.name}: audit",
        tag(
            "header",
            tag("p", "Audit of synthetic data", class_="kicker"),
            tag("h1", audit.name),
            tag("p", _keep_together(audit.conclusion), class_="headline"),
            render_guarantee(audit.certificate),
            render_banner(),
        ),
        tag(
            "main",
            render_notes(audit.notes),
            render_published(audit.published, PUBLISHED),
            _render_findings(audit.findings),
            *([] if audit.attacked is None else _render_membership(audit.attacked, audit.certificate)),
            *map(render_fit_audit, audit.findings),
            _render_untried(audit.not_tried),
            render_certificate_section(audit.certificate),
            tag("section", tag("h2", "Settings"), render_settings({"audited": audit.name, **audit.about})),
        ),
        tag("footer", tag("p", "Made by sundog.")),
        private=True,
    )


def _keep_together(words: str) -> str:
    """Return the words with budgets that are not broken across lines."""
    return re.sub(" ([=≥]) (?=[0-9])", "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}", words)


def _render_findings(findings: Sequence[Finding]) -> Html:
    rows = [_render_finding(finding) for finding in findings]
    table = _render_table("Findings", _FINDING_HEADS, rows, "findings")
    found = [
        tag("li", tag("strong", f"{finding.name.capitalize()}."), " ", _keep_together(finding.summary))
        for finding in findings
    ]
    shared = tag("p", _SHARED, class_="reading") if len(findings) > 1 else None
    return tag("section", tag("h2", "Findings"), tag("ul", *found), table, shared)


def _render_finding(finding: Finding) -> Html:
    """Render a row, which is a block of its own on a phone, where every figure has its heading."""
    figures = (
        "–" if finding.bound == 0 else tag("span", f"{finding.bound:.2f}", class_="value"),
        "–" if finding.provable is None else f"{finding.provable:.2f}",
        "–" if finding.promise is None else f"{finding.promise:.3g}",
        format_power(finding.delta),
    )
    cells = [
        tag("td", figure, class_="number", data_head=head)
        for head, figure in zip(_FINDING_HEADS[2:], figures, strict=True)
    ]
    return tag("tr", tag("th", finding.name, scope="row"), tag("td", finding.verdict.value), *cells)


def _render_membership(attacked: MembershipAudit, certificate: Certificate | None) -> list[Html]:
    return [_render_attacks(attacked.results, certificate), _render_similarity(attacked)]


def _render_attacks(results: MembershipResults, certificate: Certificate | None) -> Html:
    rows = [_render_attack(result) for result in results.attacks]
    control = tag("th", "Controls", scope="rowgroup", colspan=len(_SHORT_HEADS) + 2)
    rows += [tag("tr", control, class_="group"), *map(_render_attack, (results.blind, results.random))]
    heads = ("Attack", "ε is at least", *_SHORT_HEADS.values())
    meanings = [tag("div", tag("dt", metric.label), tag("dd", metric.meaning)) for metric in METRICS.values()]
    count = len(_SHORT_HEADS) * len(results.attacks)
    chance = (
        f"Of these {count} intervals, about {round(count / 20)} miss the truth by chance. "
        f"{format_percent(results.share)} of the candidates are members."
    )
    return tag(
        "section",
        tag("h2", "Attacks"),
        tag("p", _READING, " ", chance, class_="reading"),
        _render_table("All attacks and controls", heads, rows, "comparison attacks"),
        tag("details", tag("summary", "What the columns mean"), tag("dl", *meanings)),
        render_gallery([plot_curves(results, certificate)], "roc"),
    )


def _render_attack(result: AttackResult) -> Html:
    name = tag("details", tag("summary", result.name), tag("p", f"{result.description}."))
    cells = [_render_cell(result.measures[key]) for key in _SHORT_HEADS]
    if result.control is not None:  # a line below the area
        control = f"members alone: {result.control.measures['auc'].value:.3f}"
        cells[0] = tag(
            "td", render_measure(result.measures["auc"], 3), tag("span", control, class_="interval"), class_="number"
        )
    bound = tag("td", tag("span", f"{result.bound.epsilon:.2f}", class_="value"), class_="number")
    return tag("tr", tag("th", name, scope="row"), bound, *cells)


def _render_cell(measure: Measure) -> Html:
    return tag("td", render_measure(measure, 3), class_="number")


def _render_table(caption: str, heads: Sequence[str], rows: Sequence[Html], kind: str) -> Html:
    head = tag("thead", tag("tr", *(tag("th", words, scope="col") for words in heads)))
    table = tag("table", tag("caption", caption, class_="unseen"), head, tag("tbody", *rows), class_=kind)
    return tag("div", table, class_="scroller", tabindex=0, role="group", aria_label=caption)


def _render_similarity(attacked: MembershipAudit) -> Html:
    share, proven = attacked.similarity, attacked.finding.bound
    found = (
        f"Here {format_percent(share.value)} of the synthetic records are nearer to a member than to a non-member "
        f"({format_range(share)}; half would be chance)."
    )
    beside = f" Yet the attacks above prove ε ≥ {proven:.2f}." if proven > 0 else ""
    return tag(
        "section",
        tag("h2", "Why similarity is not evidence"),
        tag("p", _SIMILARITY, class_="reading"),
        tag("p", join(found, beside), class_="reading"),
        tag("p", _EVIDENCE, class_="reading"),
    )


def _render_untried(not_tried: Sequence[str]) -> Html:
    return tag("section", tag("h2", "What was not tried"), tag("ul", *(tag("li", each) for each in not_tried)))
