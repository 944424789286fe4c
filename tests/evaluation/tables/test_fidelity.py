"""Fidelity as a whole: identities, marginals, intervals, and what is shown of them."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.tables.two_tables import (
    DISTANCES,
    RELATIONS,
    SCHEMA,
    SCORES,
    bin_frame,
    compare,
    compute_distance,
    draw_people,
    encode_frame,
    evaluate_codes,
    get_value,
)

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.comparison import shuffle_columns
from sundog.evaluation.section import Section
from sundog.evaluation.tables.fidelity import METRICS, evaluate_fidelity
from sundog.evaluation.tables.marginal_distances import (
    measure_marginals,
)
from sundog.evaluation.tables.table_pair import TablePair

# --- identities ----------------------------------------------------------------------------------------------------


def test_a_table_is_at_no_distance_from_itself(frames: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    real = encode_frame(frames[0])
    section = evaluate_fidelity(compare(real, real))
    assert {name.removeprefix("fidelity.") for name in section.measures} == {*DISTANCES, *SCORES, *RELATIONS}
    assert {get_value(section, name) for name in DISTANCES} == {0.0}
    assert {get_value(section, name) for name in SCORES} == {1.0}


def test_the_order_of_rows_does_not_matter(frames: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    real = encode_frame(frames[0])
    section = evaluate_fidelity(compare(real, real.take(np.random.default_rng(0).permutation(len(real)))))
    assert all(get_value(section, name) == pytest.approx(0, abs=1e-12) for name in DISTANCES)
    assert all(get_value(section, name) == pytest.approx(1, abs=1e-12) for name in SCORES)


def test_independent_columns_keep_columns_and_lose_pairs(frames: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    real = encode_frame(frames[0])
    section = evaluate_fidelity(compare(real, shuffle_columns(real, np.random.default_rng(0))))
    assert get_value(section, "tvd_1way") == 0
    assert get_value(section, "column_shapes") == 1
    assert get_value(section, "tvd_2way") > 0.05
    assert get_value(section, "tvd_3way") > get_value(section, "tvd_2way")
    assert section.measures["fidelity.tvd_3way"].low > 0.02
    assert section.measures["fidelity.association_error"].low > 0.05


def test_tables_without_a_common_value_are_as_far_as_can_be() -> None:
    columns = {"a": {"type": "categorical", "values": ["x", "y"]}, "b": {"type": "integer", "min": 0, "max": 10}}
    section = evaluate_codes(columns, {"a": [0] * 9, "b": [0] * 9}, {"a": [1] * 7, "b": [10] * 7})
    assert get_value(section, "tvd_1way") == get_value(section, "tvd_2way") == 1
    assert (
        get_value(section, "column_shapes")
        == get_value(section, "column_pair_trends")
        == get_value(section, "quality")
        == 0
    )
    assert get_value(section, "category_coverage") == get_value(section, "category_adherence") == 0
    assert get_value(section, "wasserstein_1d") == 1


# --- intervals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ways", [1, 2])
def test_the_error_is_that_of_repeated_samples(ways: int) -> None:
    """Two distributions far apart, sampled again and again: what is claimed is what is seen."""
    schema = Schema.from_dict({"columns": {name: {"type": "integer", "min": 0, "max": 5} for name in "abc"}})
    rng = np.random.default_rng(0)
    real, synthetic = rng.dirichlet(np.ones(6), 3), rng.dirichlet(np.ones(6), 3)

    def sample(shares: Any, rows: int) -> Records:
        hidden = rng.random(rows)  # the same for all columns, so that they depend on each other
        mixed = [np.where(rng.random(rows) < 0.5, hidden, rng.random(rows)) for _ in shares]
        codes = {
            name: np.searchsorted(np.cumsum(share)[:-1], u) for name, share, u in zip("abc", shares, mixed, strict=True)
        }
        return Records(schema, {name: each.astype(np.uint8) for name, each in codes.items()}, rows)

    found = []
    for seed in range(150):
        comparison = compare(sample(real, 400), sample(synthetic, 300), seed)
        found.append(measure_marginals(TablePair.of(comparison), comparison).measures[f"fidelity.tvd_{ways}way"])
    values = np.array([each.value for each in found])
    errors = np.array([(each.high - each.value) / 1.96 for each in found])  # below, noise is allowed for as well
    assert values.mean() > 0.2
    assert errors.mean() == pytest.approx(values.std(ddof=1), rel=0.3)
    covered = np.mean([each.low <= values.mean() <= each.high for each in found])
    assert 0.88 <= covered <= 1.0


@pytest.fixture(scope="module")
def large() -> tuple[pd.DataFrame, pd.DataFrame]:
    return draw_people(60_000, 0), draw_people(60_000, 1, slope=0.7)


@pytest.mark.parametrize("rows", [500, 2000, 8000])
def test_intervals_of_samples_cover_the_distance_of_what_they_were_drawn_from(
    large: tuple[pd.DataFrame, pd.DataFrame], rows: int
) -> None:
    """The plain distance of samples is too large, the more so the fewer rows there are."""
    cut = [bin_frame(frame) for frame in large]
    for seed in range(3):
        drawn = [encode_frame(frame.sample(rows, random_state=seed)) for frame in large]
        comparison = compare(drawn[0], drawn[1])
        found = measure_marginals(TablePair.of(comparison), comparison)
        for ways in (1, 2, 3):
            sets = itertools.combinations(SCHEMA, ways)
            truth = np.mean([compute_distance(cut[0], cut[1], list(names)) for names in sets])
            measure = found.measures[f"fidelity.tvd_{ways}way"]
            assert measure.low <= truth <= measure.high, (ways, seed)


def test_two_samples_of_one_distribution_are_not_told_apart() -> None:
    """Neither in cells with many rows, nor where most cells have one; with and without as many rows."""
    rng = np.random.default_rng(0)
    columns = {name: {"type": "integer", "min": 0, "max": 19, "bins": 20} for name in "abc"}
    for real, synthetic in ((400, 400), (4000, 4000), (4000, 300)):
        tables = ({name: rng.integers(0, 20, rows).tolist() for name in columns} for rows in (real, synthetic))
        section = evaluate_codes(columns, *tables)
        for ways in (1, 2, 3):
            measure = section.measures[f"fidelity.tvd_{ways}way"]
            assert measure.low < 0.002 < measure.value, (ways, real, synthetic)
        assert {section.measures[f"fidelity.{name}"].high for name in ("column_shapes", "quality")} == {1.0}
        assert section.measures["fidelity.association_error"].low == 0
        for row in section.details["fidelity"]["tvd_pairs"]:
            assert row["low"] < 0.01


def test_intervals_shrink_with_more_rows() -> None:
    width = {}
    for rows in (200, 3200):
        section = evaluate_fidelity(
            compare(encode_frame(draw_people(rows, 0)), encode_frame(draw_people(rows, 1, slope=0.7)))
        )
        width[rows] = {name: measure.high - measure.low for name, measure in section.measures.items()}
    for name in ("tvd_1way", "association_error", "column_shapes", "column_pair_trends", "wasserstein_1d"):
        assert 2.5 < width[200][f"fidelity.{name}"] / width[3200][f"fidelity.{name}"] < 6.5, name


def test_a_sorted_table_has_the_same_error(frames: tuple[pd.DataFrame, pd.DataFrame], section: Section) -> None:
    """Blocks of neighbours would be alike inside, and claim far too much error."""
    ordered = [encode_frame(frame.sort_values(["age", "job", "seen"])) for frame in frames]
    found = evaluate_fidelity(compare(ordered[0], ordered[1]))
    for name in ("fidelity.tvd_1way", "fidelity.column_shapes"):
        widths = [each.measures[name].high - each.measures[name].low for each in (found, section)]
        assert 0.6 < widths[0] / widths[1] < 1.6


def test_values_lie_in_their_intervals_and_intervals_in_what_is_possible(section: Section) -> None:
    for name, measure in section.measures.items():
        if name.removeprefix("fidelity.") in RELATIONS:
            assert measure.low < measure.value < measure.high
            continue
        assert 0 <= measure.low < measure.value < measure.high or name.endswith(("coverage", "adherence"))
        assert 0 <= measure.low <= measure.value <= measure.high <= 1


def test_the_same_seed_gives_the_same_figures(frames: tuple[pd.DataFrame, pd.DataFrame], section: Section) -> None:
    comparison = compare(encode_frame(frames[0]), encode_frame(frames[1]))
    again, other = evaluate_fidelity(comparison), evaluate_fidelity(replace(comparison, seed=1))
    assert again.measures == section.measures
    assert again.details == section.details
    for name, measure in other.measures.items():
        if name.removeprefix("fidelity.") not in ("wasserstein_sliced", *RELATIONS):  # other directions, other halves
            assert measure.value == section.measures[name].value
    assert other.measures["fidelity.tvd_2way"].low != section.measures["fidelity.tvd_2way"].low


# --- what is shown -------------------------------------------------------------------------------------------------


def test_every_measure_is_explained(section: Section) -> None:
    assert set(section.metrics) == set(section.measures) <= set(METRICS)
    assert {name for name, metric in METRICS.items() if metric.better == "low"} == {
        f"fidelity.{name}" for name in (*DISTANCES, "relations_error", "pairs_error")
    }
    for metric in METRICS.values():
        assert metric.meaning.endswith(".")
        assert len(metric.label) < 40
    assert "newer versions leave out weakly related pairs" in METRICS["fidelity.column_pair_trends"].meaning
    json.dumps(section.details, allow_nan=False)
