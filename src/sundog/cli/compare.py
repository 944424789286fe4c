"""Evaluate several releases of the same data side by side: budgets, models, tools.

Example: sundog compare a.sundog b.sundog --real adult.csv.gz --holdout test.csv.gz --target income -o compare.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, progress, say, say_json
from sundog.cli.evaluate import PRIVATE, spelled


def run(
    synthetic: Annotated[list[str], typer.Argument(help="Two or more .sundog files, or synthetic records.")],
    real: Annotated[str, typer.Option(help="The real data: a file or a database URL.")],
    holdout: Annotated[str | None, typer.Option(help="Real data that no release has learned from.")] = None,
    target: Annotated[str | None, typer.Option(help="The column that people want to predict.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The page to write: one .html file.")] = None,
    schema: Annotated[Path | None, typer.Option(help="What is declared, where none of them is a release.")] = None,
    labels: Annotated[str | None, typer.Option(help="Class labels of the real data, in a file of their own.")] = None,
    holdout_labels: Annotated[str | None, typer.Option(help="Those of the data that was held out.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="Of more records than this, so many are chosen.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Compares, and writes the page."""
    from sundog.data.schema import Schema
    from sundog.evaluate.compare import compare
    from sundog.evaluate.report.markup import is_page
    from sundog.files import refuse_output

    inputs = {
        "real data": real,
        "holdout": holdout,
        "schema": schema,
        "labels": labels,
        "holdout labels": holdout_labels,
        **{f"release {path}": path for path in synthetic},
    }
    refuse_output(out, inputs, replaces=is_page, fix="it is not a report of sundog; choose another name")
    with progress() as report_progress:
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
    names = [name for name in found.reports[0].measures if all(name in report.measures for report in found.reports)]
    say(" " * 40 + "".join(f"  {report.name:>26.26}" for report in found.reports))
    for name in names:
        say(f"{name:40}" + "".join(f"  {spelled(report.measures[name]):>26}" for report in found.reports))
    note(PRIVATE)
    if out is not None:
        note(f"{out}: the whole comparison")
