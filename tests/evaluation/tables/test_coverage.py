"""Coverage by hand."""

from __future__ import annotations

import pytest
from tests.evaluation.tables.two_tables import (
    evaluate_codes,
    get_value,
)


def test_coverage_by_hand() -> None:
    columns = {
        "n": {"type": "integer", "min": 0, "max": 20, "nullable": True},
        "m": {"type": "integer", "min": 0, "max": 20},
        "c": {"type": "categorical", "values": list("abcde")},
        "d": {"type": "boolean", "nullable": True},
    }
    real = {"n": [0, 10, 5, 21], "m": [5, 6, 9, 5], "c": [0, 1, 2, 3], "d": [0, 1, 2, 2]}
    synthetic = {"n": [2, 9, 9, 3], "m": [0, 20, 1, 1], "c": [0, 4, 0, 1], "d": [1, 1, 1, 2]}
    found = evaluate_codes(columns, real, synthetic)
    details = found.details["fidelity"]
    assert details["range_coverage"] == pytest.approx({"n": 0.7, "m": 1.0})
    assert details["category_coverage"] == pytest.approx({"c": 0.5, "d": 0.5})
    assert details["category_adherence"] == pytest.approx({"c": 0.75, "d": 1.0})
    assert details["null_difference"] == pytest.approx({"n": 0.25, "d": 0.25})
    assert get_value(found, "range_coverage") == pytest.approx(0.85)
    assert get_value(found, "category_coverage") == pytest.approx(0.5)
    assert get_value(found, "category_adherence") == pytest.approx(0.875)
    assert get_value(found, "null_difference") == pytest.approx(0.25)


def test_without_nullable_columns_nothing_is_said_about_nulls() -> None:
    section = evaluate_codes({"n": {"type": "boolean"}}, {"n": [0, 1]}, {"n": [0, 1]})
    assert "fidelity.null_difference" not in section.measures
