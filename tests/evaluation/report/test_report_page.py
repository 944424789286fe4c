"""The report page and its parts: what it says, what it escapes, and that it is the same every time."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from tests.evaluation.report.sample_report import HOSTILE, Sample, certificate, hostile, sample

from sundog.evaluation.measure import Measure, Metric
from sundog.evaluation.report import standing, svg
from sundog.evaluation.report.markup import Html, build_document, tag
from sundog.evaluation.report.plot_style import ACCENT, REAL, SYNTHETIC, use_page_style
from sundog.evaluation.report.report_page import render_page
from sundog.evaluation.report.side_by_side_page import BEST, SHARED, mark_best, render_side_by_side
from sundog.evaluation.section import Picture, Section


class Seen(HTMLParser):
    """All elements, attributes and text of a page."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(markup)

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in {"meta", "img", "br"}:
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name, f"</{name}> closes nothing"

    def handle_data(self, data: str) -> None:
        if data.strip() and self.open:
            self.texts.append((self.open[-1], data))

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for each, attributes in self.elements if each == name]

    def words(self, name: str) -> list[str]:
        return [text for each, text in self.texts if each == name]


def picture(draw: Callable[[Figure], object], title: str = "t") -> Picture:
    def drawn() -> Figure:
        figure = Figure(figsize=(3, 2), layout="constrained")
        draw(figure)
        return figure

    return Picture(title, "c", drawn)


# --- markup --------------------------------------------------------------------------------------------------------


def test_text_and_attributes_are_escaped_and_markup_is_not() -> None:
    assert tag("p", "<b>", Html("<i>x</i>"), title='"&', hidden=True, lang=None) == (
        '<p title="&quot;&amp;" hidden>&lt;b&gt;<i>x</i></p>'
    )


def test_what_cannot_be_printed_is_replaced() -> None:
    assert tag("p", "a\x00b\x1b\ud800c\n") == "<p>a�b��c\n</p>"


def test_a_document_has_what_a_browser_asks_for() -> None:
    seen = Seen(build_document("t", tag("p", "x"), private=False))
    assert seen.open == []
    assert seen.named("html") == [{"lang": "en"}]
    assert seen.named("meta")[0] == {"charset": "utf-8"}
    policy = next(meta["content"] for meta in seen.named("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "script" not in policy


# --- the page ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole() -> str:
    return render_page(sample())


def test_the_same_report_gives_the_same_page(whole: str) -> None:
    assert render_page(sample()) == whole


def test_the_page_is_marked_as_private(whole: str) -> None:
    seen = Seen(whole)
    assert "Not for publication." in seen.words("strong")
    assert seen.named("body") == [{"class": "private"}]


def test_without_private_figures_there_is_no_such_mark() -> None:
    shown = render_page(replace(sample(), sections=()))
    assert "Not for publication." not in shown
    assert "May be published" in shown
    assert "0.0244" in shown


def test_every_measure_has_its_row(whole: str) -> None:
    report = sample()
    for section in report.sections:
        assert section.title in Seen(whole).words("h2")
        for metric in section.metrics.values():
            assert metric.label in Seen(whole).words("summary")
            assert metric.meaning in Seen(whole).words("p")
    shown = Seen(whole).words("span")
    for figure in ("0.762", "0.754 to 0.770", "0.901", "0.896 to 0.906", "0.501", "0.491 to 0.511"):
        assert figure in shown
    assert "65% (63% to 68%) of the way to real data" in shown  # (0.7624 − 0.5012) / (0.9013 − 0.5012)
    assert standing.SAME in shown
    assert standing.UNKNOWN in shown


def test_a_bar_puts_floor_left_and_ceiling_right(whole: str) -> None:
    dots = [float(dot["cx"] or "nan") for dot in Seen(whole).named("circle")]
    inside = 132 - 2 * 8
    expected = 8 + inside * (0.7624 - 0.5012) / (0.9013 - 0.5012)
    assert any(abs(dot - expected) < 0.06 for dot in dots)
    assert min(dots) == 3.5  # what is worse than the floor stays inside the picture


def test_notes_settings_and_certificate_are_shown(whole: str) -> None:
    report = sample()
    seen = Seen(whole)
    for note in (*report.notes, *report.sections[1].notes):
        assert note in seen.words("li")
    assert {"32,561", "20240611", "income"} <= set(seen.words("dd"))
    assert "holdout" not in seen.words("dt")  # it was None
    assert any("sundog certificate" in text for text in seen.words("pre"))
    assert {"open": None} in seen.named("details")


def test_a_release_that_is_not_private_says_so_at_the_top() -> None:
    broken = certificate().model_copy(update={"private": False})
    shown = render_page(replace(sample(), sections=(), certificate=broken))
    assert any(text.startswith("NOT PRIVATE") for text in Seen(shown).words("strong"))


def test_data_without_a_certificate_gets_a_page_too() -> None:
    shown = render_page(replace(sample(), sections=(), certificate=None))
    assert "No certificate" in shown
    assert "Certificate" not in Seen(shown).words("h2")


def test_headings_come_in_order(whole: str) -> None:
    for shown in (whole, render_side_by_side([sample(), sample("b")])):
        levels = [int(name[1]) for name, _ in Seen(shown).elements if re.fullmatch("h[1-6]", name)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("make", [lambda: render_page(hostile()), lambda: render_side_by_side([hostile(), sample()])])
def test_text_from_data_stays_text(make: Callable[[], str]) -> None:
    shown = make()
    seen = Seen(shown)
    assert seen.open == []
    assert seen.named("script") == []
    assert HOSTILE in {text for _, text in seen.texts}
    for name, attributes in seen.elements:
        assert not any(key.startswith("on") for key in attributes), (name, attributes)
    assert "\x00" not in shown
    assert "\x1b" not in shown


def test_nothing_comes_from_elsewhere(whole: str) -> None:
    for _, attributes in Seen(whole).elements:
        for key in ("src", "href", "xlink:href", "srcset"):
            assert (attributes.get(key) or "#").startswith(("#", "data:image/png;base64,"))
    assert re.findall(r"url\((?!#)|@import|https?:", whole) == []


# --- pictures ------------------------------------------------------------------------------------------------------


def test_names_in_pictures_do_not_clash_and_lead_somewhere(whole: str) -> None:
    names = [attributes["id"] for _, attributes in Seen(whole).elements if "id" in attributes]
    assert len(names) > 20
    assert len(names) == len(set(names))
    referred = re.findall(r'(?:url\(#|href="#)([^")]+)', whole)
    assert set(referred) <= set(names)


def test_pictures_are_named_for_those_who_cannot_see_them(whole: str) -> None:
    shown = [svg for svg in Seen(whole).named("svg") if svg.get("class") != "bar"]
    pictures_of = [picture for section in sample().sections for picture in section.pictures]
    assert [svg["aria-label"] for svg in shown] == [f"{each.title}. {each.caption}" for each in pictures_of]
    assert all(svg["role"] == "img" for svg in shown)


def test_black_becomes_the_ink_of_the_page(whole: str) -> None:
    text = svg.render_picture(picture(lambda figure: figure.subplots().plot([1, 2], color="black")), "a-")
    assert "currentColor" in text
    assert "#000000" not in whole


def test_text_on_an_image_keeps_its_colour() -> None:
    def draw(figure: Figure) -> None:
        on_image, on_mesh, on_glass, beside = figure.subplots(1, 4)
        on_image.imshow(np.eye(2))
        on_mesh.pcolormesh(np.eye(2))
        on_glass.imshow(np.eye(2), cmap=LinearSegmentedColormap.from_list("", ["#2a9d8f00", "#2a9d8f"]))
        for axes, said in ((on_image, "on"), (on_mesh, "mesh"), (on_glass, "glass"), (beside, "beside")):
            axes.text(0, 0, said)

    text = svg.render_picture(picture(draw), "a-")
    kept = {said for said in ("on", "mesh", "glass", "beside") if re.search(rf"<text[^>]*#010101[^>]*>{said}<", text)}
    assert kept == {"on", "mesh"}
    assert {"glass", "beside"} <= set(Seen(text).words("text"))


def test_the_font_is_the_page_s() -> None:
    text = svg.render_picture(picture(lambda figure: figure.subplots().set_xlabel("x", fontweight="bold")), "a-")
    assert "var(--sans)" in text
    assert "DejaVu" not in text
    assert "<style" not in text


def test_dollars_are_no_mathematics_and_logarithms_are_plain() -> None:
    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot([1, 1000], [1, 1000], label=r"$\frac{$")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.legend()

    seen = Seen(svg.render_picture(picture(draw), "a-"))
    assert r"$\frac{$" in seen.words("text")
    assert {"1", "10", "100", "1000"} <= set(seen.words("text"))
    assert not any("mathdefault" in text for text in seen.words("text"))


def test_a_large_drawing_becomes_an_image_and_its_text_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.scatter(np.arange(500), np.arange(500) % 7)
        axes.set_xlabel("many points")

    small = svg.render_picture(picture(draw), "a-")
    monkeypatch.setattr(svg, "LARGEST", 10_000)
    large = svg.render_picture(picture(draw), "a-")
    assert "data:image/png" not in small
    assert "data:image/png" in large
    assert len(large) < len(small)
    assert large.count("<use") < 30 < small.count("<use")
    assert "many points" in Seen(large).words("text")


def test_the_settings_of_matplotlib_are_left_alone_and_do_not_matter(whole: str) -> None:
    with matplotlib.rc_context({"font.size": 30.0, "text.color": "red", "axes.grid": True}):
        before = dict(matplotlib.rcParams)
        assert render_page(sample()) == whole
        assert dict(matplotlib.rcParams) == before
    with pytest.raises(ZeroDivisionError), use_page_style():
        _ = 1 / 0
    assert matplotlib.rcParams["svg.fonttype"] == "path"


@pytest.mark.parametrize("colour", [REAL, SYNTHETIC, ACCENT])
def test_colours_of_data_can_be_told_from_both_pages(colour: str) -> None:
    def light(shade: str) -> float:
        parts = [int(shade[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    assert light("#fdfcfa") / light(colour) >= 3
    assert light(colour) / light("#17191c") >= 3


# --- side by side --------------------------------------------------------------------------------------------------


def several() -> list[Sample]:
    return [sample(f"adult-{e:g}.sundog", e, shift=s) for e, s in ((0.1, -0.05), (10.0, 0.08), (1.0, 0.0))]


def test_releases_stand_side_by_side_with_their_budgets() -> None:
    seen = Seen(render_side_by_side(several()))
    assert seen.words("b") == ["adult-0.1.sundog", "adult-10.sundog", "adult-1.sundog"]
    heads = " ".join(seen.words("th"))
    assert "ε = 0.1, δ = 10⁻⁶" in heads
    assert "ε = 10, δ = 10⁻⁶" in heads
    assert "0.762" in seen.words("span")
    assert BEST in seen.words("span")


def test_lines_are_drawn_for_three_budgets_and_not_for_fewer() -> None:
    assert "What a budget buys" in Seen(render_side_by_side(several())).words("h2")
    same = [sample("a", 1.0), sample("b", 1.0), sample("c", 3.0)]
    assert "What a budget buys" not in Seen(render_side_by_side(same)).words("h2")
    uncertified = [*several()[:2], replace(sample("c"), certificate=None)]
    assert "What a budget buys" not in Seen(render_side_by_side(uncertified)).words("h2")


def test_a_main_measure_that_is_nowhere_known_does_no_harm() -> None:
    name = "utility.tstr.forest.auc"
    metrics = {name: Metric("Forest", "high", "")}
    unknown = (Section("U", {name: Measure(math.nan, 0.0, 1.0)}, metrics),)
    shown = render_side_by_side([replace(report, sections=unknown, ceiling={}, floor={}) for report in several()])
    assert "Forest, against ε" in Seen(shown).words("h3")
    assert BEST not in Seen(shown).words("span")


def test_the_best_is_named_only_where_intervals_lie_apart() -> None:
    low, middle, high = Measure(0.1, 0.05, 0.15), Measure(0.5, 0.4, 0.6), Measure(0.62, 0.55, 0.7)
    assert mark_best([low, middle, high], "low") == [BEST, "", ""]
    assert mark_best([low, middle, high], "high") == ["", SHARED, SHARED]
    assert mark_best([middle, high], "high") == ["", ""]  # nothing is shown to be better
    assert mark_best([Measure(math.nan, 0, 1), None, high], "high") == ["", "", ""]
    assert mark_best([], "low") == []


def test_a_measure_that_one_release_lacks_leaves_its_place_empty() -> None:
    less = replace(sample("less"), sections=sample().sections[:1])
    shown = render_side_by_side([less, sample("all")])
    assert "Forest, AUC" in Seen(shown).words("summary")
    assert '<td class="number">–<' in shown


def test_different_real_data_is_pointed_out() -> None:
    other = replace(sample("b"), ceiling={"utility.tstr.forest.auc": Measure(0.7, 0.69, 0.71)})
    assert "not measured against the same real data" in render_side_by_side([sample(), other])
    assert "not measured against the same real data" not in render_side_by_side([sample(), sample("b")])
