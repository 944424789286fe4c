"""What a report says in words, against figures whose meaning is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from tests.evaluate.sample_report import sample

from sundog.evaluate.measure import Better, Measure, Measures, Metric
from sundog.evaluate.report import words
from sundog.evaluate.report.headline import headline, main_names
from sundog.evaluate.report.words import Standing, interval
from sundog.evaluate.section import Section

HIGH, LOW = Measure(0.9, 0.89, 0.91), Measure(0.5, 0.49, 0.51)


@pytest.mark.parametrize(
    ("value", "share", "said"),
    [
        (Measure(0.7, 0.69, 0.71), 0.5, "50% of the way to real data"),
        (Measure(0.897, 0.895, 0.899), 0.9925, words.SAME),
        (Measure(0.888, 0.887, 0.889), 0.97, "97% of the way to real data"),
        (Measure(0.95, 0.94, 0.96), 1.125, words.BEYOND),
        (Measure(0.505, 0.5, 0.52), 0.0125, words.FLOOR),
        (Measure(0.4, 0.39, 0.41), -0.25, words.BELOW),
        (Measure(math.nan, 0.0, 1.0), None, words.UNKNOWN),
    ],
)
def test_standing_between_floor_and_ceiling(value: Measure, share: float | None, said: str) -> None:
    standing = Standing(value, HIGH, LOW, "high")
    assert standing.words == said
    assert standing.share == (None if share is None else pytest.approx(share))


def test_no_difference_is_said_only_when_intervals_touch() -> None:
    assert Standing(Measure(0.885, 0.88, 0.89), HIGH, LOW, "high").words == words.SAME
    assert Standing(Measure(0.885, 0.88, 0.8899), HIGH, LOW, "high").words != words.SAME


def test_share_is_oriented_by_what_is_better() -> None:
    distance = Standing(Measure(0.03, 0.029, 0.031), Measure.exact(0.0), Measure(0.12, 0.11, 0.13), "low")
    assert distance.share == pytest.approx(0.75)
    assert distance.words == "75% of the way to real data"


@pytest.mark.parametrize(
    ("ceiling", "floor", "better", "said"),
    [
        (Measure.exact(0.0), Measure.exact(0.0), "low", words.DIFFERENT),  # both the same: there is no way between
        (HIGH, None, "high", words.DIFFERENT),
        (None, LOW, "high", ""),
        (LOW, HIGH, "high", words.DIFFERENT),  # independent columns better than real data: no scale either
    ],
)
def test_without_a_scale_there_is_no_share(
    ceiling: Measure | None, floor: Measure | None, better: Better, said: str
) -> None:
    standing = Standing(Measure(0.7, 0.69, 0.71), ceiling, floor, better)
    assert standing.share is None
    assert standing.words == said


def test_a_share_next_to_an_end_never_reads_as_that_end() -> None:
    almost = Standing(Measure.exact(0.9999), Measure.exact(1.0), Measure.exact(0.0), "high")
    hardly = Standing(Measure.exact(0.0001), Measure.exact(1.0), Measure.exact(0.0), "high")
    assert almost.words.startswith("99%")
    assert hardly.words.startswith("1%")


def test_the_headline_of_a_table() -> None:
    report = sample()
    assert headline(report.sections, report.ceiling, report.floor) == (
        "Close to the real data one column at a time; relations between columns are mostly lost. "
        "A forest trained on it reaches an AUC of 0.76 where real data gives 0.90."
    )


def fidelity(one: float, two: float) -> tuple[Sequence[Section], Measures, Measures]:
    names = ("fidelity.tvd_1way", "fidelity.tvd_2way")
    metrics = {name: Metric(name, "low", "") for name in names}
    found = {name: Measure(value, value * 0.99, value * 1.01) for name, value in zip(names, (one, two), strict=True)}
    floor = {names[0]: Measure.exact(0.0), names[1]: Measure(0.1, 0.099, 0.101)}
    return (Section("Fidelity", found, metrics),), dict.fromkeys(names, Measure.exact(0.0)), floor


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        (0.0, 0.0, "No measurable difference from real data, one column at a time; relations between columns are kept"),
        (0.01, 0.005, "Very close to the real data one column at a time; relations between columns are kept."),
        (0.03, 0.02, "Close to the real data one column at a time; relations between columns are mostly kept."),
        (0.1, 0.05, "Roughly like the real data one column at a time; relations between columns are partly kept."),
        (0.3, 0.095, "Far from the real data even one column at a time; relations between columns are lost."),
        (0.3, 0.2, "relations between columns are lost (worse than independent columns)."),
        (math.nan, math.nan, "Could not be measured, one column at a time; relations between columns: could not be me"),
    ],
)
def test_the_words_of_a_headline_follow_the_figures(one: float, two: float, said: str) -> None:
    assert said in headline(*fidelity(one, two))


def test_a_headline_says_when_a_model_is_as_good_as_one_of_real_data() -> None:
    name = "utility.tstr.forest.accuracy"
    section = Section("U", {name: Measure(0.85, 0.84, 0.86)}, {name: Metric("Forest", "high", "")})
    said = headline([section], {name: Measure(0.855, 0.85, 0.86)}, {name: LOW})
    assert said == "A forest trained on it reaches an accuracy of 0.85: no measurable difference from real data (0.85)."


@pytest.mark.parametrize(("model", "said"), [("forest", "A forest"), ("ridge", "A linear regression")])
def test_a_headline_of_a_quantity(model: str, said: str) -> None:
    """The forest, as for classes, wherever it stands among the measures."""
    names = ["utility.tstr.ridge.r2", *(["utility.tstr.forest.r2"] if model == "forest" else [])]
    section = Section("U", dict.fromkeys(names, LOW), {name: Metric("R²", "high", "") for name in names})
    sentence = headline([section], dict.fromkeys(names, HIGH), {})
    assert sentence == f"{said} trained on it reaches an R² of 0.50 where real data gives 0.90."


def test_a_headline_of_other_data_uses_the_first_measure_of_each_section() -> None:
    metrics = {"images.frechet": Metric("Fréchet distance", "low", ""), "images.other": Metric("Other", "low", "")}
    section = Section("Images", {"images.frechet": Measure(34.0, 33, 35), "images.other": LOW}, metrics)
    said = headline([section], {"images.frechet": Measure.exact(2.0)}, {"images.frechet": Measure(130.0, 129, 131)})
    assert said == "Fréchet distance: 34.0, 75% of the way to real data."
    assert main_names([section]) == ["images.frechet"]


def test_a_report_without_measures_says_so() -> None:
    assert headline([], {}, {}) == "Nothing was measured."
    assert headline([Section("Empty", {}, {})], {}, {}) == "Nothing was measured."


def test_a_judge_has_its_own_sentence() -> None:
    name = "fidelity.propensity_auc"
    section = Section("P", {name: Measure(0.7, 0.69, 0.71)}, {name: Metric("told apart", "low", "")})
    said = headline([section], {name: Measure(0.5, 0.48, 0.52)}, {name: Measure(0.9, 0.88, 0.92)})
    assert said == "A model that tells it from real data reaches an AUC of 0.70 where real data gives 0.50."


def test_an_interval_that_reads_as_one_number_is_left_out() -> None:
    assert interval(Measure(1.0, 0.99999, 1.0), 3) == ""
    assert interval(Measure.exact(0.5), 3) == ""
    assert interval(Measure(math.nan, 0.0, 1.0), 3) == ""
