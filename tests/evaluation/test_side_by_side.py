"""Several releases side by side."""

from __future__ import annotations

import pytest
from tests.evaluation.small_tables import TABLE, make_noise, make_table

from sundog.errors import DataError
from sundog.evaluation.side_by_side import compare


def test_releases_side_by_side_share_what_is_measured_of_real_data() -> None:
    real = make_table(200, 0)
    seen: list[str] = []
    found = compare(
        [make_noise(150, 1), make_table(150, 2)],
        real=real,
        schema=TABLE,
        progress=lambda stage, done: seen.append(stage),
    )
    assert sum("of real data" in stage for stage in seen) == 2  # fidelity and propensity, once each
    assert found.reports[0].ceiling == found.reports[1].ceiling
    assert [report.name for report in found.reports] == ["the synthetic data (1)", "the synthetic data (2)"]
    assert not any("different schemas" in note for report in found.reports for note in report.notes)
    first, second = (report.measures["fidelity.association_error"] for report in found.reports)
    assert second.high < first.low
    with pytest.raises(DataError, match="at least two"):
        compare([real], real=real)
