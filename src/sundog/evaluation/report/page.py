"""The report as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sundog.evaluation.measure import Measure, Measures, Metric
from sundog.evaluation.report.headline import headline
from sundog.evaluation.report.markup import Html, document, joined, tag
from sundog.evaluation.report.measure_table import table, with_interval
from sundog.evaluation.report.svg import gallery
from sundog.evaluation.report.words import Standing, capital, places, power, standings
from sundog.evaluation.section import Section
from sundog.release.certificate import Certificate

_SHORT = 60  # lines of a certificate that is shown at once

BANNER = joined(
    tag("strong", "Not for publication."),
    " These figures were measured on private data without a budget; they can give people away.",
)
READING = (
    "Each figure stands beside two others: what real data gives in place of the synthetic, and what columns give that "
    "know nothing of each other. Ranges are 95% intervals. Open a measure to read what it means."
)


class Reported(Protocol):
    """What a page shows of a report; see `sundog.evaluation.evaluate.Report`."""

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


def page(report: Reported) -> str:
    """A page that stands by itself: no script, no font and no picture comes from elsewhere."""
    private = bool(report.sections)
    standing = standings(report.sections, report.ceiling, report.floor)
    return document(
        f"{report.name}: evaluation",
        tag(
            "header",
            tag("p", "Evaluation of synthetic data", class_="kicker"),
            tag("h1", report.name),
            _promise(report.certificate),
            banner() if private else None,
        ),
        tag(
            "main",
            tag("p", headline(report.sections, report.ceiling, report.floor), class_="headline") if private else None,
            notes(report.notes),
            _published(report),
            tag("p", READING, class_="reading") if private else None,
            *(_section(section, standing, place) for place, section in enumerate(report.sections)),
            _certificate(report.certificate),
            tag("section", tag("h2", "To repeat it"), settings(report)),
        ),
        tag("footer", tag("p", "Made by sundog.")),
        private=private,
    )


def banner() -> Html:
    """Says on the face of a page whose eyes it is for."""
    return tag("p", BANNER, class_="banner", role="note")


def notes(said: tuple[str, ...]) -> Html:
    """What a reader must know."""
    return tag("ul", *(tag("li", note) for note in said), class_="notes") if said else Html()


def certificate(of: Certificate, summary: str, *, opened: bool) -> Html:
    """The certificate as it is printed, behind its summary."""
    shown = tag("pre", str(of), tabindex=0, role="group", aria_label=summary)
    return tag("details", tag("summary", summary), shown, open=opened)


def settings(report: Reported) -> Html:
    """What it takes to get the same figures."""
    known = {"evaluated": report.name, **report.about}
    pairs = [
        tag("div", tag("dt", key), tag("dd", _setting(key, value))) for key, value in known.items() if value is not None
    ]
    return tag("dl", *pairs)


def _certificate(of: Certificate | None) -> Html:
    if of is None:
        return Html()
    short = str(of).count("\n") < _SHORT
    return tag("section", tag("h2", "Certificate"), certificate(of, "What is promised, and what it cost", opened=short))


def _promise(of: Certificate | None) -> Html:
    if of is None:
        return tag("p", "No certificate: nothing is known about how this data was made.", class_="promise")
    words = f"{promised(of)}; protects {of.who}."
    return tag("p", words if of.private else tag("strong", words), class_="promise")


def promised(of: Certificate | None) -> str:
    """The budget in a few words."""
    if of is None:
        return "no certificate"
    budget = f"ε = {of.epsilon:g}, δ = {power(of.delta)}"
    return budget if of.private else f"NOT PRIVATE, though it says {budget}"


def _published(report: Reported) -> Html:
    if not report.published:
        return Html()
    metrics = {name: metric for section in report.sections for name, metric in section.metrics.items()}
    rows = [_published_row(metrics.get(name), name, measure) for name, measure in report.published.items()]
    return tag(
        "section",
        tag("h2", "May be published"),
        tag("p", "These figures were measured with noise, and their privacy was paid for from the ledger."),
        tag("table", tag("caption", "Published figures", class_="unseen"), tag("tbody", *rows)),
        class_="published",
    )


def _published_row(metric: Metric | None, name: str, measure: Measure) -> Html:
    shown = with_interval(measure, places(measure.value, measure.high))
    return tag(
        "tr",
        tag("th", name if metric is None else capital(metric.label), scope="row"),
        tag("td", shown, class_="number"),
    )


def _setting(key: str, value: str | int | float | None) -> str:
    """Counts are for reading; everything else may be copied."""
    return f"{value:,}" if isinstance(value, int) and "records" in key else str(value)


def _section(section: Section, standing: dict[str, Standing], place: int) -> Html:
    return tag(
        "section",
        tag("h2", section.title),
        table(section, standing),
        notes(tuple(section.notes)),
        gallery(section.pictures, f"s{place}"),
    )
