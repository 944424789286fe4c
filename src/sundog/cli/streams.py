"""Data from stdin and to stdout, both written as `-`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sundog.data.reading.source import PipedInput

STDIN = STDOUT = "-"
WRITTEN = ("csv", "tsv", "jsonl", "parquet", "npz")
READ = (*WRITTEN, "arrow", "xlsx")

_HELP = "The format of a pipe (-): csv by default, or"

Format = Annotated[str | None, typer.Option("--format", help=f"{_HELP} {', '.join(READ[1:])}.")]
FormatWritten = Annotated[str | None, typer.Option("--format", help=f"{_HELP} {', '.join(WRITTEN[1:])}.")]


def choose_format(asked: str | None, *, piped: bool, known: Sequence[str]) -> str:
    """Return the format of a pipe; a file has the format of its name."""
    from sundog.data.validation_errors import suggest
    from sundog.errors import ArgumentError

    if asked is not None and not piped:
        raise ArgumentError("--format is for a pipe (-); the file extension gives the format")
    if asked is not None and asked not in known:
        raise ArgumentError(f"--format {asked!r}: cannot be used here; {suggest(asked, known)}")
    return asked or known[0]


def resolve_sources(format_: str | None, **given: str | None) -> dict[str, str | PipedInput | None]:
    """Return the sources by name, with the content of stdin for `-`; raise if several are `-`."""
    from sundog.data.reading.source import PipedInput
    from sundog.errors import ArgumentError

    piped = [name for name, source in given.items() if source == STDIN]
    if len(piped) > 1:
        raise ArgumentError(f"{' and '.join(piped)} cannot both come from stdin (-); give one of them as a file")
    kind = choose_format(format_, piped=bool(piped), known=READ)
    return {
        name: PipedInput(f"stdin.{kind}", sys.stdin.buffer.read()) if source == STDIN else source
        for name, source in given.items()
    }
