"""Figures as SVG inside a page."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from tests.evaluation.report.page_parser import PageParser, make_picture

from sundog.evaluation.report import svg


def test_text_on_an_image_keeps_its_colour() -> None:
    def draw(figure: Figure) -> None:
        on_image, on_mesh, on_glass, beside = figure.subplots(1, 4)
        on_image.imshow(np.eye(2))
        on_mesh.pcolormesh(np.eye(2))
        on_glass.imshow(np.eye(2), cmap=LinearSegmentedColormap.from_list("", ["#2a9d8f00", "#2a9d8f"]))
        for axes, said in ((on_image, "on"), (on_mesh, "mesh"), (on_glass, "glass"), (beside, "beside")):
            axes.text(0, 0, said)

    text = svg.render_picture(make_picture(draw), "a-")
    kept = {said for said in ("on", "mesh", "glass", "beside") if re.search(rf"<text[^>]*#010101[^>]*>{said}<", text)}
    assert kept == {"on", "mesh"}
    assert {"glass", "beside"} <= set(PageParser(text).find_texts("text"))


def test_the_font_is_the_page_s() -> None:
    text = svg.render_picture(make_picture(lambda figure: figure.subplots().set_xlabel("x", fontweight="bold")), "a-")
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

    seen = PageParser(svg.render_picture(make_picture(draw), "a-"))
    assert r"$\frac{$" in seen.find_texts("text")
    assert {"1", "10", "100", "1000"} <= set(seen.find_texts("text"))
    assert not any("mathdefault" in text for text in seen.find_texts("text"))


def test_a_large_drawing_becomes_an_image_and_its_text_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.scatter(np.arange(500), np.arange(500) % 7)
        axes.set_xlabel("many points")

    small = svg.render_picture(make_picture(draw), "a-")
    monkeypatch.setattr(svg, "LARGEST", 10_000)
    large = svg.render_picture(make_picture(draw), "a-")
    assert "data:image/png" not in small
    assert "data:image/png" in large
    assert len(large) < len(small)
    assert large.count("<use") < 30 < small.count("<use")
    assert "many points" in PageParser(large).find_texts("text")
