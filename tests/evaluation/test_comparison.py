"""Records of one evaluation: parts, shuffled columns, random numbers."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from tests.evaluation.small_tables import COLUMNS, SCHEMA

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.evaluation.comparison import Comparison, shuffle_columns, split, subsample


def test_the_floor_keeps_every_marginal_and_no_relation() -> None:
    rng = np.random.default_rng(0)
    schema = Schema.from_dict({"columns": {**COLUMNS, "items": {"type": "set", "universe": 5, "max_size": 5}}})
    age = rng.integers(0, 100, 2000).astype(np.uint8)
    items = np.repeat(rng.random((2000, 1)) < 0.3, 5, axis=1)
    codes = {"age": age, "sex": (age > 50).astype(np.uint8), "items": sparse.csr_array(items.astype(np.uint8))}
    records = Records(schema, codes, 2000)
    dealt = shuffle_columns(records, rng)
    assert np.array_equal(np.sort(dealt.codes["age"]), np.sort(age))
    assert np.array_equal(dealt.codes["items"].sum(axis=0), codes["items"].sum(axis=0))
    assert dealt.codes["items"].max() == 1
    assert abs(np.corrcoef(dealt.codes["age"], dealt.codes["sex"])[0, 1]) < 0.1
    both = dealt.codes["items"][:, [0]].multiply(dealt.codes["items"][:, [1]]).sum()
    assert 100 < both < 260  # 0.09 of 2,000, where it was 0.3 of them


def test_parts_of_records() -> None:
    records = Records(SCHEMA, {"age": np.arange(100, dtype=np.uint8), "sex": np.zeros(100, np.uint8)}, 100)
    rng = np.random.default_rng(0)
    first, second = split(records, 0.25, rng)
    assert sorted([*first.codes["age"], *second.codes["age"]]) == list(range(100))
    assert len(second) == 25
    few = subsample(records, 10, rng)
    assert len(few) == len(set(few.codes["age"].tolist())) == 10
    assert subsample(records, 100, rng) is records


def test_draws_for_one_purpose_depend_on_nothing_else() -> None:
    records = Records(SCHEMA, {"age": np.zeros(5, np.uint8), "sex": np.zeros(5, np.uint8)}, 5)
    one, other = Comparison(records, records, records, records), Comparison(records, records, records, records, seed=1)
    assert one.make_rng("a").random() == one.make_rng("a").random()
    assert one.make_rng("a").random() != one.make_rng("b").random()
    assert one.make_rng("a").random() != other.make_rng("a").random()
