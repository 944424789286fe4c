"""Figures as SVG inside a page, with the page's colour and font, and unique ids."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sundog.evaluation.report.markup import Html, replace_control_characters, tag
from sundog.evaluation.report.plot_style import use_page_style
from sundog.evaluation.section import Listing, Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 1_000_000
"""The data of a drawing with more characters is rasterized; text and axes stay vectors."""

_DPI = 200  # of rasterized data: twice the resolution of a page
_PX = 4 / 3  # pixels per point
_TAG = re.compile(r"<[^>]*>")
_BLACK, _NEARLY_BLACK = "#000000", "#010101"


def render_gallery(pictures: Sequence[Picture], prefix: str, listings: Sequence[Listing] = ()) -> Html:
    """Render all pictures and listings with titles and captions; `prefix` makes ids unique in the page."""
    shown = [_render_figure(picture, f"{prefix}-{place}-") for place, picture in enumerate(pictures)]
    shown += map(_render_listing, listings)
    return tag("div", *shown, class_="pictures") if shown else Html()


def _render_figure(picture: Picture, prefix: str) -> Html:
    return tag(
        "figure",
        tag("h3", picture.title),
        tag("div", render_picture(picture, prefix), class_="canvas", tabindex=0 if picture.wide else None),
        tag("figcaption", picture.caption),
        class_="wide" if picture.wide else None,
    )


def _render_listing(listing: Listing) -> Html:
    heads = [tag("th", head, scope="col") if head else tag("td") for head in listing.heads]
    rows = [
        tag("tr", *(tag("th", text, scope="row") if place == 1 else tag("td", text) for place, text in enumerate(row)))
        for row in listing.rows
    ]
    caption = tag("caption", listing.title, class_="unseen")
    table = tag("table", caption, tag("thead", tag("tr", *heads)), tag("tbody", *rows)) if rows else None
    return tag("figure", tag("h3", listing.title), table, tag("figcaption", listing.caption), class_="listing")


def render_picture(picture: Picture, prefix: str) -> Html:
    """Render a picture as an element of a page, deterministically."""
    with use_page_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the page's font has it
        figure = picture.draw()
        _use_plain_log_labels(figure)
        _keep_ink_on_images(figure)
        _lay_out(figure)
        svg = _save_svg(figure)
        if len(svg) > LARGEST:
            _rasterize_data(figure)
            svg = _save_svg(figure)
    return _embed_svg(svg, prefix, f"{picture.title}. {picture.caption}")


def _lay_out(figure: Figure) -> None:
    """Lay out the figure once: saving would repeat it, which takes longer than the rest."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")


def _save_svg(figure: Figure) -> str:
    file = io.StringIO()
    frame: Any = {"bbox_inches": "tight", "pad_inches": 0.04}  # so that nothing is cut off
    figure.savefig(file, format="svg", transparent=True, dpi=_DPI, metadata={"Date": None}, **frame)
    return replace_control_characters(file.getvalue())


def _use_plain_log_labels(figure: Figure) -> None:
    """Use labels such as 0.01 on logarithmic axes, as matplotlib's math text is switched off."""
    from matplotlib.ticker import Formatter, LogFormatterMathtext

    class Plain(Formatter):
        def __init__(self, original: Formatter) -> None:
            self.original = original

        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:g}" if self.original(x, pos) else ""

        def set_locs(self, locs: Any) -> None:
            self.original.set_locs(locs)

    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        if isinstance(axis.get_major_formatter(), LogFormatterMathtext):
            axis.set_major_formatter(Plain(axis.get_major_formatter()))
        if isinstance(axis.get_minor_formatter(), LogFormatterMathtext):
            axis.set_minor_formatter(Plain(axis.get_minor_formatter()))


def _keep_ink_on_images(figure: Figure) -> None:
    """Keep black text on opaque images black on dark pages."""
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import to_hex

    for axes in figure.axes:
        images = [*axes.images, *(each for each in axes.collections if isinstance(each, QuadMesh))]
        if images and all(image.cmap([0.0, 1.0])[:, 3].min() == 1 for image in images):
            for text in axes.texts:
                if to_hex(text.get_color()) == _BLACK:
                    text.set_color(_NEARLY_BLACK)


def _rasterize_data(figure: Figure) -> None:
    for axes in figure.axes:
        for artist in (*axes.collections, *axes.lines, *axes.patches):
            artist.set_rasterized(True)


def _embed_svg(svg: str, prefix: str, label: str) -> Html:
    """Return matplotlib's SVG as part of a page.

    Its text is escaped, so everything between < and > is a tag. Ids that are referenced get the prefix, others are
    removed; black becomes the page's text colour; the page's style replaces that of the figure.
    """
    referred = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))

    def adapt(found: re.Match[str]) -> str:
        piece = found[0].replace(_BLACK, "currentColor")
        piece = re.sub(r' id="([^"]*)"', lambda name: f' id="{prefix}{name[1]}"' if name[1] in referred else "", piece)
        piece = re.sub(r'(url\(#|href="#)', rf"\g<1>{prefix}", piece)
        return re.sub(r"'DejaVu Sans'[^;\"]*", "var(--sans)", piece)

    root = re.search(r"<svg[^>]*>", svg)
    size = root and re.search(r'width="([\d.]+)pt" height="([\d.]+)pt" viewBox="([^"]+)"', root[0])
    if root is None or size is None:  # pragma: no cover  another matplotlib
        raise ValueError("matplotlib wrote an SVG of an unknown form")
    inner = svg[root.end() : svg.rindex("</svg>")]
    inner = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", inner, flags=re.DOTALL)
    inner = re.sub(r">\s+<", "><", _TAG.sub(adapt, inner)).strip()
    width, height = (round(float(side) * _PX) for side in size.groups()[:2])
    return tag("svg", Html(inner), viewBox=size[3], width=width, height=height, role="img", aria_label=label)
