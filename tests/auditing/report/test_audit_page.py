"""The page of an audit: what it says, what it escapes, and that it is the same every time."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.auditing.report.sample_audit import make_audit, make_broken_audit, make_hostile_audit
from tests.evaluation.report.page_parser import PageParser
from tests.evaluation.report.sample_report import HOSTILE

from sundog.auditing.replay.neighbour_counts import describe_counts
from sundog.auditing.report.audit_page import render_audit_page
from sundog.evaluation.report.markup import is_report


@pytest.fixture(scope="module")
def whole() -> str:
    return render_audit_page(make_audit())


def test_the_same_audit_gives_the_same_page(whole: str) -> None:
    assert render_audit_page(make_audit()) == whole


def test_the_page_is_private_and_known_as_a_report(whole: str, tmp_path: Path) -> None:
    seen = PageParser(whole)
    assert "Not for publication." in seen.find_texts("strong")
    assert seen.find_elements("body") == [{"class": "private"}]
    path = tmp_path / "audit.html"
    make_audit().to_html(path)
    assert is_report(path)
    assert path.stat().st_mode & 0o077 == 0


def test_every_attack_and_control_has_its_row_and_explains_itself(whole: str) -> None:
    results, seen = make_audit().membership, PageParser(whole)
    for result in (*results.attacks, results.blind, results.random):
        assert result.name in seen.find_texts("summary")
        assert f"{result.description}." in seen.find_texts("p")
        assert f"{result.bound.epsilon:.2f}" in seen.find_texts("span")
    assert "Controls" in seen.find_texts("th")


def test_it_says_what_was_not_tried_and_why_similarity_is_not_evidence(whole: str) -> None:
    audit, seen = make_audit(), PageParser(whole)
    assert set(audit.not_tried) <= set(seen.find_texts("li"))
    assert {"Why similarity is not evidence", "What was not tried", "Certificate", "Settings"} <= set(
        seen.find_texts("h2")
    )
    assert any("nearer to a member than to a non-member" in text for text in seen.find_texts("p"))
    assert "no violation found" in seen.find_texts("td")


def test_every_audit_that_repeats_a_fit_has_its_section(whole: str) -> None:
    seen = PageParser(whole)
    assert {"Replay", "Canaries", "Game"} <= set(seen.find_texts("h2"))
    _, replay, canaries, game = make_audit().findings
    figures = seen.find_texts("dd")
    assert f"{replay.details['draws']:,}" in figures
    assert f"{canaries.details['right']:,} of {canaries.details['guesses']:,}" in figures
    assert f"at least {canaries.details['steinke_bound']:.2f}" in figures
    assert f"{game.details['runs']:,}" in figures
    assert "Nothing differs." in seen.find_texts("p")
    assert any(describe_counts(replay.details["kinds"]) in text for text in seen.find_texts("p"))
    assert {"What guesses about canaries prove", "Errors of the attacker", "Strength of the attack"} <= set(
        seen.find_texts("h3")
    )


def test_the_conclusion_comes_first_and_every_finding_has_its_delta(whole: str) -> None:
    seen, audit = PageParser(whole), make_audit()
    first = next(text for name, text in seen.texts[seen.texts.index(("h1", audit.name)) :] if name == "p")
    assert first.replace("\N{NO-BREAK SPACE}", " ") == "Nothing was found that breaks the promise of ε = 1."
    assert [finding.delta for finding in audit.findings] == [1e-9, 1e-6, 1e-6, 1e-6]
    assert "at a δ of" in seen.find_texts("th")
    cells = seen.find_texts("td")
    assert (cells.count("10⁻⁹"), cells.count("10⁻⁶")) == (1, 3)


def test_differences_and_what_may_be_published_are_shown() -> None:
    audit = make_broken_audit()
    seen = PageParser(render_audit_page(audit))
    assert set(audit.findings[1].details["first_differences"]) | {"and 3 more"} <= set(seen.find_texts("li"))
    conclusion = "The promise of ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}1 is broken (replay, canaries, game)."
    assert conclusion in seen.find_texts("p")
    assert seen.find_texts("td").count("the promise is broken") == 3
    assert "Strength of the attack" not in seen.find_texts("h3")  # μ is infinite
    assert {"Members taken for members", "Advantage of guessing by likelihood"} <= set(seen.find_texts("th"))
    text = audit.to_text()
    assert "became 20 (added: age = 'x')" in text
    assert "μ = infinite, claimed " in text


def test_the_curve_of_the_certificate_is_drawn_where_there_is_one(whole: str) -> None:
    assert "most that the certificate allows" in whole
    without = render_audit_page(replace(make_audit(), certificate=None))
    assert "most that the certificate allows" not in without
    assert "No certificate" in without


def test_headings_come_in_order(whole: str) -> None:
    levels = [int(name[1]) for name, _ in PageParser(whole).elements if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_text_from_data_stays_text() -> None:
    seen = PageParser(render_audit_page(make_hostile_audit()))
    assert seen.open == []
    assert seen.find_elements("script") == []
    assert HOSTILE in {text for _, text in seen.texts}
    assert not any(key.startswith("on") for _, attributes in seen.elements for key in attributes)


def test_nothing_comes_from_elsewhere(whole: str) -> None:
    for _, attributes in PageParser(whole).elements:
        for key in ("src", "href", "xlink:href", "srcset"):
            assert (attributes.get(key) or "#").startswith(("#", "data:image/png;base64,"))
    assert re.findall(r"url\((?!#)|@import|https?:", whole) == []
