"""Evaluate several releases of the same data side by side: budgets, models, tools.

Example: sundog compare a.sundog b.sundog --real adult.csv.gz --holdout test.csv.gz --target income -o compare.html
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sundog.cli.console import note, progress, say, say_json
from sundog.cli.evaluate import PRIVATE, spelled

if TYPE_CHECKING:
    from sundog.evaluation.evaluator import Report


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
    from sundog.evaluation.report.markup import is_report
    from sundog.evaluation.side_by_side import compare
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
    _tell(found.reports)
    note(PRIVATE)
    if out is not None:
        note(f"{out}: the whole comparison")


def _tell(reports: Sequence[Report]) -> None:
    """The headline of each, and the figures that they are about in a table."""
    from sundog.evaluation.report.headline import list_main_measures
    from sundog.evaluation.side_by_side import DIFFERENT

    for report in reports:
        say(f"{report.name}: {report.headline}")
    stands = [(report.name, report.measures) for report in reports]
    for report in {id(report.bounds): report for report in reports}.values():  # different schemas have their own
        shared = all(each.bounds is report.bounds for each in reports)
        titles = ("other real records", "independent columns") if shared else ("real", "independent")
        apart = "" if shared else f", {report.name}"
        stands += [(f"{titles[0]}{apart}", report.ceiling), (f"{titles[1]}{apart}", report.floor)]
    names = dict.fromkeys(name for report in reports for name in list_main_measures(report.sections))
    say(f"  {'':34}" + "".join(f" {title:>27.27}" for title, _ in stands))
    for name in names:
        say(f"  {name:34}" + "".join(f" {spelled(measures.get(name)):>27}" for _, measures in stands))
    for remark in dict.fromkeys(remark for report in reports for remark in report.notes if remark == DIFFERENT):
        note(remark)
