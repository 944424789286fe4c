"""Draft a schema from data. It is NOT PRIVATE until somebody has reviewed it.

Example: sundog schema visits.csv -o visits.schema.yaml
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, progress, say


def run(
    data: Annotated[Path, typer.Argument(help="The data: csv, parquet, Arrow, npz, idx or transactions.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write it; stdout by default.")] = None,
) -> None:
    """Drafts a schema."""
    from sundog.data.schema import Schema
    from sundog.files import refuse_output

    refuse_output(out, {"data": data}, fix="a draft does not replace what may have been reviewed; delete it first")
    with progress() as report:
        report("reading", 0.0)
        draft = Schema.draft(data)
    if out is None:
        say(draft.to_yaml().rstrip())
        return
    draft.save(out)
    note(f"{out}: drafted from the data, and NOT PRIVATE: look through it, then set `reviewed: true`")
    note(f"next: sundog fit {data} --schema {out} --epsilon 1 -o {Path(data.name.partition('.')[0])}.sundog")
