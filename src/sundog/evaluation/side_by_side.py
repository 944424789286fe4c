"""Several releases of the same data side by side: budgets, models, tools."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.evaluator import Bounds, Report, build_report, write_text
from sundog.evaluation.inputs import choose_schema, describe_source, load_release, read_inputs
from sundog.progress import Progress, silent

DIFFERENT = "The releases have different schemas: their bins differ, and so may their distances."


@dataclass(frozen=True)
class SideBySide:
    """Reports on several releases, measured in the same way."""

    reports: tuple[Report, ...]

    def to_dict(self) -> dict[str, Any]:
        """For machines: the report on each, by its name."""
        return {report.name: report.to_dict() for report in self.reports}

    def to_html(self, path: str | Path | None = None) -> str:
        """One page that stands by itself; also written to a file, if one is named."""
        from sundog.evaluation.report.side_by_side_page import render_side_by_side

        return write_text(render_side_by_side(self.reports), path)

    def to_json(self, path: str | Path) -> None:
        """The same as `to_dict`, in a file."""
        write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def compare(
    synthetics: Sequence[Any],
    *,
    real: Any,
    schema: Schema | None = None,
    progress: Progress = silent,
    **settings: Any,
) -> SideBySide:
    """Evaluates several releases, or synthetic data of any tool, against the same real data.

    What is no release is measured with the schema of the first that is one, so that bins are the same for all.

    Args:
        synthetics: releases, paths of releases or of synthetic data, tables.
        real: the real records.
        schema: what is declared about data that is no release, where there is no release.
        progress: is told what is being done, and how much of it is.
        settings: as `evaluate` takes them, but for publishing.
    """
    if len(synthetics) < 2:
        raise DataError(f"there is nothing to compare with {len(synthetics)} release; give at least two")
    releases = [load_release(synthetic) for synthetic in synthetics]
    schemas = [release.schema for release in releases if release is not None]
    shared = choose_schema(None, schema or next(iter(schemas), None), real)
    gathered = [
        read_inputs(
            synthetic if release is None else release,
            real=real,
            schema=shared if release is None else None,
            progress=_scale_progress(progress, place, len(synthetics)),
            **settings,
        )
        for place, (synthetic, release) in enumerate(zip(synthetics, releases, strict=True))
    ]
    if gathered[0].warning is not None:
        warnings.warn(gathered[0].warning, stacklevel=2)
    reports: list[Report] = []
    bounds: dict[str, Bounds] = {}  # real data is measured once for every schema
    for inputs, synthetic in zip(gathered, synthetics, strict=True):
        declared = json.dumps(inputs.comparison.real.schema.to_dict(), sort_keys=True)
        report = build_report(inputs, bounds.get(declared))
        bounds[declared] = report.bounds
        reports.append(replace(report, name=describe_source(synthetic)))
    if len({json.dumps(declared.to_dict(), sort_keys=True) for declared in schemas}) > 1:
        reports = [replace(report, notes=(*report.notes, DIFFERENT)) for report in reports]
    return SideBySide(tuple(_number_duplicates(reports)))


def _scale_progress(progress: Progress, place: int, count: int) -> Progress:
    """The progress of one of several."""

    def part(stage: str, done: float) -> None:
        progress(f"{place + 1} of {count}, {stage}", (place + done) / count)

    return part


def _number_duplicates(reports: Sequence[Report]) -> list[Report]:
    """The reports, with a number where two have the same name."""
    names = [report.name for report in reports]
    return [
        replace(report, name=f"{report.name} ({place + 1})") if names.count(report.name) > 1 else report
        for place, report in enumerate(reports)
    ]
