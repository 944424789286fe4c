"""What a report says in words, against figures whose meaning is known."""

from __future__ import annotations

import math

import pytest
from tests.evaluation.report.sample_report import sample

from sundog.evaluation.measure import Better, Measure, Metric, combine, measure_ratio
from sundog.evaluation.report.headline import list_main_measures, reach_verdicts, write_headline
from sundog.evaluation.report.number_text import format_interval
from sundog.evaluation.report.standing import BELOW, BEYOND, DIFFERENT, FLOOR, NO_DIFFERENCE, SAME, UNKNOWN, Standing
from sundog.evaluation.section import Section

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
        (Measure(0.8, 0.6, 1.0), 0.75, "cannot be told at this size: at least 25% of the way to real data"),
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


def test_the_headline_of_a_table() -> None:
    report = sample()
    assert write_headline(report.sections, report.ceiling, report.floor) == (
        "Column 'age' is off by 7.1% to 9.3%. Of the relations between columns 36% (33% to 39%) is kept. "
        "A forest trained on it reaches an AUC of 0.76 where real data gives 0.90: 65% (63% to 68%) of the way to real "
        "data."
    )
    assert [verdict.verdict for verdict in reach_verdicts(report.sections, report.ceiling, report.floor)] == [
        "no",
        "partly",
        "partly",
    ]


def test_a_headline_says_when_a_model_is_as_good_as_one_of_real_data() -> None:
    name = "utility.tstr.forest.accuracy"
    section = Section("U", {name: Measure(0.85, 0.84, 0.86)}, {name: Metric("Forest", "high", "")})
    said = write_headline([section], {name: Measure(0.855, 0.85, 0.86)}, {name: LOW})
    assert said == "A forest trained on it reaches an accuracy of 0.85, as real data does (0.85, at most 0.016 better)."


@pytest.mark.parametrize(("model", "said"), [("forest", "A forest"), ("ridge", "A linear regression")])
def test_a_headline_of_a_quantity(model: str, said: str) -> None:
    """The forest, as for classes, wherever it stands among the measures."""
    names = ["utility.tstr.ridge.r2", *(["utility.tstr.forest.r2"] if model == "forest" else [])]
    section = Section("U", dict.fromkeys(names, LOW), {name: Metric("R²", "high", "") for name in names})
    sentence = write_headline([section], dict.fromkeys(names, HIGH), {})
    assert sentence == f"{said} trained on it reaches an R² of 0.50 where real data gives 0.90; {DIFFERENT}."


def test_a_headline_of_other_data_uses_the_first_measure_of_each_section() -> None:
    metrics = {"images.frechet": Metric("Fréchet distance", "low", ""), "images.other": Metric("Other", "low", "")}
    section = Section("Images", {"images.frechet": Measure(34.0, 33, 35), "images.other": LOW}, metrics)
    said = write_headline(
        [section], {"images.frechet": Measure.exact(2.0)}, {"images.frechet": Measure(130.0, 129, 131)}
    )
    assert said == "Fréchet distance: 34.0, 75% (74% to 76%) of the way to real data."
    assert list_main_measures([section]) == ["images.frechet"]


def test_a_headline_names_what_only_one_class_shows() -> None:
    name = "images.downstream.worst_class"
    section = Section("I", {name: Measure(0.1, 0.05, 0.2)}, {name: Metric("accuracy of the worst class", "high", "")})
    said = write_headline([section], {name: HIGH}, {name: Measure(0.1, 0.05, 0.2)})
    assert said.startswith("Accuracy of the worst class: 0.100, cannot be told at this size")


def test_a_report_without_measures_says_so() -> None:
    assert write_headline([], {}, {}) == "Nothing was measured."
    assert write_headline([Section("Empty", {}, {})], {}, {}) == "Nothing was measured."


def test_a_judge_has_its_own_sentence() -> None:
    name = "fidelity.propensity_auc"
    section = Section("P", {name: Measure(0.7, 0.69, 0.71)}, {name: Metric("told apart", "low", "")})
    said = write_headline([section], {name: Measure(0.5, 0.48, 0.52)}, {name: Measure(0.9, 0.88, 0.92)})
    assert said == "A classifier tells it from real records (AUC 0.70, 0.69 to 0.71; 0.5 is guessing)."


def test_an_interval_that_reads_as_one_number_is_left_out() -> None:
    assert format_interval(Measure(1.0, 0.99999, 1.0), 3) == ""
    assert format_interval(Measure.exact(0.5), 3) == ""
    assert format_interval(Measure(math.nan, 0.0, 1.0), 3) == ""
