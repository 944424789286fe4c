"""Several reports side by side on one page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from sundog.evaluation.measure import Better, Measure, Metric
from sundog.evaluation.report.headline import list_main_measures
from sundog.evaluation.report.markup import Html, build_document, join, tag
from sundog.evaluation.report.measure_table import render_measure, render_metric
from sundog.evaluation.report.number_text import capitalise, choose_decimals
from sundog.evaluation.report.plot_style import ACCENT, compute_error_bars
from sundog.evaluation.report.report_page import (
    ReportContent,
    describe_guarantee,
    render_banner,
    render_certificate,
    render_notes,
    render_settings,
)
from sundog.evaluation.report.svg import render_gallery
from sundog.evaluation.section import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEST, SHARED = "best", "shares the best"
_POINTS = 3  # different ε from which on curves are drawn

_READING = (
    "A release is called best where its interval is apart from all others. Overlapping intervals show no difference: "
    "releases that overlap with the best share it."
)
_DIFFERENT = "The releases were not measured against the same real data: the reference columns are those of the first."


def render_side_by_side(reports: Sequence[ReportContent]) -> str:
    """Render one measure per row and one release per column, and curves against ε if there are enough."""
    title = f"{len(reports)} releases side by side"
    return build_document(
        title,
        tag("header", tag("p", "Evaluation of synthetic data", class_="kicker"), tag("h1", title), render_banner()),
        tag(
            "main",
            tag("p", _READING, class_="reading"),
            render_notes(_collect_notes(reports)),
            _render_table(reports),
            _render_budget_curves(reports),
            _render_certificates(reports),
            tag(
                "section",
                tag("h2", "Settings"),
                *map(_render_report_settings, reports),
            ),
        ),
        tag("footer", tag("p", "Made by sundog.")),
        private=True,
    )


def _collect_notes(reports: Sequence[ReportContent]) -> tuple[str, ...]:
    """Return the notes of all reports, each once."""
    different = (_DIFFERENT,) if _ceilings_differ(reports) else ()
    return (*different, *dict.fromkeys(note for report in reports for note in report.notes))


def mark_best(measures: Sequence[Measure | None], better: Better) -> list[str]:
    """Return a mark for each measure: `best`, or `shares the best` where its interval overlaps with that of the best.

    >>> mark_best([Measure(0.9, 0.8, 1.0), Measure(0.3, 0.2, 0.4), None], "high")
    ['best', '', '']
    >>> mark_best([Measure(0.9, 0.8, 1.0), Measure(0.85, 0.75, 0.95), Measure(0.3, 0.2, 0.4)], "high")
    ['shares the best', 'shares the best', '']
    """
    known = [measure for measure in measures if measure is not None and math.isfinite(measure.value)]
    if len(known) < 2:
        return [""] * len(measures)
    best = (max if better == "high" else min)(known, key=lambda measure: measure.value)
    tied = [measure is not None and math.isfinite(measure.value) and measure.overlaps(best) for measure in measures]
    if sum(tied) == len(known):
        return [""] * len(measures)
    return [(BEST if sum(tied) == 1 else SHARED) if one else "" for one in tied]


def _render_certificates(reports: Sequence[ReportContent]) -> Html:
    shown = [
        render_certificate(report.certificate, f"{report.name}: {describe_guarantee(report.certificate)}", opened=False)
        for report in reports
        if report.certificate is not None
    ]
    return tag("section", tag("h2", "Certificates"), *shown) if shown else Html()


def _render_report_settings(report: ReportContent) -> Html:
    return _render_details(report.name, render_settings({"evaluated": report.name, **report.about}))


def _render_details(summary: str, shown: Html) -> Html:
    return tag("details", tag("summary", summary), shown)


# --- the table -----------------------------------------------------------------------------------------------------


def _render_table(reports: Sequence[ReportContent]) -> Html:
    heads = [tag("th", _render_head(report), scope="col") for report in reports]
    bounds = [tag("th", words, scope="col") for words in ("Real data", "Independent columns")]
    groups = [_render_group(title, names, reports) for title, names in _group_by_section(reports).items()]
    head = tag("thead", tag("tr", tag("th", "Measure", scope="col"), *heads, *bounds))
    caption = tag("caption", "All measures of all releases", class_="unseen")
    whole = tag("table", caption, head, *groups, class_="comparison")
    return tag("div", whole, class_="scroller", tabindex=0, role="group", aria_label="All measures of all releases")


def _render_head(report: ReportContent) -> Html:
    return join(tag("b", report.name), describe_guarantee(report.certificate))


def _group_by_section(reports: Sequence[ReportContent]) -> dict[str, list[str]]:
    """Return the names of all measures by section, in order of first occurrence."""
    titles: dict[str, list[str]] = {}
    for section in (section for report in reports for section in report.sections):
        names = titles.setdefault(section.title, [])
        names += [name for name in section.measures if name not in names]
    return titles


def _render_group(title: str, names: Iterable[str], reports: Sequence[ReportContent]) -> Html:
    head = tag("tr", tag("th", title, scope="rowgroup", colspan=len(reports) + 3), class_="group")
    return tag("tbody", head, *(_render_row(name, reports) for name in names))


def _render_row(name: str, reports: Sequence[ReportContent]) -> Html:
    metric = _find_metric(name, reports)
    found = [report.measures.get(name) for report in reports]
    bounds = [
        _take_first(report.ceiling.get(name) for report in reports),
        _take_first(report.floor.get(name) for report in reports),
    ]
    decimals = choose_decimals(*(measure.value for measure in (*found, *bounds) if measure is not None))
    cells = [
        tag(
            "td",
            render_measure(measure, decimals),
            tag("span", mark, class_="mark"),
            class_=f"number {mark and 'best'}".strip(),
        )
        for measure, mark in zip(found, mark_best(found, metric.better), strict=True)
    ]
    ends = [tag("td", render_measure(measure, decimals), class_="number") for measure in bounds]
    return tag("tr", tag("th", render_metric(metric), scope="row"), *cells, *ends)


def _find_metric(name: str, reports: Sequence[ReportContent]) -> Metric:
    return next(s.metrics[name] for report in reports for s in report.sections if name in s.metrics)


def _take_first(measures: Iterable[Measure | None]) -> Measure | None:
    return next((measure for measure in measures if measure is not None), None)


def _ceilings_differ(reports: Sequence[ReportContent]) -> bool:
    """Return whether the ceilings differ, i.e. the reports used different real data."""
    return any(
        not report.ceiling[name].overlaps(reports[0].ceiling[name])
        for report in reports[1:]
        for name in report.ceiling.keys() & reports[0].ceiling.keys()
    )


# --- lines against ε -----------------------------------------------------------------------------------------------


def _render_budget_curves(reports: Sequence[ReportContent]) -> Html:
    certified = [report for report in reports if report.certificate is not None]
    if len({_get_epsilon(report) for report in certified}) < _POINTS:
        return Html()
    ordered = sorted(certified, key=_get_epsilon)
    names = [
        name for name in list_main_measures(ordered[0].sections) if all(name in report.measures for report in ordered)
    ]
    pictures = [_plot_budget_curve(name, ordered) for name in names]
    return (
        tag("section", tag("h2", "Utility by privacy budget"), render_gallery(pictures, "lines"))
        if pictures
        else Html()
    )


def _get_epsilon(report: ReportContent) -> float:
    return math.nan if report.certificate is None else report.certificate.epsilon


def _plot_budget_curve(name: str, reports: Sequence[ReportContent]) -> Picture:
    metric = _find_metric(name, reports)
    way = "Lower" if metric.better == "low" else "Higher"
    caption = f"{way} is better. Bars are 95% intervals; horizontal lines are real data and independent columns."
    return Picture(f"{capitalise(metric.label)}, against ε", caption, partial(_draw_budget_curve, name, reports))


def _draw_budget_curve(name: str, reports: Sequence[ReportContent]) -> Figure:
    from matplotlib.figure import Figure

    measures = [report.measures[name] for report in reports]
    epsilons = [_get_epsilon(report) for report in reports]
    values, errors = [measure.value for measure in measures], compute_error_bars(measures)
    figure = Figure(figsize=(4.8, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.errorbar(epsilons, values, yerr=errors, color=ACCENT, marker="o", markersize=4, capsize=2)
    for words, level in _choose_levels(reports[0].ceiling.get(name), reports[0].floor.get(name)).items():
        axes.axhline(level, color="black", linewidth=0.8, linestyle=":")
        axes.text(1, level, words, transform=axes.get_yaxis_transform(), ha="right", va="bottom", fontsize=8)
    axes.margins(y=0.12)
    axes.set_xscale("log")
    axes.set_xticks(sorted(set(epsilons)), [f"{epsilon:g}" for epsilon in sorted(set(epsilons))], minor=False)
    axes.minorticks_off()
    axes.set_xlabel("ε")
    return figure


def _choose_levels(ceiling: Measure | None, floor: Measure | None) -> dict[str, float]:
    """Return horizontal lines and their labels; one where both coincide."""
    if ceiling is not None and floor is not None and ceiling.overlaps(floor):
        return {"real data and independent columns": ceiling.value}
    levels = {"real data": ceiling, "independent columns": floor}
    return {words: level.value for words, level in levels.items() if level is not None and math.isfinite(level.value)}
