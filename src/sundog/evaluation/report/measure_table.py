"""The table of a section: every measure between independent columns and real data."""

from __future__ import annotations

from sundog.evaluation.measure import Measure, Metric
from sundog.evaluation.report.markup import Html, join, tag
from sundog.evaluation.report.number_text import capitalise, choose_decimals, format_decimal, format_interval
from sundog.evaluation.report.standing import Standing
from sundog.evaluation.section import Section

_WIDTH, _HEIGHT, _MARGIN = 132, 16, 8


def render_measure_table(section: Section, standings: dict[str, Standing]) -> Html:
    """Render the measures of a section, one per row."""
    if not section.measures:
        return Html()
    heads = ("Measure", "This release", "Between independent columns and real data", "Real data", "Independent columns")
    head = tag("tr", *(tag("th", words, scope="col") for words in heads))
    rows = [_render_row(section.metrics[name], standings[name]) for name in section.measures]
    caption = tag("caption", f"{section.title}: measures", class_="unseen")
    return tag("table", caption, tag("thead", head), tag("tbody", *rows), class_="measures")


def render_metric(metric: Metric) -> Html:
    """Render the label of a measure, which direction is better, and its meaning on demand."""
    return join(
        tag("details", tag("summary", capitalise(metric.label)), tag("p", metric.meaning)),
        tag("span", "lower is better" if metric.better == "low" else "higher is better", class_="direction"),
    )


def render_measure(measure: Measure | None, decimals: int) -> Html:
    """Render a value with its interval below."""
    if measure is None:
        return Html("–")
    return join(
        tag("span", format_decimal(measure.value, decimals), class_="value"),
        tag("span", format_interval(measure, decimals), class_="interval"),
    )


def _render_row(metric: Metric, standing: Standing) -> Html:
    ceiling, floor = standing.ceiling, standing.floor
    decimals = choose_decimals(*(each.value for each in (standing.measure, ceiling, floor) if each is not None))
    return tag(
        "tr",
        tag("th", render_metric(metric), scope="row"),
        tag("td", render_measure(standing.measure, decimals), class_="number"),
        tag("td", _render_bar(standing), tag("span", standing.words, class_="standing"), class_="between"),
        tag("td", render_measure(ceiling, decimals), class_="number", data_head="Real data"),
        tag("td", render_measure(floor, decimals), class_="number", data_head="Independent columns"),
    )


def _render_bar(standing: Standing) -> Html:
    """Render floor and ceiling as ends, the interval as a band and the value as a dot."""
    share = standing.share
    if share is None:
        return Html()
    low, high = (_place_in_bar(standing.locate(end)) for end in (standing.measure.low, standing.measure.high))
    middle = _HEIGHT / 2
    ends = [tag("line", x1=x, x2=x, y1=middle - 4, y2=middle + 4, class_="track") for x in (_MARGIN, _WIDTH - _MARGIN)]
    return tag(
        "svg",
        tag("line", x1=_MARGIN, x2=_WIDTH - _MARGIN, y1=middle, y2=middle, class_="track"),
        *ends,
        tag("rect", x=min(low, high), width=round(abs(high - low), 1), y=middle - 3.5, height=7, rx=3.5, class_="band"),
        tag("circle", cx=_place_in_bar(share.value), cy=middle, r=3.5, class_="dot"),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        width=_WIDTH,
        height=_HEIGHT,
        class_="bar",
        aria_hidden="true",
    )


def _place_in_bar(share: float | None) -> float:
    """Return the position in the bar; values far outside are shown at the edge."""
    inside = _WIDTH - 2 * _MARGIN
    return round(min(max(_MARGIN + (share or 0.0) * inside, 3.5), _WIDTH - 3.5), 1)
