"""What notebooks show: small pieces of HTML without scripts, in which everything that comes from data is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from sundog.untrusted_text import replace_unprintable

_LONGEST = 200  # characters of one cell
_CELL = "text-align:left;padding:0 1em 0 0;vertical-align:top"


def show(title: str, *parts: str) -> str:
    """Return a titled piece of what `table`, `paragraph` and `preformatted` give.

    >>> show("<b>", paragraph("a & b"))
    '<div><strong>&lt;b&gt;</strong><p>a &amp; b</p></div>'
    """
    return f"<div><strong>{escape(title)}</strong>{''.join(parts)}</div>"


def table(rows: Iterable[Sequence[object]], head: Sequence[object] = ()) -> str:
    """Rows of cells; the first of each row is its name."""
    lines = [_row(row, "th", "td") for row in rows]
    top = f"<thead>{_row(head, 'th', 'th')}</thead>" if head else ""
    return f"<table>{top}<tbody>{''.join(lines)}</tbody></table>"


def paragraph(text: str) -> str:
    """Return the text as a paragraph of HTML."""
    return f"<p>{escape(text, None)}</p>"


def preformatted(text: str) -> str:
    """Return the lines as preformatted HTML."""
    return f"<pre>{''.join(escape(line, None) + chr(10) for line in text.splitlines())}</pre>"


def escape(value: object, longest: int | None = _LONGEST) -> str:
    """Return a value as text that is safe in HTML, shortened to `longest` characters."""
    text = "" if value is None else str(value)
    text = text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…"
    return html.escape(replace_unprintable(text))


def _row(cells: Sequence[object], first: str, other: str) -> str:
    kinds = [first, *[other] * (len(cells) - 1)]
    marked = (f'<{kind} style="{_CELL}">{escape(cell)}</{kind}>' for kind, cell in zip(kinds, cells, strict=True))
    return f"<tr>{''.join(marked)}</tr>"
