"""Sums and ratios of measures."""

from __future__ import annotations

import pytest

from sundog.evaluation.measure import Measure, combine, measure_ratio

LOW = Measure(0.5, 0.49, 0.51)


def test_measures_that_err_together_are_compared_resample_by_resample() -> None:
    one = Measure(0.5, 0.3, 0.7, resampled=(0.4, 0.5, 0.6))
    other = Measure(0.6, 0.4, 0.8, resampled=(0.5, 0.6, 0.7))
    assert combine((1, other), (-1, one)).low == pytest.approx(0.1)
    assert combine((1, other), (-1, Measure(0.5, 0.3, 0.7))).low < 0


def test_a_share_of_nothing_is_none() -> None:
    assert measure_ratio(LOW, Measure(0.1, -0.1, 0.3)) is None
    found = measure_ratio(Measure(0.5, 0.4, 0.6), Measure.exact(-1.0))
    assert found is not None
    assert (found.low, found.value, found.high) == pytest.approx((-0.6, -0.5, -0.4))
