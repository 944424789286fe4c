"""Every sentence of a headline is said of records for which it is true, and not of records for which it is false."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from sundog.evaluation.measure import Measure
from sundog.evaluation.report import claims

ROOT = Path(__file__).parents[3]

sys.path.insert(0, str(ROOT / "benchmarks"))
try:
    import headline as sentences
finally:
    sys.path.pop(0)

CASES = [
    pytest.param(each, id=each.says[:60], marks=[pytest.mark.slow] if "series" in each.true_of else [])
    for each in sentences.SENTENCES
]


@pytest.mark.parametrize("sentence", CASES)
def test_a_sentence_is_said_where_it_is_true_and_not_where_it_is_false(sentence: Any) -> None:
    assert sentence.said_of(sentence.true_of) is not None, sentences.report_on(sentence.true_of).headline
    assert sentence.said_of(sentence.false_of) is None


def answers(release: str) -> dict[str, str]:
    return {verdict.claim: verdict.verdict for verdict in sentences.report_on(release).verdicts}


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("copied real data", {"columns": "yes", "relations": "yes", "prediction": "yes", "indistinguishable": "yes"}),
        ("independent columns", {"columns": "yes", "relations": "no", "prediction": "no", "indistinguishable": "no"}),
        ("half the links", {"relations": "partly", "prediction": "partly", "indistinguishable": "no", "pairs": "yes"}),
        ("one destroyed column", {"columns": "no", "relations": "partly", "indistinguishable": "no"}),
        ("anything that is declared", {"columns": "no", "relations": "no", "pairs": "no", "indistinguishable": "no"}),
        ("sixty other records", dict.fromkeys(("columns", "relations", "prediction", "indistinguishable"), "unknown")),
    ],
)
def test_the_answers_about_a_release(release: str, said: dict[str, str]) -> None:
    assert answers(release).items() >= said.items()


@pytest.mark.parametrize("release", ["independent columns", "anything that is declared", "one destroyed column"])
def test_no_bad_release_gets_a_good_headline(release: str) -> None:
    headline = sentences.report_on(release).headline
    assert "can distinguish it from real records" in headline
    assert "Relations between columns are kept" not in headline
    assert "no measurable difference" not in headline.lower()


def test_machines_get_claim_answer_and_evidence() -> None:
    found = json.loads(json.dumps(sentences.report_on("one destroyed column").to_dict(), allow_nan=False))
    columns = next(each for each in found["verdicts"] if each["claim"] == "columns")
    assert columns["verdict"] == "no"
    assert columns["evidence"]["column"] == "hours"
    assert columns["evidence"]["low"] > columns["evidence"]["margin"] == 0.05
    assert columns["sentence"] in found["headline"]
    for verdict in found["verdicts"]:
        assert set(verdict) == {"claim", "verdict", "sentence", "evidence"}
        assert verdict["verdict"] in {"yes", "partly", "no", "mixed", "unknown"}


def test_the_docs_have_every_sentence_with_its_releases() -> None:
    docs = (ROOT / "docs" / "evaluate.md").read_text(encoding="utf-8")
    for each in sentences.SENTENCES:
        says = ".*".join(re.escape(part) for part in each.says.split("…"))
        assert re.search(rf"^\| {says} \| {re.escape(each.true_of)} \| {re.escape(each.false_of)} \|$", docs, re.M), (
            each.says
        )


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Measure(0.01, 0.0, 0.04), "yes"),
        (Measure(0.2, 0.15, 0.25), "no"),
        (Measure(0.03, 0.0, 0.09), "unknown"),
        (Measure(float("nan"), 0.0, 0.5), "unknown"),
    ],
)
def test_who_cannot_tell_is_near_guessing_for_sure(found: Measure, verdict: str) -> None:
    assert claims.judge_indistinguishable("x", "a network", "score", found, 0.0, 0.05).verdict == verdict


def test_a_column_is_named_though_all_others_are_perfect() -> None:
    columns = {f"c{place}": Measure(0.001, 0.0, 0.01) for place in range(99)}
    found = claims.judge_each("columns", "column", {**columns, "age": Measure(0.24, 0.2, 0.28)})
    assert (found.verdict, found.sentence) == ("no", "Column 'age' is off by 20% to 28%.")
    assert claims.judge_each("columns", "column", columns).sentence == "No column is off by more than 1.0%."
    assert claims.judge_each("columns", "column", {}).verdict == "unknown"
