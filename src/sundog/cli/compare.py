"""Evaluate several releases of the same data side by side: budgets, models, tools.

Example: sundog compare a.sundog b.sundog --real adult.csv.gz --holdout test.csv.gz --target income -o compare.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, say, say_json, show_progress
from sundog.cli.evaluate import PRIVATE


def run(
    synthetic: Annotated[list[str], typer.Argument(help="Two or more .sundog files, or synthetic records.")],
    real: Annotated[str, typer.Option(help="The real data: a file or a database URL.")],
    holdout: Annotated[str | None, typer.Option(help="Real data that no release was fitted on.")] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The page to write: one .html file.")] = None,
    schema: Annotated[Path | None, typer.Option(help="The schema of the data, where none of it is a release.")] = None,
    labels: Annotated[str | None, typer.Option(help="Class labels of the real data, in a file of their own.")] = None,
    holdout_labels: Annotated[str | None, typer.Option(help="Class labels of the held-out data.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="The most records of each kind to use.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Compare, and write the page."""
    from sundog.data.schema import Schema
    from sundog.evaluation.report.markup import is_report
    from sundog.evaluation.side_by_side import DIFFERENT, compare
    from sundog.files import refuse_output

    inputs = {
        "real data": real,
        "holdout": holdout,
        "schema": schema,
        "labels": labels,
        "holdout labels": holdout_labels,
        **{f"release {path}": path for path in synthetic},
    }
    refuse_output(out, inputs, replaces=is_report, fix="it is not a report of sundog; choose another name")
    with show_progress() as report_progress:
        found = compare(
            synthetic,
            real=real,
            holdout=holdout,
            target=target,
            schema=None if schema is None else Schema.load(schema),
            labels=labels,
            holdout_labels=holdout_labels,
            rows=rows,
            seed=seed,
            progress=report_progress,
        )
        if out is not None:
            report_progress("drawing", 1.0)
            found.to_html(out)
    if as_json:
        say_json(found.to_dict())
        return
    say(found.to_text())
    if any(DIFFERENT in report.notes for report in found.reports):
        note(DIFFERENT)
    note(PRIVATE)
    if out is not None:
        note(f"{out}: the whole comparison")
