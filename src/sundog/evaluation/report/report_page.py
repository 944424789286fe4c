"""The report as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sundog.evaluation.measure import Measure, Measures, Metric
from sundog.evaluation.report.headline import write_headline
from sundog.evaluation.report.markup import Html, build_document, join, tag
from sundog.evaluation.report.measure_table import render_measure, render_measure_table
from sundog.evaluation.report.number_text import capitalise, choose_decimals, format_power
from sundog.evaluation.report.standing import Standing, compute_standings
from sundog.evaluation.report.svg import render_gallery
from sundog.evaluation.section import Section
from sundog.release.certificate import Certificate

_SHORT = 60  # lines up to which a certificate is shown open

BANNER = join(
    tag("strong", "Not for publication."),
    " These figures were measured on private data without a budget; they may reveal information about individuals.",
)
READING = (
    "Each figure is shown beside those of real data in place of the synthetic data and of independently shuffled "
    "columns. Ranges are 95% intervals. Open a measure to read what it means."
)


class ReportContent(Protocol):
    """The parts of a report that a page shows; see `sundog.evaluation.evaluator.Report`."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def sections(self) -> tuple[Section, ...]: ...  # noqa: D102
    @property
    def measures(self) -> Measures: ...  # noqa: D102
    @property
    def ceiling(self) -> Measures: ...  # noqa: D102
    @property
    def floor(self) -> Measures: ...  # noqa: D102
    @property
    def about(self) -> Mapping[str, str | int | float | None]: ...  # noqa: D102
    @property
    def notes(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def certificate(self) -> Certificate | None: ...  # noqa: D102
    @property
    def published(self) -> Measures: ...  # noqa: D102


def render_page(report: ReportContent) -> str:
    """Render a self-contained page: no script, font or picture is loaded from elsewhere."""
    private = bool(report.sections)
    standing = compute_standings(report.sections, report.ceiling, report.floor)
    return build_document(
        f"{report.name}: evaluation",
        tag(
            "header",
            tag("p", "Evaluation of synthetic data", class_="kicker"),
            tag("h1", report.name),
            render_guarantee(report.certificate),
            render_banner() if private else None,
        ),
        tag(
            "main",
            tag("p", write_headline(report.sections, report.ceiling, report.floor), class_="headline")
            if private
            else None,
            render_notes(report.notes),
            render_published(report.published, _collect_metrics(report.sections)),
            tag("p", READING, class_="reading") if private else None,
            *(_render_section(section, standing, place) for place, section in enumerate(report.sections)),
            render_certificate_section(report.certificate),
            tag("section", tag("h2", "Settings"), render_settings({"evaluated": report.name, **report.about})),
        ),
        tag("footer", tag("p", "Made by sundog.")),
        private=private,
    )


def render_banner() -> Html:
    """Render the warning that the page is private."""
    return tag("p", BANNER, class_="banner", role="note")


def render_notes(said: tuple[str, ...]) -> Html:
    """Render what a reader must know."""
    return tag("ul", *(tag("li", note) for note in said), class_="notes") if said else Html()


def render_certificate(of: Certificate, summary: str, *, opened: bool) -> Html:
    """Render the certificate as it is printed, behind its summary."""
    shown = tag("pre", str(of), tabindex=0, role="group", aria_label=summary)
    return tag("details", tag("summary", summary), shown, open=opened)


def render_settings(known: Mapping[str, str | int | float | None]) -> Html:
    """Render what is needed to get the same figures."""
    pairs = [
        tag("div", tag("dt", key), tag("dd", _format_setting(key, value)))
        for key, value in known.items()
        if value is not None
    ]
    return tag("dl", *pairs)


def render_certificate_section(of: Certificate | None) -> Html:
    """Render the certificate in a section of its own, opened if it is short."""
    if of is None:
        return Html()
    short = str(of).count("\n") < _SHORT
    return tag("section", tag("h2", "Certificate"), render_certificate(of, "Guarantee and cost", opened=short))


def render_guarantee(of: Certificate | None) -> Html:
    """Render the budget and whom it protects, or that there is no certificate."""
    if of is None:
        return tag("p", "No certificate: this data has no known privacy guarantee.", class_="promise")
    words = f"{describe_guarantee(of)}; protects {of.who}."
    return tag("p", words if of.private else tag("strong", words), class_="promise")


def describe_guarantee(of: Certificate | None) -> str:
    """Return the budget in a few words."""
    if of is None:
        return "no certificate"
    budget = f"ε = {of.epsilon:g}, δ = {format_power(of.delta)}"
    return budget if of.private else f"NOT PRIVATE, though it says {budget}"


def render_published(published: Measures, metrics: Mapping[str, Metric]) -> Html:
    """Render the figures that were paid for; nothing if there are none."""
    if not published:
        return Html()
    rows = [_render_published_row(metrics.get(name), name, measure) for name, measure in published.items()]
    return tag(
        "section",
        tag("h2", "May be published"),
        tag("p", "These figures were measured with noise and charged to the ledger."),
        tag("table", tag("caption", "Published figures", class_="unseen"), tag("tbody", *rows)),
        class_="published",
    )


def _collect_metrics(sections: tuple[Section, ...]) -> dict[str, Metric]:
    return {name: metric for section in sections for name, metric in section.metrics.items()}


def _render_published_row(metric: Metric | None, name: str, measure: Measure) -> Html:
    shown = render_measure(measure, choose_decimals(measure.value, measure.high))
    return tag(
        "tr",
        tag("th", name if metric is None else capitalise(metric.label), scope="row"),
        tag("td", shown, class_="number"),
    )


def _format_setting(key: str, value: str | int | float | None) -> str:
    """Group the digits of counts; everything else may be copied."""
    return f"{value:,}" if isinstance(value, int) and "records" in key else str(value)


def _render_section(section: Section, standing: dict[str, Standing], place: int) -> Html:
    return tag(
        "section",
        tag("h2", section.title),
        render_measure_table(section, standing),
        render_notes(tuple(section.notes)),
        render_gallery(section.pictures, f"s{place}", section.listings),
    )
