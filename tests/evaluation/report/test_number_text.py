"""Numbers as text."""

from __future__ import annotations

import math

from sundog.evaluation.measure import Measure
from sundog.evaluation.report.number_text import format_interval


def test_an_interval_that_reads_as_one_number_is_left_out() -> None:
    assert format_interval(Measure(1.0, 0.99999, 1.0), 3) == ""
    assert format_interval(Measure.exact(0.5), 3) == ""
    assert format_interval(Measure(math.nan, 0.0, 1.0), 3) == ""
