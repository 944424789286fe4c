"""HTML by function calls. Text is escaped unless it is `Html`, so data cannot inject markup."""

from __future__ import annotations

import html
import re
from importlib import resources
from pathlib import Path

_VOID = frozenset({"meta", "img", "br"})
_UNPRINTABLE = re.compile(r"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GENERATOR, _HEAD = '<meta name="generator" content="sundog">', 2048  # how far from the start to search for it
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


Child = str | int | float | None
Attribute = str | int | float | bool | None


def escape(value: Child) -> Html:
    """Return a value as HTML text; markup is unchanged, None becomes empty.

    >>> escape("a < b"), escape(Html("<b>a</b>"))
    ('a &lt; b', '<b>a</b>')
    """
    if isinstance(value, Html):
        return value
    return Html("" if value is None else html.escape(replace_control_characters(str(value))))


def replace_control_characters(value: str) -> str:
    """Replace control characters, which parsers may reject."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value)


def tag(name: str, *children: Child, **attributes: Attribute) -> Html:
    """Return an element. A trailing underscore of attribute names is dropped; attributes without a value are omitted.

    >>> tag("p", "a & b", tag("br"), class_="note", aria_hidden="true", title=None)
    '<p class="note" aria-hidden="true">a &amp; b<br></p>'
    """
    written = "".join(_format_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Child) -> Html:
    """Concatenate text and markup."""
    return Html("".join(map(escape, children)))


def build_document(title: str, *body: Html, private: bool) -> str:
    """Return a whole page whose content policy forbids scripts and every external address."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("meta", name_="robots", content="noindex"),
        Html(_GENERATOR),
        tag("title", title),
        tag("style", Html(resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8"))),
    )
    return (
        f"<!doctype html>\n{tag('html', head, tag('body', *body, class_='private' if private else None), lang='en')}\n"
    )


def is_report(path: Path) -> bool:
    """Return whether a file is a report page of sundog."""
    try:
        with path.open("rb") as file:
            return _GENERATOR.encode() in file.read(_HEAD)
    except OSError:
        return False


def _format_attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(replace_control_characters(str(value)))}"'
