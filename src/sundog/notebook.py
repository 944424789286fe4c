"""HTML fragments that objects show in notebooks: without scripts, and everything that comes from data is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from sundog.untrusted_text import replace_unprintable

_LONGEST = 200  # characters of one cell
_CELL = "text-align:left;padding:0 1em 0 0;vertical-align:top"


def build_fragment(title: str, *parts: str) -> str:
    """Return a title followed by parts that the other functions have built.

    >>> build_fragment("<b>", build_paragraph("a & b"))
    '<div><strong>&lt;b&gt;</strong><p>a &amp; b</p></div>'
    """
    return f"<div><strong>{escape_text(title)}</strong>{''.join(parts)}</div>"


def build_table(rows: Iterable[Sequence[object]], head: Sequence[object] = ()) -> str:
    """Return a table; the first cell of each row is its header."""
    lines = [_build_row(row, "th", "td") for row in rows]
    top = f"<thead>{_build_row(head, 'th', 'th')}</thead>" if head else ""
    return f"<table>{top}<tbody>{''.join(lines)}</tbody></table>"


def build_paragraph(text: str) -> str:
    """Return the text as a paragraph."""
    return f"<p>{escape_text(text, None)}</p>"


def build_preformatted(text: str) -> str:
    """Return the lines as preformatted text."""
    return f"<pre>{''.join(escape_text(line, None) + chr(10) for line in text.splitlines())}</pre>"


def escape_text(value: object, longest: int | None = _LONGEST) -> str:
    """Return a value as text that is safe in HTML, shortened to `longest` characters."""
    text = "" if value is None else str(value)
    text = text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…"
    return html.escape(replace_unprintable(text))


def _build_row(cells: Sequence[object], first: str, other: str) -> str:
    kinds = [first, *[other] * (len(cells) - 1)]
    marked = (f'<{kind} style="{_CELL}">{escape_text(cell)}</{kind}>' for kind, cell in zip(kinds, cells, strict=True))
    return f"<tr>{''.join(marked)}</tr>"
