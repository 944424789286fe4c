"""What notebooks show: every name may come from a stranger."""

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
    """The tags of a page, and whether they close."""

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


def shown(thing: Any) -> str:
    """The text of what a notebook shows, once it was found harmless."""
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


def test_schemas(release: Release) -> None:
    text = shown(release.schema)
    assert "<script>alert('x')</script>&" in text
    assert "min: 0, max: 99" in text
    assert "… (21 in all)" in text
    draft = Schema.from_dict({**release.schema.to_dict(), "reviewed": False})
    assert "NOT PRIVATE until it is reviewed" in shown(draft)


def test_releases_and_certificates(release: Release) -> None:
    for text in (shown(release), shown(release.certificate)):
        assert "differential privacy" in text
        assert f"one {HOSTILE[:-5]}" in text
    assert "independent" in shown(release)
    assert "nobody" in shown(release)


def test_reports(release: Release) -> None:
    frame = pd.DataFrame(
        {HOSTILE: range(400), f"{HOSTILE} 2": ["1", "2"] * 200, "age": [age % 100 for age in range(400)]}
    )
    report = sundog.evaluate(release, real=frame)
    text = shown(report)
    assert "".join(c if c.isprintable() else "�" for c in report.headline) in text
    assert "not for publication" in text
    assert f"{report.measures['fidelity.tvd_1way'].value:.4f}" in text
