"""Measures as a plain-text table."""

from __future__ import annotations

from sundog.evaluation.measure import Measure
from sundog.evaluation.report.text_table import format_table


def test_columns_are_aligned_and_missing_measures_leave_their_cell_empty() -> None:
    columns = [
        ("this", {"a": Measure(0.5, 0.4, 0.6), "b": Measure(0.1, -0.1, 0.3)}),
        ("x" * 40, {"a": Measure.exact(1)}),
    ]
    head, first, second = format_table(["a", "b"], columns).split("\n")
    assert head.endswith(" " + "x" * 27)
    assert len(head) == len(first) == len(second)
    assert first.split() == ["a", "0.5000", "(0.4000", "to", "0.6000)", "1.0000", "(1.0000", "to", "1.0000)"]
    assert second.rstrip().endswith("0.1000 (-0.1000 to 0.3000)")
