"""Evaluate a release, or any synthetic data, against the real data.

The figures are as private as the real data; only those measured with --publish may be shared.

Example: sundog evaluate adult.sundog --real adult.csv.gz --holdout adult_holdout.csv.gz --target income -o report.html
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sundog.cli.console import note, say, say_json, show_progress
from sundog.cli.streams import Format, resolve_sources
from sundog.errors import ArgumentError

if TYPE_CHECKING:
    from sundog.auditing.audit_result import Audit
    from sundog.evaluation.evaluator import Report
    from sundog.evaluation.measure import Measures
    from sundog.evaluation.side_by_side import SideBySide
    from sundog.progress import Progress

PRIVATE = (
    "these figures were measured on private records without a budget: as private as the records, not for publication"
)

Target = Annotated[str | None, typer.Option(help="The column to predict.")]
LabelsFile = Annotated[str | None, typer.Option(help="Class labels of the real data, in a file of their own.")]
HoldoutLabelsFile = Annotated[str | None, typer.Option(help="Class labels of the held-out data.")]
Rows = Annotated[int, typer.Option(min=1, help="The most records of each kind to use.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")]
Drawn = Annotated[
    int | None, typer.Option("-n", min=1, help="How many records to draw; by default as many as it was fitted on.")
]


def run(
    synthetic: Annotated[str, typer.Argument(help="A .sundog file, or synthetic records of any tool.")],
    real: Annotated[str, typer.Option(help="The real data: a file, a database URL, or - for stdin.")],
    holdout: Annotated[str | None, typer.Option(help="Real data that the release was not fitted on.")] = None,
    target: Target = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The report to write: one .html file.")] = None,
    schema: Annotated[Path | None, typer.Option(help="The schema of data that is not a release.")] = None,
    format_: Format = None,
    labels: LabelsFile = None,
    holdout_labels: HoldoutLabelsFile = None,
    n: Drawn = None,
    rows: Rows = 100_000,
    seed: Seed = 0,
    publish: Annotated[float | None, typer.Option(help="The ε to spend on figures that may be published.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger of the real data to charge.")] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate, and write the report."""
    from sundog.data.schema import Schema
    from sundog.evaluation.evaluator import evaluate

    inputs = {"synthetic data": synthetic, "real data": real, "holdout": holdout, "schema": schema}
    inputs |= {"labels": labels, "holdout labels": holdout_labels, "ledger": ledger}
    refuse_page(out, inputs)
    with show_progress() as report_progress:
        report = evaluate(
            **resolve_sources(format_, synthetic=synthetic, real=real, holdout=holdout),
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
        note_published(report.published, f"ε = {publish:g} of {ledger}" if publish is not None else "")
        write_page(report, out, report_progress)
    show_figures(report, as_json)
    if out is not None and not as_json:
        note(f"{out}: the whole report")


def note_published(published: Measures, price: str) -> None:
    """Print the published figures: they are paid for, and shown even if writing the report fails."""
    from sundog.evaluation.report.text_table import format_measure

    if published:
        note(f"may be published ({price}):")
    for name, measure in published.items():
        note(f"  {name:34} {format_measure(measure)}")


def refuse_page(out: Path | None, inputs: Mapping[str, Any]) -> None:
    """Raise if the page cannot be written, is no .html file, or would replace anything but a report of sundog."""
    from sundog.evaluation.report.markup import is_report
    from sundog.files import refuse_output

    refuse_output(out, inputs, replaces=is_report, fix="it is not a report of sundog; choose another name")
    if out is not None and out.suffix.lower() != ".html":
        raise ArgumentError(f"{out}: a report is one .html file; choose such a name")


def write_page(found: Audit | Report | SideBySide, out: Path | None, report_progress: Progress) -> None:
    """Write the page, if one is asked for."""
    if out is not None:
        report_progress("drawing", 1.0)
        found.to_html(out)


def show_figures(found: Report | SideBySide, as_json: bool) -> None:
    """Print the figures, as JSON or as text with a note that they are private."""
    if as_json:
        say_json(found.to_dict())
        return
    say(found.to_text())
    note(PRIVATE)
