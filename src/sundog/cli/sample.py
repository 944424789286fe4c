"""Draw synthetic records from a release.

Example: sundog sample adult.sundog -n 10000 --where "sex=Female" --seed 7 -o women.csv

A picture: sundog sample digits.sundog -o digits.png

A pipe: sundog sample adult.sundog -n 1000 --where "age>=40" --where "sex in Male,Female" -o - | head
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, say, say_json, show_progress
from sundog.cli.streams import STDOUT, WRITTEN, FormatWritten, choose_format


def run(
    release: Annotated[Path, typer.Argument(help="The .sundog file.")],
    out: Annotated[
        Path,
        typer.Option("-o", "--out", help="A .csv, .csv.gz, .jsonl, .parquet or .npz file; or .png; - for stdout."),
    ],
    n: Annotated[
        int | None,
        typer.Option("-n", min=0, help="How many; by default about as many as in the original, or 100 in a picture."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help='A condition: "sex=Female", "age>=40", "job in cook,nurse"; may be repeated.'),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed and -n give the same records.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file, if there is one.")] = False,
    format_: FormatWritten = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Sample into a file."""
    from sundog.data.writing.write import Stream
    from sundog.errors import ArgumentError
    from sundog.files import refuse_output
    from sundog.release.release import Release

    piped = str(out) == STDOUT
    if piped and as_json:
        raise ArgumentError("--json prints to stdout, where the records go; leave it out, or write them to a file")
    if not piped:
        refuse_output(out, {"release": release}, replaces=lambda _: force, fix="choose another name, or add --force")
    kind = choose_format(format_, piped=piped, known=WRITTEN)
    with show_progress() as report:
        report("sampling", 0.0)
        loaded = Release.load(release)
        target = Stream(sys.stdout.buffer, kind) if piped else out
        written = loaded.write(target, n, seed=seed, where=where, progress=report)
    if as_json:
        say_json({"file": str(out), "records": written})
    elif piped:
        note(f"{written:,} synthetic records")
    else:
        say(f"{out}: {written:,} synthetic records")
