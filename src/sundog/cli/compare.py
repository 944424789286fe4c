"""Evaluate several releases of the same data side by side: budgets, models, tools.

Example: sundog compare a.sundog b.sundog --real adult.csv.gz --holdout adult_holdout.csv.gz -o compare.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli import evaluate
from sundog.cli.console import note, show_progress


def run(
    synthetic: Annotated[list[str], typer.Argument(help="Two or more .sundog files, or synthetic records.")],
    real: Annotated[str, typer.Option(help="The real data: a file or a database URL.")],
    holdout: Annotated[str | None, typer.Option(help="Real data that no release was fitted on.")] = None,
    target: evaluate.Target = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The page to write: one .html file.")] = None,
    schema: Annotated[Path | None, typer.Option(help="The schema of the data, where none of it is a release.")] = None,
    labels: evaluate.LabelsFile = None,
    holdout_labels: evaluate.HoldoutLabelsFile = None,
    rows: evaluate.Rows = 100_000,
    seed: evaluate.Seed = 0,
    as_json: evaluate.AsJson = False,
) -> None:
    """Compare, and write the page."""
    from sundog.data.schema import Schema
    from sundog.evaluation.side_by_side import DIFFERENT, compare

    inputs = {"real data": real, "holdout": holdout, "schema": schema, "labels": labels}
    inputs |= {"holdout labels": holdout_labels, **{f"release {path}": path for path in synthetic}}
    evaluate.refuse_page(out, inputs)
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
        evaluate.write_page(found, out, report_progress)
    evaluate.show_figures(found, as_json)
    if as_json:
        return
    if any(DIFFERENT in report.notes for report in found.reports):
        note(DIFFERENT)
    if out is not None:
        note(f"{out}: the whole comparison")
