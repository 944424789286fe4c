"""The report page and its parts: what it says, what it escapes, and that it is the same every time."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import matplotlib
import pytest
from tests.evaluation.report.page_parser import PageParser, make_picture
from tests.evaluation.report.sample_report import HOSTILE, make_certificate, make_hostile_sample, make_sample

from sundog.evaluation.report import standing, svg
from sundog.evaluation.report.plot_style import use_page_style
from sundog.evaluation.report.report_page import render_page
from sundog.evaluation.report.side_by_side_page import render_side_by_side

# --- the page ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole() -> str:
    return render_page(make_sample())


def test_the_same_report_gives_the_same_page(whole: str) -> None:
    assert render_page(make_sample()) == whole


def test_the_page_is_marked_as_private(whole: str) -> None:
    seen = PageParser(whole)
    assert "Not for publication." in seen.find_texts("strong")
    assert seen.find_elements("body") == [{"class": "private"}]


def test_without_private_figures_there_is_no_such_mark() -> None:
    shown = render_page(replace(make_sample(), sections=()))
    assert "Not for publication." not in shown
    assert "May be published" in shown
    assert "0.0244" in shown


def test_every_measure_has_its_row(whole: str) -> None:
    report = make_sample()
    for section in report.sections:
        assert section.title in PageParser(whole).find_texts("h2")
        for metric in section.metrics.values():
            assert metric.label in PageParser(whole).find_texts("summary")
            assert metric.meaning in PageParser(whole).find_texts("p")
    shown = PageParser(whole).find_texts("span")
    for figure in ("0.762", "0.754 to 0.770", "0.901", "0.896 to 0.906", "0.501", "0.491 to 0.511"):
        assert figure in shown
    assert "65% (63% to 68%) of the way to real data" in shown  # (0.7624 − 0.5012) / (0.9013 − 0.5012)
    assert standing.SAME in shown
    assert standing.UNKNOWN in shown


def test_a_bar_puts_floor_left_and_ceiling_right(whole: str) -> None:
    dots = [float(dot["cx"] or "nan") for dot in PageParser(whole).find_elements("circle")]
    inside = 132 - 2 * 8
    expected = 8 + inside * (0.7624 - 0.5012) / (0.9013 - 0.5012)
    assert any(abs(dot - expected) < 0.06 for dot in dots)
    assert min(dots) == 3.5  # what is worse than the floor stays inside the picture


def test_notes_settings_and_certificate_are_shown(whole: str) -> None:
    report = make_sample()
    seen = PageParser(whole)
    for note in (*report.notes, *report.sections[1].notes):
        assert note in seen.find_texts("li")
    assert {"32,561", "20240611", "income"} <= set(seen.find_texts("dd"))
    assert "holdout" not in seen.find_texts("dt")  # it was None
    assert any("sundog certificate" in text for text in seen.find_texts("pre"))
    assert {"open": None} in seen.find_elements("details")


def test_a_release_that_is_not_private_says_so_at_the_top() -> None:
    broken = make_certificate().model_copy(update={"private": False})
    shown = render_page(replace(make_sample(), sections=(), certificate=broken))
    assert any(text.startswith("NOT PRIVATE") for text in PageParser(shown).find_texts("strong"))


def test_data_without_a_certificate_gets_a_page_too() -> None:
    shown = render_page(replace(make_sample(), sections=(), certificate=None))
    assert "No certificate" in shown
    assert "Certificate" not in PageParser(shown).find_texts("h2")


def test_headings_come_in_order(whole: str) -> None:
    for shown in (whole, render_side_by_side([make_sample(), make_sample("b")])):
        levels = [int(name[1]) for name, _ in PageParser(shown).elements if re.fullmatch("h[1-6]", name)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize(
    "make",
    [lambda: render_page(make_hostile_sample()), lambda: render_side_by_side([make_hostile_sample(), make_sample()])],
)
def test_text_from_data_stays_text(make: Callable[[], str]) -> None:
    shown = make()
    seen = PageParser(shown)
    assert seen.open == []
    assert seen.find_elements("script") == []
    assert HOSTILE in {text for _, text in seen.texts}
    for name, attributes in seen.elements:
        assert not any(key.startswith("on") for key in attributes), (name, attributes)
    assert "\x00" not in shown
    assert "\x1b" not in shown


def test_nothing_comes_from_elsewhere(whole: str) -> None:
    for _, attributes in PageParser(whole).elements:
        for key in ("src", "href", "xlink:href", "srcset"):
            assert (attributes.get(key) or "#").startswith(("#", "data:image/png;base64,"))
    assert re.findall(r"url\((?!#)|@import|https?:", whole) == []


# --- pictures ------------------------------------------------------------------------------------------------------


def test_names_in_pictures_do_not_clash_and_lead_somewhere(whole: str) -> None:
    names = [attributes["id"] for _, attributes in PageParser(whole).elements if "id" in attributes]
    assert len(names) > 20
    assert len(names) == len(set(names))
    referred = re.findall(r'(?:url\(#|href="#)([^")]+)', whole)
    assert set(referred) <= set(names)


def test_pictures_are_named_for_those_who_cannot_see_them(whole: str) -> None:
    shown = [svg for svg in PageParser(whole).find_elements("svg") if svg.get("class") != "bar"]
    pictures_of = [picture for section in make_sample().sections for picture in section.pictures]
    assert [svg["aria-label"] for svg in shown] == [f"{each.title}. {each.caption}" for each in pictures_of]
    assert all(svg["role"] == "img" for svg in shown)


def test_black_becomes_the_ink_of_the_page(whole: str) -> None:
    text = svg.render_picture(make_picture(lambda figure: figure.subplots().plot([1, 2], color="black")), "a-")
    assert "currentColor" in text
    assert "#000000" not in whole


def test_the_settings_of_matplotlib_are_left_alone_and_do_not_matter(whole: str) -> None:
    with matplotlib.rc_context({"font.size": 30.0, "text.color": "red", "axes.grid": True}):
        before = dict(matplotlib.rcParams)
        assert render_page(make_sample()) == whole
        assert dict(matplotlib.rcParams) == before
    with pytest.raises(ZeroDivisionError), use_page_style():
        _ = 1 / 0
    assert matplotlib.rcParams["svg.fonttype"] == "path"
