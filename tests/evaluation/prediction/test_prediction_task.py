"""Targets that can be predicted, and those that are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.prediction.people import COLUMNS, Columns, compare, draw_people, make_records

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.prediction import prediction_task
from sundog.evaluation.prediction.utility import (
    INTERVALS,
    evaluate_utility,
)


def test_so_many_records_are_enough_to_learn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_task, "MOST", 50)
    comparison = compare(draw_people(200, 0), draw_people(100, 1), "ill")
    assert len(prediction_task.define_task(comparison).train) == 50
    assert evaluate_utility(comparison).notes == [
        "Models were trained on 50 of 200 records, chosen at random.",
        INTERVALS,
    ]


def catch_refusal(comparison: Comparison) -> str:
    with pytest.raises(DataError) as caught:
        evaluate_utility(comparison)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_invalid_targets_are_refused() -> None:
    kind = draw_people(30, 0)
    assert catch_refusal(compare(kind, kind, "il")) == "target: there is no column 'il'; did you mean 'ill'?"
    assert "no target is given" in catch_refusal(replace(compare(kind, kind, "ill"), target=None))
    shown = make_records({"ill": COLUMNS["ill"]}, ill=[True, False] * 15)
    assert "column 'ill' is the only one" in catch_refusal(compare(shown, shown, "ill"))


def test_an_array_is_no_target() -> None:
    schema = Schema.from_dict({"columns": {"photo": {"type": "image", "shape": [2, 2]}, "ill": COLUMNS["ill"]}})
    kind = Records(schema, {"photo": np.zeros((30, 2, 2), np.uint8), "ill": np.arange(30) % 2}, 30)
    assert "column 'photo' of type image cannot be a target" in catch_refusal(compare(kind, kind, "photo"))


def test_too_few_records_are_named() -> None:
    few, enough = draw_people(19, 0), draw_people(60, 1)
    assert "19 synthetic records" in catch_refusal(compare(few, enough, "ill", real=enough))
    assert "19 real records" in catch_refusal(compare(enough, enough, "ill", real=few))
    assert "19 held-out records" in catch_refusal(compare(enough, few, "ill"))


def test_a_target_with_one_value_in_the_real_data() -> None:
    both = draw_people(100, 0)
    well = both.take(both.codes["ill"] == 0)
    assert "column 'ill' has the same value in all real records" in catch_refusal(compare(both, both, "ill", real=well))
    assert "column 'ill' has the same value in all held-out records" in catch_refusal(compare(both, well, "ill"))


def test_a_target_with_too_many_classes() -> None:
    columns: Columns = {"word": {"type": "categorical", "values": [f"w{i}" for i in range(60)]}, "age": COLUMNS["age"]}
    kind = make_records(columns, word=[f"w{i}" for i in range(60)], age=range(60))
    assert "column 'word' has 60 classes" in catch_refusal(compare(kind, kind, "word"))
