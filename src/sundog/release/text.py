"""Text that strangers wrote and terminals show."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field


def _is_printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds what cannot be printed")
    return text


Text = Annotated[str, Field(max_length=100_000), AfterValidator(_is_printable)]
