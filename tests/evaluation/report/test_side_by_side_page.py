"""Several releases on one page."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.evaluation.report.page_parser import PageParser
from tests.evaluation.report.sample_report import Sample, make_sample

from sundog.evaluation.measure import Measure, Metric
from sundog.evaluation.report.side_by_side_page import BEST, SHARED, mark_best, render_side_by_side
from sundog.evaluation.section import Section


def several() -> list[Sample]:
    return [make_sample(f"adult-{e:g}.sundog", e, shift=s) for e, s in ((0.1, -0.05), (10.0, 0.08), (1.0, 0.0))]


def test_releases_stand_side_by_side_with_their_budgets() -> None:
    seen = PageParser(render_side_by_side(several()))
    assert seen.find_texts("b") == ["adult-0.1.sundog", "adult-10.sundog", "adult-1.sundog"]
    heads = " ".join(seen.find_texts("th"))
    assert "ε = 0.1, δ = 10⁻⁶" in heads
    assert "ε = 10, δ = 10⁻⁶" in heads
    assert "0.762" in seen.find_texts("span")
    assert BEST in seen.find_texts("span")


def test_lines_are_drawn_for_three_budgets_and_not_for_fewer() -> None:
    assert "Utility by privacy budget" in PageParser(render_side_by_side(several())).find_texts("h2")
    same = [make_sample("a", 1.0), make_sample("b", 1.0), make_sample("c", 3.0)]
    assert "Utility by privacy budget" not in PageParser(render_side_by_side(same)).find_texts("h2")
    uncertified = [*several()[:2], replace(make_sample("c"), certificate=None)]
    assert "Utility by privacy budget" not in PageParser(render_side_by_side(uncertified)).find_texts("h2")


def test_a_main_measure_that_is_nowhere_known_does_no_harm() -> None:
    name = "utility.tstr.forest.auc"
    metrics = {name: Metric("Forest", "high", "")}
    unknown = (Section("U", {name: Measure(math.nan, 0.0, 1.0)}, metrics),)
    shown = render_side_by_side([replace(report, sections=unknown, ceiling={}, floor={}) for report in several()])
    assert "Forest, against ε" in PageParser(shown).find_texts("h3")
    assert BEST not in PageParser(shown).find_texts("span")


def test_the_best_is_named_only_where_intervals_lie_apart() -> None:
    low, middle, high = Measure(0.1, 0.05, 0.15), Measure(0.5, 0.4, 0.6), Measure(0.62, 0.55, 0.7)
    assert mark_best([low, middle, high], "low") == [BEST, "", ""]
    assert mark_best([low, middle, high], "high") == ["", SHARED, SHARED]
    assert mark_best([middle, high], "high") == ["", ""]  # nothing is shown to be better
    assert mark_best([Measure(math.nan, 0, 1), None, high], "high") == ["", "", ""]
    assert mark_best([], "low") == []


def test_a_measure_that_one_release_lacks_leaves_its_place_empty() -> None:
    less = replace(make_sample("less"), sections=make_sample().sections[:1])
    shown = render_side_by_side([less, make_sample("all")])
    assert "Forest, AUC" in PageParser(shown).find_texts("summary")
    assert '<td class="number">–<' in shown


def test_different_real_data_is_pointed_out() -> None:
    other = replace(make_sample("b"), ceiling={"utility.tstr.forest.auc": Measure(0.7, 0.69, 0.71)})
    assert "not measured against the same real data" in render_side_by_side([make_sample(), other])
    assert "not measured against the same real data" not in render_side_by_side([make_sample(), make_sample("b")])
