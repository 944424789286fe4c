"""Notebook views escape names, which may be hostile."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest

import sundog
from sundog.data.schema import Schema
from sundog.fit.synthesizer import Synthesizer
from sundog.release.release import Release

HOSTILE = "<script>alert('x')</script>&\x1b[31m"
ALLOWED = {"div", "strong", "p", "pre", "table", "thead", "tbody", "tr", "th", "td"}


class Tags(HTMLParser):
    """A parser that checks that tags are allowed and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check_view(thing: Any) -> str:
    """Return the text of a notebook view, and check that it is harmless."""
    page = Tags()
    page.feed(thing._repr_html_())
    page.close()
    assert page.seen <= ALLOWED
    assert not page.open
    assert "\x1b" not in page.text
    return page.text


@pytest.fixture(scope="module")
def release() -> Release:
    column = {"type": "categorical", "values": [HOSTILE, *map(str, range(20))]}
    schema = Schema.from_dict(
        {"unit": HOSTILE, "columns": {f"{HOSTILE} 2": column, "age": {"type": "integer", "min": 0, "max": 99}}}
    )
    frame = pd.DataFrame(
        {HOSTILE: range(400), f"{HOSTILE} 2": ["1", "2"] * 200, "age": [age % 100 for age in range(400)]}
    )
    return Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(frame, schema).release_


def test_schemas_have_a_view(release: Release) -> None:
    text = check_view(release.schema)
    assert "<script>alert('x')</script>&" in text
    assert "min: 0, max: 99" in text
    assert "… (21 in all)" in text
    draft = Schema.from_dict({**release.schema.to_dict(), "reviewed": False})
    assert "NOT PRIVATE until it is reviewed" in check_view(draft)


def test_releases_and_certificates_have_a_view(release: Release) -> None:
    for text in (check_view(release), check_view(release.certificate)):
        assert "differential privacy" in text
        assert f"one {HOSTILE[:-5]}" in text
    assert "independent" in check_view(release)
    assert "nobody" in check_view(release)


def test_reports_have_a_view(release: Release) -> None:
    frame = pd.DataFrame(
        {HOSTILE: range(400), f"{HOSTILE} 2": ["1", "2"] * 200, "age": [age % 100 for age in range(400)]}
    )
    report = sundog.evaluate(release, real=frame)
    text = check_view(report)
    assert "".join(c if c.isprintable() else "�" for c in report.headline) in text
    assert "not for publication" in text
    assert f"{report.measures['fidelity.tvd_1way'].value:.4f}" in text
