"""Marginals against pandas, and the distances that sampling alone makes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.tables.two_tables import (
    SCHEMA,
    bin_frame,
    compare,
    compute_distance,
    encode_frame,
    get_value,
)

from sundog.evaluation.section import Section
from sundog.evaluation.tables.marginal_distances import (
    estimate_chance_distance,
    measure_distance,
    number_cells,
)
from sundog.evaluation.tables.table_pair import TablePair


@pytest.mark.parametrize(("ways", "name"), [(1, "columns"), (2, "pairs"), (3, "triples")])
def test_marginals_are_those_of_pandas(
    frames: tuple[pd.DataFrame, pd.DataFrame], section: Section, ways: int, name: str
) -> None:
    real, synthetic = map(bin_frame, frames)
    found = {tuple(row["columns"]): row["value"] for row in section.details["fidelity"][f"tvd_{name}"]}
    expected = {each: compute_distance(real, synthetic, list(each)) for each in itertools.combinations(SCHEMA, ways)}
    assert found == pytest.approx(expected, abs=1e-12)
    assert get_value(section, f"tvd_{ways}way") == pytest.approx(np.mean(list(expected.values())), abs=1e-12)


def test_a_resample_is_the_table_of_the_rows_it_draws(frames: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Cells of one table only share a number, and blocks are counted once: neither may change any resample."""
    tables = TablePair.of(compare(encode_frame(frames[0]), encode_frame(frames[1])))
    names = ["age", "income", "job"]
    estimates = measure_distance(tables, number_cells(*(tables.bins[name] for name in names))).estimates
    for place in (0, 1, 57, 100):
        drawn = []
        for side, frame in zip((tables.real, tables.synthetic), frames, strict=True):
            times = side.weights[place].astype(int)[side.of_row]
            drawn.append(bin_frame(frame).loc[np.repeat(np.arange(len(frame)), times)])
        assert estimates[place] == pytest.approx(compute_distance(drawn[0], drawn[1], names), abs=1e-12)


def test_noise_is_allowed_for_where_differences_may_be_noise() -> None:
    """By hand: ½ √(rows of a cell / (n m)), summed over the cells that differ by less than 1.96 of such errors."""
    real, synthetic = np.array([30, 10, 60, 0]), np.array([40, 8, 1, 1])
    # The first and the third cell differ by 0.5 and 0.58, errors of 0.12 and 0.11: beyond doubt.
    assert estimate_chance_distance(real, synthetic) == pytest.approx((math.sqrt(18 / 5000) + math.sqrt(1 / 5000)) / 2)
    rng = np.random.default_rng(0)
    for cells_, rows, others in ((5, 50, 50), (300, 50, 50), (300, 400, 100)):  # never less than what noise does
        shares = rng.dirichlet(np.ones(cells_))
        pairs = [(rng.multinomial(rows, shares), rng.multinomial(others, shares)) for _ in range(300)]
        noise = np.mean([np.abs(one / rows - other / others).sum() / 2 for one, other in pairs])
        assert noise <= np.mean([estimate_chance_distance(one, other) for one, other in pairs]) <= 1.6 * noise
