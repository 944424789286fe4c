"""Printable text: the type of untrusted text in a certificate, which is shown on a terminal."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field


def _refuse_unprintable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("contains characters that cannot be printed")
    return text


Text = Annotated[str, Field(max_length=100_000), AfterValidator(_refuse_unprintable)]
