"""Evaluate a release, or any synthetic data, against the real data.

The figures are as private as the real data; only those measured with --publish may be shared.

Example: sundog evaluate adult.sundog --real adult.csv.gz --holdout test.csv.gz --target income -o report.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sundog.cli.console import note, say, say_json, show_progress
from sundog.cli.streams import Format, resolve_sources


def run(
    synthetic: Annotated[str, typer.Argument(help="A .sundog file, or synthetic records of any tool.")],
    real: Annotated[str, typer.Option(help="The real data: a file, a database URL, or - for stdin.")],
    holdout: Annotated[str | None, typer.Option(help="Real data that the release was not fitted on.")] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The report to write: one .html file.")] = None,
    schema: Annotated[Path | None, typer.Option(help="The schema of data that is not a release.")] = None,
    format_: Format = None,
    labels: Annotated[str | None, typer.Option(help="Class labels of the real data, in a file of their own.")] = None,
    holdout_labels: Annotated[str | None, typer.Option(help="Class labels of the held-out data.")] = None,
    n: Annotated[
        int | None, typer.Option("-n", min=1, help="How many records to draw; by default as many as it was fitted on.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="The most records of each kind to use.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")] = 0,
    publish: Annotated[float | None, typer.Option(help="The ε to spend on figures that may be published.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger of the real data to charge.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Evaluate, and write the report."""
    from sundog.data.schema import Schema
    from sundog.evaluation.evaluator import evaluate
    from sundog.evaluation.report.markup import is_report
    from sundog.evaluation.report.text_table import format_measure
    from sundog.files import refuse_output

    inputs = {
        "synthetic data": synthetic,
        "real data": real,
        "holdout": holdout,
        "schema": schema,
        "labels": labels,
        "holdout labels": holdout_labels,
        "ledger": ledger,
    }
    refuse_output(out, inputs, replaces=is_report, fix="it is not a report of sundog; choose another name")
    with show_progress() as report_progress:
        read = resolve_sources(format_, synthetic=synthetic, real=real, holdout=holdout)
        report = evaluate(
            read["synthetic"],
            real=read["real"],
            holdout=read["holdout"],
            target=target,
            schema=None if schema is None else Schema.load(schema),
            labels=labels,
            holdout_labels=holdout_labels,
            n=n,
            rows=rows,
            seed=seed,
            publish=publish,
            ledger=ledger,
            progress=report_progress,
        )
        if report.published:  # paid for: shown even if writing the report fails
            note(f"may be published (ε = {publish:g} of {ledger}):")
            for name, measure in report.published.items():
                note(f"  {name:34} {format_measure(measure)}")
        if out is not None:
            report_progress("drawing", 1.0)
            report.to_html(out)
    if as_json:
        say_json(report.to_dict())
        return
    say(report.to_text())
    note(PRIVATE)
    if out is not None:
        note(f"{out}: the whole report")


PRIVATE = (
    "these figures were measured on private records without a budget: as private as the records, not for publication"
)
