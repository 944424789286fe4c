"""Matrices for learners: their columns are the schema's, whatever the records hold."""

from __future__ import annotations

import numpy as np

from sundog.data.columns import Scale
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.prediction.design_matrix import encode_one_hot, encode_ordinal

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "min": 10, "max": 20, "nullable": True},
            "score": {"type": "continuous", "min": 0, "max": 1, "resolution": 0.25},
            "sex": {"type": "categorical", "values": ["f", "m"], "nullable": True},
            "level": {"type": "ordinal", "values": ["low", "mid", "high"]},
            "smokes": {"type": "boolean"},
            "one": {"type": "integer", "min": 5, "max": 5},
            "photo": {"type": "image", "shape": [2, 2]},
        }
    }
)
NAMES = ["age", "score", "sex", "level", "smokes", "one"]


def records() -> Records:
    values = {
        "age": [10, None, 20],
        "score": [0.25, 1.0, 0.0],
        "sex": ["m", None, "f"],
        "level": ["high", "low", "mid"],
        "smokes": [True, False, True],
        "one": [5, 5, 5],
    }
    codes = {name: SCHEMA.columns[name].encode(column, where=name) for name, column in values.items()}
    return Records(SCHEMA, {**codes, "photo": np.zeros((3, 2, 2), np.uint8)}, 3)


def test_arrays_are_not_scalars() -> None:
    assert list(SCHEMA.scalars) == NAMES


def test_one_hot_by_hand() -> None:
    assert encode_one_hot(records(), NAMES).toarray().tolist() == [
        # age, none; score; f, m, none; low, mid, high; false, true; one
        [0.0, 0.0, 0.25, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0],
        [0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
    ]


def test_ordinal_by_hand() -> None:
    expected = [[0, 1, 1, 2, 1, 0], [np.nan, 4, 2, 0, 0, 0], [10, 0, 0, 1, 1, 0]]
    np.testing.assert_array_equal(encode_ordinal(records(), NAMES), expected)


def test_columns_do_not_depend_on_the_records() -> None:
    one = records().take([0])
    np.testing.assert_array_equal(encode_one_hot(one, NAMES).toarray(), encode_one_hot(records(), NAMES).toarray()[:1])
    np.testing.assert_array_equal(encode_ordinal(one, NAMES), encode_ordinal(records(), NAMES)[:1])


def test_only_categories_are_unordered() -> None:
    assert [name for name in NAMES if SCHEMA.columns[name].scale is Scale.NOMINAL] == ["sex"]
