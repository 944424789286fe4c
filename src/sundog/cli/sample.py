"""Draw synthetic records from a release.

Example: sundog sample adult.sundog -n 10000 --where "sex=Female" --seed 7 -o women.csv
         sundog sample digits.sundog -o digits.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import progress, say, say_json


def run(
    release: Annotated[Path, typer.Argument(help="The .sundog file.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="A .csv, .csv.gz, .parquet or .npz file; or .png.")],
    n: Annotated[
        int | None,
        typer.Option("-n", min=0, help="How many; about as many as there were, by default, and 100 in a picture."),
    ] = None,
    where: Annotated[list[str] | None, typer.Option(help='A condition, as "column=value"; may be repeated.')] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed and -n give the same records.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Samples into a file."""
    from sundog.release.release import Release

    conditions = _conditions(where or [])
    with progress() as report:
        report("sampling", 0.0)
        written = Release.load(release).write(out, n, seed=seed, where=conditions, progress=report)
    if as_json:
        say_json({"file": str(out), "records": written})
    else:
        say(f"{out}: {written:,} synthetic records")


def _conditions(pairs: list[str]) -> dict[str, str]:
    from sundog.errors import DataError

    conditions: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not name or not equals:
            raise DataError(f"--where {pair!r}: write it as column=value")
        if name in conditions:
            raise DataError(f"--where names column {name!r} twice; keep one of them")
        conditions[name] = value
    return conditions
