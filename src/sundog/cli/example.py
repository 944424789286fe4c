"""Write an example to try the other commands on: 10,000 census records (UCI Adult) and their schema.

Example: sundog example
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, say


def run(
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write to.")] = Path(),
) -> None:
    """Write the example table and its schema."""
    from sundog.demo.example import write_example
    from sundog.files import refuse_stdout

    refuse_stdout(out, "folder")
    table, schema = write_example(out)
    say(f"{table} and {schema}: 10,000 records of the 1994 US census, and what is publicly known about them")
    note(f"next: sundog fit {table} --schema {schema} --epsilon 1 -o {table.with_name('adult.sundog')}")
