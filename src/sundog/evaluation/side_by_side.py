"""Evaluation of several releases of the same data side by side."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.evaluator import REFERENCES, Bounds, Report, build_report, write_text
from sundog.evaluation.inputs import (
    EvaluationRequest,
    Inputs,
    choose_schema,
    describe_source,
    load_release,
    read_inputs,
)
from sundog.progress import Progress, silent

DIFFERENT = "The releases have different schemas: their bins differ, and so may their distances."


@dataclass(frozen=True)
class SideBySide:
    """Reports on several releases, measured in the same way."""

    reports: tuple[Report, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary of each report, by name."""
        return {report.name: report.to_dict() for report in self.reports}

    def to_text(self) -> str:
        """Return the headline of each report and a table of their measures, for a terminal."""
        from sundog.evaluation.report.headline import list_main_measures
        from sundog.evaluation.report.text_table import format_table

        headlines = [f"{report.name}: {report.headline}" for report in self.reports]
        columns = [(report.name, report.measures) for report in self.reports]
        for report in {id(report.bounds): report for report in self.reports}.values():  # one for each schema
            shared = all(each.bounds is report.bounds for each in self.reports)
            titles = REFERENCES if shared else (f"real, {report.name}", f"independent, {report.name}")
            columns += zip(titles, (report.ceiling, report.floor), strict=True)
        names = dict.fromkeys(name for report in self.reports for name in list_main_measures(report.sections))
        return "\n".join([*headlines, format_table(names, columns)])

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one self-contained HTML page, and write it to `path` if given."""
        from sundog.evaluation.report.side_by_side_page import render_side_by_side

        return write_text(render_side_by_side(self.reports), path)

    def to_json(self, path: str | Path) -> None:
        """Write `to_dict` to a file."""
        write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def compare(
    synthetics: Sequence[Any],
    *,
    real: Any,
    schema: Schema | None = None,
    progress: Progress = silent,
    **settings: Any,
) -> SideBySide:
    """Evaluate several releases, or synthetic data of any tool, against the same real data.

    Data other than releases is measured with the schema of the first release, so that all have the same bins.

    Args:
        synthetics: releases, paths of releases or of synthetic data, tables.
        real: the real records.
        schema: the schema of the data, where none of it is a release.
        progress: is called with the current stage and the share done.
        settings: further arguments of `evaluate`, except those about publishing.
    """
    if len(synthetics) < 2:
        raise DataError(f"cannot compare {len(synthetics)} release; give at least two")
    releases = [load_release(synthetic) for synthetic in synthetics]
    schemas = [release.schema for release in releases if release is not None]
    shared = choose_schema(None, schema or next(iter(schemas), None), real)
    inputs = []
    for place, (synthetic, release) in enumerate(zip(synthetics, releases, strict=True)):
        request = EvaluationRequest(
            synthetic if release is None else release,
            real,
            schema=shared if release is None else None,
            progress=_scale_progress(progress, place, len(synthetics)),
            **settings,
        )
        inputs.append(replace(read_inputs(request), name=describe_source(synthetic)))
    if inputs[0].warning is not None:
        warnings.warn(inputs[0].warning, stacklevel=2)
    reports = _build_reports(inputs)
    if len({_serialize_schema(each) for each in schemas}) > 1:
        reports = [replace(report, notes=(*report.notes, DIFFERENT)) for report in reports]
    return SideBySide(tuple(_number_duplicates(reports)))


def _build_reports(inputs: Sequence[Inputs]) -> list[Report]:
    """Measure all inputs, and the bounds once per schema."""
    reports = []
    bounds: dict[str, Bounds] = {}
    for each in inputs:
        declared = _serialize_schema(each.comparison.real.schema)
        report = build_report(each, bounds.get(declared))
        bounds[declared] = report.bounds
        reports.append(report)
    return reports


def _serialize_schema(schema: Schema) -> str:
    return json.dumps(schema.to_dict(), sort_keys=True)


def _scale_progress(progress: Progress, place: int, count: int) -> Progress:
    """Return the progress callback of one of several evaluations."""

    def report(stage: str, done: float) -> None:
        progress(f"{place + 1} of {count}, {stage}", (place + done) / count)

    return report


def _number_duplicates(reports: Sequence[Report]) -> list[Report]:
    """Add a number to names that occur more than once."""
    names = [report.name for report in reports]
    return [
        replace(report, name=f"{report.name} ({place + 1})") if names.count(report.name) > 1 else report
        for place, report in enumerate(reports)
    ]
