"""Table canaries: each changes cells that are its own, in every column, and scores are likelihood ratios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import special, stats
from tests.auditing.canaries.small_fit import SCHEMA, draw_table

from sundog.auditing.canaries.table_canaries import TableCanaries, compute_cell_log_ratios
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.independent.column_marginals import get_marginal

CANARIES = 40


def read_records(data: Any, schema: dict[str, Any]) -> Records:
    declared = Schema.from_dict(schema)
    return encode(read(data, declared), declared)


def count_cells(records: Records) -> dict[str, Any]:
    columns = records.schema.columns
    return {name: get_marginal(column).count(records.codes[name]) for name, column in columns.items()}


def test_a_canary_has_cells_of_its_own_and_records_keep_theirs() -> None:
    records = read_records(draw_table(), SCHEMA)
    table = TableCanaries(records, CANARIES)
    included = np.random.default_rng(0).random(CANARIES) < 0.5
    before, after = count_cells(records), count_cells(table.plant(included))
    for name, counts in after.items():
        assert counts[:-CANARIES].tolist() == before[name].tolist()
        assert counts[-CANARIES:].tolist() == included.astype(int).tolist()


def test_a_canary_has_as_many_records_as_a_person_may_have() -> None:
    data = {"who": ["a", "a", "b"], "on": [True, False, True]}
    schema = {"unit": "who", "cap": 3, "columns": {"on": {"type": "boolean"}}}
    planted = TableCanaries(read_records(data, schema), CANARIES).plant(np.arange(CANARIES) < 2)
    assert planted.unit is not None
    assert np.bincount(planted.unit).tolist() == [2, 1, 3, 3]
    assert count_cells(planted)["on"][-CANARIES:].tolist() == [3, 3] + [0] * (CANARIES - 2)


def test_public_columns_and_rules_are_left_out_and_sets_and_series_kept() -> None:
    schema = {
        "columns": {
            "a": {"type": "boolean"},
            "b": {"type": "boolean", "public": True},
            "items": {"type": "set", "universe": 5, "max_size": 2},
            "load": {"type": "series", "length": 3, "min": 0, "max": 1},
        },
    }
    data = {
        "a": [True, False],
        "b": [True, True],
        "items": [[1, 2], []],
        "load": np.array([[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]),
    }
    planted = TableCanaries(read_records(data, schema), CANARIES).plant(np.ones(CANARIES, bool))
    assert list(planted.schema.columns) == ["a", "items", "load"]
    assert planted.codes["items"].sum() == 2
    assert planted.codes["load"].shape == (2 + CANARIES, 3)


def test_a_table_without_a_private_column_of_one_value_is_refused() -> None:
    schema = {"columns": {"items": {"type": "set", "universe": 5, "max_size": 2}}}
    with pytest.raises(SundogError, match="private column with one value"):
        TableCanaries(read_records({"items": [[1], [2]]}, schema), CANARIES).plant(np.ones(CANARIES, bool))


@pytest.mark.parametrize("threshold", [-10.0, 0.5, 2.0])
def test_cells_are_scored_by_their_likelihood(threshold: float) -> None:
    """Against the true likelihoods of a threshold and a noise that the scores have to find out themselves."""
    rng = np.random.default_rng(0)
    included, deviation, shift = rng.random(20_000) < 0.5, 1.5, 2.0
    noisy = shift * included + deviation * rng.normal(size=len(included))
    cells = np.maximum(0.0, noisy - threshold)
    found = compute_cell_log_ratios(cells, shift=shift, prior=0.5)
    there, absent = stats.norm(shift, deviation), stats.norm(0, deviation)
    true = np.where(
        noisy > threshold,
        there.logpdf(noisy) - absent.logpdf(noisy),
        there.logcdf(threshold) - absent.logcdf(threshold),
    )
    assert abs(found - true).mean() < 0.1


def test_cells_that_are_all_zero_say_nothing() -> None:
    assert compute_cell_log_ratios(np.zeros(9), shift=1.0, prior=0.5).tolist() == [0.0] * 9


@dataclass
class Released:
    marginals: Mapping[str, Any]
    records: int


def test_a_canary_may_be_in_any_component() -> None:
    """One component in which nothing is known leaves half of the odds of the other."""
    table = TableCanaries(read_records(draw_table(), {"columns": {"size": SCHEMA["columns"]["size"]}}), 4000)
    rng = np.random.default_rng(0)
    cells = np.maximum(0, rng.normal(size=4010) + (np.arange(4010) % 2))
    one, nothing = Released({"size": cells / 4010}, 4010), Released({"size": np.zeros(4010)}, 1)
    (alone,) = [compute_cell_log_ratios(cells[-4000:], shift=1, prior=0.25)]
    assert table.score([one, nothing]) == pytest.approx(special.logsumexp([alone, 0 * alone], axis=0) - np.log(2))
