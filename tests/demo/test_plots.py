"""Plots of the demo: what they need to draw, for columns of every kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.demo.plots import _label_bins, draw_images, draw_marginals
from sundog.evaluation.tables.table_pair import choose_bins

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 99, "nullable": True},
            "sex": {"type": "categorical", "values": ["f", "m"]},
            "grade": {"type": "ordinal", "values": ["low", "high"]},
        }
    }
)


def _records(seed: int) -> Records:
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(0, column.size, 50) for name, column in SCHEMA.columns.items()}
    return Records(SCHEMA, codes, 50)


def test_marginals_of_all_kinds_of_columns_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "marginals.png"
    draw_marginals(_records(0), _records(1), list(SCHEMA.columns), path, 1.0)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_bins_are_labelled_by_their_first_value_and_nulls_last() -> None:
    age = SCHEMA.scalars["age"]
    labels = _label_bins(age, choose_bins(age))
    assert labels[0] == "0"
    assert labels[-1] == "missing"
    assert len(labels) == choose_bins(age).count


def test_rows_of_images_may_have_different_lengths(tmp_path: Path) -> None:
    path = tmp_path / "digits.png"
    draw_images([(np.ones((3, 8, 8)), np.zeros((2, 8, 8))), (np.ones((1, 8, 8)), np.ones((2, 8, 8)))], path, "Two rows")
    assert path.read_bytes().startswith(b"\x89PNG")
