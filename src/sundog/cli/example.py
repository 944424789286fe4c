"""Write an example to try the other commands on: census records (UCI Adult), some held out, and their schema.

Example: sundog example
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, say


def run(
    out: Annotated[Path, typer.Option("-o", "--out", help="The folder to write to.")] = Path(),
) -> None:
    """Write the example table, the held-out records and their schema."""
    from sundog.demo.example import write_example
    from sundog.files import refuse_stdout

    refuse_stdout(out, "folder")
    table, holdout, schema = write_example(out)
    say(f"{table} and {schema}: 10,000 records of the 1994 US census, and what is publicly known about them")
    say(f"{holdout}: 5,000 other records of that census, to evaluate and audit with")
    release, page = (str(table.with_name(name)) for name in ("adult.sundog", "audit.html"))
    fit = ["sundog", "fit", str(table), "--schema", str(schema), "--epsilon", "1", "-o", release]
    real = ["--members", str(table), "--nonmembers", str(holdout)]
    note(f"next: {shlex.join(fit)}")
    note(f"then: {shlex.join(['sundog', 'audit', release, *real, '--quick', '-o', page])}")
