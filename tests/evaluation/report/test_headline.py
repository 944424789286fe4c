"""The sentences of a headline, for figures whose meaning is known."""

from __future__ import annotations

import pytest
from tests.evaluation.report.sample_report import make_sample

from sundog.evaluation.measure import Measure, Metric
from sundog.evaluation.report.headline import list_main_measures, reach_verdicts, write_headline
from sundog.evaluation.report.standing import DIFFERENT
from sundog.evaluation.section import Section

HIGH, LOW = Measure(0.9, 0.89, 0.91), Measure(0.5, 0.49, 0.51)


def test_the_headline_of_a_table() -> None:
    report = make_sample()
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
    assert said.startswith("Accuracy of the worst class: 0.100, cannot be determined at this sample size")


def test_a_report_without_measures_says_so() -> None:
    assert write_headline([], {}, {}) == "Nothing was measured."
    assert write_headline([Section("Empty", {}, {})], {}, {}) == "Nothing was measured."


def test_a_judge_has_its_own_sentence() -> None:
    name = "fidelity.propensity_auc"
    section = Section("P", {name: Measure(0.7, 0.69, 0.71)}, {name: Metric("told apart", "low", "")})
    said = write_headline([section], {name: Measure(0.5, 0.48, 0.52)}, {name: Measure(0.9, 0.88, 0.92)})
    assert said == "A classifier can distinguish it from real records (AUC 0.70, 0.69 to 0.71; 0.5 is guessing)."
