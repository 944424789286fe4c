"""Held-out records that are copies of real ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.small_tables import COLUMNS, SCHEMA, make_frame, make_wide_frame

from sundog.data.schema import Schema
from sundog.evaluation.inputs import EvaluationRequest, read_inputs


@pytest.mark.parametrize("change", ["same", "shuffled", "half", "few values"])
def test_held_out_records_that_are_not_are_noticed(change: str) -> None:
    wide = Schema.from_dict({"columns": {**COLUMNS, "size": {"type": "integer", "min": 0, "max": 10**6}}})
    real, other = make_wide_frame(200, 0), make_wide_frame(200, 1)
    holdout = {"shuffled": real.sample(frac=1, random_state=0), "half": pd.concat([real[:100], other[:100]])}
    schema = wide
    if change == "few values":  # every record has a twin: only the very same records tell
        schema = Schema.from_dict({"columns": {"sex": COLUMNS["sex"]}})
        assert read_inputs(EvaluationRequest(other, real=real, holdout=other, schema=schema)).warning is None
    said = read_inputs(EvaluationRequest(other, real=real, holdout=holdout.get(change, real), schema=schema)).warning
    assert said is not None
    assert f"{50 if change == 'half' else 100}% of the held-out records are also among the real ones" in said
    assert read_inputs(EvaluationRequest(other, real=real, holdout=other, schema=wide)).warning is None


def test_people_who_are_alike_are_not_taken_for_copies() -> None:
    """Of 200 kinds of people most that are held out have a twin among the real ones."""
    for seed in range(20):
        inputs = read_inputs(
            EvaluationRequest(
                make_frame(60, 0), real=make_frame(400, 2 * seed), holdout=make_frame(200, 2 * seed + 1), schema=SCHEMA
            )
        )
        assert inputs.warning is None
    again = make_frame(400, 1).sample(frac=1, random_state=0)
    assert (
        read_inputs(EvaluationRequest(make_frame(60, 0), real=make_frame(400, 1), holdout=again, schema=SCHEMA)).warning
        is not None
    )


@pytest.mark.parametrize("kind", ["series", "set"])
def test_held_out_arrays_that_are_not_are_noticed(kind: str) -> None:
    columns = {
        "series": {"type": "series", "length": 4, "min": 0, "max": 1},
        "set": {"type": "set", "universe": 30, "max_size": 30},
    }
    schema = Schema.from_dict({"columns": {"x": columns[kind]}})

    def arrays(seed: int) -> dict[str, Any]:
        drawn = np.random.default_rng(seed).random((40, 4 if kind == "series" else 30))
        return {"x": drawn if kind == "series" else [np.flatnonzero(row < 0.5).tolist() for row in drawn]}

    for holdout, has_warning in ((arrays(0), True), (arrays(1), False)):
        request = EvaluationRequest(arrays(2), real=arrays(0), holdout=holdout, schema=schema)
        assert (read_inputs(request).warning is not None) == has_warning
