"""Markup: what is escaped, and what a document has."""

from __future__ import annotations

from tests.evaluation.report.page_parser import PageParser

from sundog.evaluation.report.markup import Html, build_document, tag


def test_text_and_attributes_are_escaped_and_markup_is_not() -> None:
    assert tag("p", "<b>", Html("<i>x</i>"), title='"&', hidden=True, lang=None) == (
        '<p title="&quot;&amp;" hidden>&lt;b&gt;<i>x</i></p>'
    )


def test_what_cannot_be_printed_is_replaced() -> None:
    assert tag("p", "a\x00b\x1b\ud800c\n") == "<p>a�b��c\n</p>"


def test_a_document_has_what_a_browser_asks_for() -> None:
    seen = PageParser(build_document("t", tag("p", "x"), private=False))
    assert seen.open == []
    assert seen.find_elements("html") == [{"lang": "en"}]
    assert seen.find_elements("meta")[0] == {"charset": "utf-8"}
    policy = next(
        meta["content"] for meta in seen.find_elements("meta") if meta.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "script" not in policy
