"""A parser that reads a page as a browser would, and a picture to put on one."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser

from matplotlib.figure import Figure

from sundog.evaluation.section import Picture


class PageParser(HTMLParser):
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

    def find_elements(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for each, attributes in self.elements if each == name]

    def find_texts(self, name: str) -> list[str]:
        return [text for each, text in self.texts if each == name]


def make_picture(draw: Callable[[Figure], object], title: str = "t") -> Picture:
    def draw_figure() -> Figure:
        figure = Figure(figsize=(3, 2), layout="constrained")
        draw(figure)
        return figure

    return Picture(title, "c", draw_figure)
