"""Several releases of the same data side by side: budgets, models, tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sundog.errors import DataError
from sundog.evaluate.evaluate import Bounds, Report, report_on, written
from sundog.evaluate.inputs import gather
from sundog.progress import Progress, silent


@dataclass(frozen=True)
class SideBySide:
    """Reports on several releases, measured in the same way."""

    reports: tuple[Report, ...]

    def to_dict(self) -> dict[str, Any]:
        """For machines: the report on each, by its name."""
        return {report.name: report.to_dict() for report in self.reports}

    def to_html(self, path: str | Path | None = None) -> str:
        """One page that stands by itself; also written to a file, if one is named."""
        from sundog.evaluate.report.compare_page import compare_page

        return written(compare_page(self.reports), path)

    def to_json(self, path: str | Path) -> None:
        """The same as `to_dict`, in a file."""
        written(json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)


def compare(synthetics: Sequence[Any], *, real: Any, progress: Progress = silent, **settings: Any) -> SideBySide:
    """Evaluates several releases, or synthetic data of any tool, against the same real data.

    Args:
        synthetics: releases, paths of releases or of synthetic data, tables.
        real: the real records.
        progress: is told what is being done, and how much of it is.
        settings: as `evaluate` takes them, but for publishing.
    """
    if len(synthetics) < 2:
        raise DataError(f"there is nothing to compare with {len(synthetics)} release; give at least two")
    reports: list[Report] = []
    bounds: dict[str, Bounds] = {}  # real data is measured once for every schema
    for place, synthetic in enumerate(synthetics):

        def part(stage: str, done: float, place: int = place) -> None:
            progress(f"{place + 1} of {len(synthetics)}, {stage}", (place + done) / len(synthetics))

        inputs = gather(synthetic, real=real, progress=part, **settings)
        declared = json.dumps(inputs.comparison.real.schema.to_dict(), sort_keys=True)
        report = report_on(inputs, bounds.get(declared))
        bounds[declared] = report.bounds
        reports.append(report)
    return SideBySide(tuple(_named_apart(reports)))


def _named_apart(reports: Sequence[Report]) -> list[Report]:
    """The reports, with a number where two have the same name."""
    names = [report.name for report in reports]
    return [
        replace(report, name=f"{report.name} ({place + 1})") if names.count(report.name) > 1 else report
        for place, report in enumerate(reports)
    ]
