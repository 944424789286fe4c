"""Untrusted text, such as the name of a column or of a file, made safe to show on a terminal."""

from __future__ import annotations


def escape_unprintable(text: str) -> str:
    r"""Write what could move a cursor or forge a line as escapes: for messages, which should tell what was there.

    >>> print(escape_unprintable("age\x1b[2J"))
    age\x1b[2J
    """
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def replace_unprintable(text: str) -> str:
    r"""Replace each character that could move a cursor or forge a line by �: for text that is kept, or shown in tables.

    >>> replace_unprintable("age\x1b[2J")
    'age�[2J'
    """
    if text.isprintable():  # by far the fastest
        return text
    return "".join(character if character.isprintable() else "�" for character in text)


def to_one_line(text: str) -> str:
    r"""Return the text as one printable line, with single spaces.

    >>> to_one_line("range of\n age")
    'range of age'
    """
    return replace_unprintable(" ".join(text.split()))
