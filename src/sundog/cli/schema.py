"""Draft a schema from data. It is NOT PRIVATE until it has been reviewed.

Example: sundog schema visits.csv -o visits.schema.yaml
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, say, show_progress
from sundog.cli.streams import STDIN, STDOUT, Format, resolve_sources


def run(
    data: Annotated[
        str,
        typer.Argument(
            help="The data: csv, JSON lines, parquet, Arrow, xlsx, npz, idx or transactions; a database URL; - for "
            "stdin."
        ),
    ],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write it; stdout (-) by default.")] = None,
    format_: Format = None,
    suggest_rules: Annotated[
        bool, typer.Option("--suggest-rules", help="Look for rules between columns, too: sums, a <= b, … .")
    ] = False,
) -> None:
    """Draft a schema."""
    from sundog.data.reading.database import hide_password, hide_secrets, is_url
    from sundog.data.schema import Schema
    from sundog.files import refuse_output

    out = None if str(out) == STDOUT else out
    refuse_output(out, {"data": data}, fix="a draft does not replace what may have been reviewed; delete it first")
    with show_progress() as report:
        report("reading", 0.0)
        draft = Schema.draft(resolve_sources(format_, data=data)["data"], suggest_rules=suggest_rules)
    if out is None:
        say(draft.to_yaml().rstrip())
        return
    draft.save(out)
    note(f"{out}: drafted from the data, and NOT PRIVATE: look through it, then set `reviewed: true`")
    source, name = (hide_password(data), hide_secrets(data)) if is_url(data) else (data, data)
    release = "stdin" if data == STDIN else Path(name).name.partition(".")[0]
    piped = [] if format_ is None else ["--format", format_]
    command = ["sundog", "fit", source, *piped, "--schema", str(out), "--epsilon", "1", "-o", f"{release}.sundog"]
    note(f"next: {shlex.join(command)}")
