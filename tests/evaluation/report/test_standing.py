"""What a report says in words, against figures whose meaning is known."""

from __future__ import annotations

import math

import pytest

from sundog.evaluation.measure import Better, Measure
from sundog.evaluation.report.standing import BELOW, BEYOND, DIFFERENT, FLOOR, NO_DIFFERENCE, SAME, UNKNOWN, Standing

HIGH, LOW = Measure(0.9, 0.89, 0.91), Measure(0.5, 0.49, 0.51)


@pytest.mark.parametrize(
    ("value", "share", "said"),
    [
        (Measure(0.7, 0.69, 0.71), 0.5, "50% (47% to 53%) of the way to real data"),
        (Measure(0.897, 0.895, 0.899), 0.9925, SAME),
        (Measure(0.86, 0.85, 0.87), 0.9, "90% (87% to 93%) of the way to real data"),
        (Measure(0.95, 0.94, 0.96), 1.125, BEYOND),
        (Measure(0.505, 0.5, 0.52), 0.0125, FLOOR),
        (Measure(0.4, 0.39, 0.41), -0.25, BELOW),
        (
            Measure(0.8, 0.6, 1.0),
            0.75,
            "cannot be determined at this sample size: at least 25% of the way to real data",
        ),
        (Measure(math.nan, 0.0, 1.0), None, UNKNOWN),
    ],
)
def test_standing_between_floor_and_ceiling(value: Measure, share: float | None, said: str) -> None:
    standing = Standing(value, HIGH, LOW, "high")
    assert standing.words == said
    assert (None if standing.share is None else standing.share.value) == (
        None if share is None else pytest.approx(share)
    )


def test_intervals_that_overlap_show_no_equality() -> None:
    """The faults of old: a wide interval touches both ends, and nothing is shown."""
    wide = Standing(Measure(0.6, 0.2, 1.0), HIGH, LOW, "high")
    assert wide.measure.overlaps(HIGH)
    assert wide.measure.overlaps(LOW)
    assert wide.verdict == "unknown"
    halfway = Standing(Measure(0.724, 0.5, 0.95), HIGH, LOW, "high")  # 56% of the way is not lost
    assert halfway.verdict == "unknown"


def test_share_is_oriented_by_what_is_better() -> None:
    distance = Standing(Measure(0.03, 0.029, 0.031), Measure.exact(0.0), Measure(0.12, 0.11, 0.13), "low")
    assert distance.share is not None
    assert distance.share.value == pytest.approx(0.75)
    assert distance.words == "75% (73% to 77%) of the way to real data"


def test_a_distance_below_that_of_real_data_is_not_beyond_real_data() -> None:
    """There are fewer records behind the ceiling, and sampling adds more to it: most of 0.06 may be a difference."""
    found, ceiling, floor = Measure(0.06, 0.05, 0.07), Measure(0.08, 0.07, 0.09), Measure(0.12, 0.11, 0.13)
    assert Standing(found, ceiling, floor, "low").words == BEYOND
    assert Standing(found, ceiling, floor, "low", ideal=0.0).verdict == "unknown"
    assert Standing(Measure(0.005, 0.004, 0.006), ceiling, floor, "low", ideal=0.0).words == SAME


def test_a_model_is_not_praised_for_a_floor_below_guessing() -> None:
    found, floor = Measure(-0.05, -0.07, -0.03), Measure(-0.6, -0.7, -0.5)
    assert Standing(found, HIGH, floor, "high").verdict == "partly"
    assert Standing(found, HIGH, floor, "high", guess=0.0).words == FLOOR
    assert Standing(Measure(-0.9, -0.95, -0.85), HIGH, floor, "high", guess=0.0).words == BELOW


@pytest.mark.parametrize(
    ("ceiling", "floor", "better", "said"),
    [
        (Measure.exact(0.0), Measure.exact(0.0), "low", DIFFERENT),  # both the same: there is no way between
        (HIGH, None, "high", DIFFERENT),
        (Measure(0.9, 0.6, 1.0), None, "high", NO_DIFFERENCE),
        (None, LOW, "high", ""),
        (LOW, HIGH, "high", DIFFERENT),  # independent columns better than real data: no scale either
    ],
)
def test_without_a_scale_there_is_no_share(
    ceiling: Measure | None, floor: Measure | None, better: Better, said: str
) -> None:
    standing = Standing(Measure(0.7, 0.69, 0.71), ceiling, floor, better)
    assert standing.share is None
    assert standing.words == said
