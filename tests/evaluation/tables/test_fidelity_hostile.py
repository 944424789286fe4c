"""Fidelity of degenerate tables: constant, empty, of one row, without values, far too wide."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.evaluation.tables.two_tables import (
    compare,
    draw_people,
    encode_frame,
    evaluate_codes,
    get_value,
)

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.tables.fidelity import evaluate_fidelity

# --- hostile input -------------------------------------------------------------------------------------------------


def test_one_column_has_no_pairs() -> None:
    section = evaluate_codes({"n": {"type": "boolean"}}, {"n": [0, 1, 1]}, {"n": [0, 0, 1]})
    assert get_value(section, "tvd_1way") == pytest.approx(1 / 3)
    assert get_value(section, "quality") == get_value(section, "column_shapes") == pytest.approx(2 / 3)
    for name in ("tvd_2way", "tvd_3way", "association_error", "column_pair_trends"):
        assert f"fidelity.{name}" not in section.measures


def test_constant_columns_say_nothing_of_each_other() -> None:
    columns = {"a": {"type": "integer", "min": 0, "max": 9}, "b": {"type": "continuous", "min": 0, "max": 1}}
    columns |= {"c": {"type": "categorical", "values": ["x", "y"]}, "d": {"type": "integer", "min": 3, "max": 3}}
    constant = {"a": [7] * 60, "b": [123456] * 60, "c": [1] * 60, "d": [0] * 60}
    section = evaluate_codes(columns, constant, constant)
    assert section.details["fidelity"]["associations"]["real"] == np.eye(4).tolist()
    assert {get_value(section, name) for name in ("tvd_2way", "association_error", "wasserstein_sliced")} == {0.0}
    assert get_value(section, "column_pair_trends") == 1  # of the pairs with a category; the others have no correlation
    assert "fidelity.range_coverage" not in section.measures


def test_one_row_each() -> None:
    frame = draw_people(1, 3).assign(income=[5.0], job=["some"])
    section = evaluate_fidelity(compare(encode_frame(frame), encode_frame(frame)))
    assert get_value(section, "tvd_3way") == 0
    assert get_value(section, "column_shapes") == 1


def test_a_column_whose_values_are_all_missing() -> None:
    columns: dict[str, Any] = {"n": {"type": "integer", "min": 0, "max": 9, "nullable": True}}
    columns |= {"c": {"type": "categorical", "values": ["x", "y"], "nullable": True}, "d": {"type": "boolean"}}
    full, empty = {"n": [0, 1, 5], "c": [0, 1, 0], "d": [0, 1, 1]}, {"n": [10] * 3, "c": [2] * 3, "d": [0, 1, 1]}
    lost = evaluate_codes(columns, full, empty)
    assert lost.details["fidelity"]["column_shapes"] == {"n": 0.0, "c": 0.0, "d": 1.0}
    assert lost.details["fidelity"]["range_coverage"] == {"n": 0.0}
    assert lost.details["fidelity"]["category_coverage"] == {"c": 0.0, "d": 1.0}
    assert get_value(lost, "null_difference") == 1
    invented = evaluate_codes(columns, empty, full)
    assert invented.details["fidelity"]["column_shapes"] == {"n": None, "c": None, "d": 1.0}
    both = evaluate_codes(columns, empty, empty)
    assert get_value(both, "tvd_2way") == 0
    assert get_value(both, "null_difference") == 0
    assert "fidelity.wasserstein_1d" not in both.measures
    for section in (lost, invented, both):
        json.dumps(section.details, allow_nan=False)
        for picture in section.pictures:
            picture.draw()


def test_numbers_at_the_ends_of_what_can_be_declared() -> None:
    columns = {
        "id": {"type": "integer", "min": -(2**62), "max": 2**62 - 1},
        "close": {"type": "integer", "min": 10**18, "max": 10**18 + 4},
    }
    section = evaluate_codes(
        columns, {"id": [0, 2**63 - 1, 9], "close": [0, 1, 2]}, {"id": [0, 2**62, 9], "close": [1, 2, 3]}
    )
    assert get_value(section, "tvd_1way") == pytest.approx((1 / 3 + 1 / 3) / 2)
    assert section.details["fidelity"]["wasserstein_1d"]["close"] == pytest.approx(0.25)


def test_values_that_no_float_tells_apart() -> None:
    columns = {"id": {"type": "integer", "min": 0, "max": 2**62}, "c": {"type": "boolean"}}
    real = {"id": [2**61, 2**61 + 1, 2**61 + 1024], "c": [0, 1, 1]}
    section = evaluate_codes(columns, real, real)
    assert get_value(section, "column_pair_trends") == get_value(section, "quality") == 1


def test_quantile_bins_that_were_never_learned_become_the_default_ones() -> None:
    columns = {"n": {"type": "integer", "min": 0, "max": 9999, "bins": "quantiles"}}
    section = evaluate_codes(columns, {"n": [0, 10, 5000]}, {"n": [1, 11, 9999]})
    assert get_value(section, "tvd_1way") == pytest.approx(1 / 3)


def test_wide_tables_have_some_pairs_looked_at_and_say_so() -> None:
    rng = np.random.default_rng(0)
    columns = {f"column {place}": {"type": "boolean"} for place in range(45)}
    real, synthetic = ({name: rng.integers(0, 2, 80).tolist() for name in columns} for _ in range(2))
    section = evaluate_codes(columns, real, synthetic)
    assert (
        len(section.details["fidelity"]["tvd_pairs"]) == len(section.details["fidelity"]["column_pair_trends"]) == 300
    )
    assert len({tuple(row["columns"]) for row in section.details["fidelity"]["tvd_pairs"]}) == 300
    assert len(section.details["fidelity"]["tvd_triples"]) == 50
    assert np.array(section.details["fidelity"]["associations"]["real"]).shape == (45, 45)
    assert "300 of 990 pairs" in section.notes[0]
    assert "50 of 14,190 triples" in section.notes[1]
    assert "30 worst of 45" in section.pictures[0].caption
    assert "16 worst of 45" in section.pictures[1].caption
    assert "40 columns" in section.pictures[2].caption
    for picture in section.pictures:
        picture.draw().canvas.draw_idle()


def test_columns_that_are_no_scalars_are_left_alone() -> None:
    schema = Schema.from_dict(
        {"columns": {"n": {"type": "boolean"}, "curve": {"type": "series", "length": 2, "min": 0, "max": 9}}}
    )
    real = Records(schema, {"n": np.array([0, 1], np.uint8), "curve": np.zeros((2, 2), np.uint32)}, 2)
    assert list(evaluate_fidelity(compare(real, real)).details["fidelity"]["column_shapes"]) == ["n"]


def test_no_records_are_refused() -> None:
    real = encode_frame(draw_people(5, 0))
    with pytest.raises(DataError, match="no synthetic records"):
        evaluate_fidelity(compare(real, real.take(slice(0))))
    with pytest.raises(DataError, match="no real records"):
        evaluate_fidelity(compare(real.take(slice(0)), real))
