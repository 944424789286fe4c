"""Learning a schema: categories, quantiles, and the cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.data.learning import LEARNED, N, learn_schema, make_schema

from sundog.data.bins import QUANTILE_BINS, make_bins
from sundog.data.columns import CategoricalColumn
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.data.schema_learning import SchemaLearning, list_unknown_columns, prepare
from sundog.errors import BudgetExceededError, DataError, SchemaError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import DiscreteLaplace, Failure, Pure
from sundog.privacy.ledger import Ledger

# --- what is to be learned ---


def test_unknown_columns_are_those_to_learn_and_those_to_cut() -> None:
    columns = {**LEARNED, "known": {"type": "boolean"}, "binned": {"type": "integer", "min": 0, "max": 9, "bins": 3}}
    assert list_unknown_columns(Schema.from_dict({"columns": columns})) == list(LEARNED)


def test_a_learned_range_that_is_also_cut_takes_two_measurements(people: pd.DataFrame) -> None:
    learning = prepare(read(people, make_schema()), make_schema())
    assert learning.measurements == len(LEARNED) + 1
    assert prepare(read(people, make_schema("income")), make_schema("income")).measurements == 1


def test_what_was_learned_is_complete_and_still_says_so(people: pd.DataFrame) -> None:
    schema, _ = learn_schema(people, make_schema())
    assert schema.complete
    assert list_unknown_columns(schema) == []
    assert [name for name, column in schema.columns.items() if column.learn] == [n for n in LEARNED if n != "income"]
    assert len(encode(read(people, schema), schema)) == N


# --- categories ---


def test_common_categories_are_found_and_one_of_a_kind_is_not(people: pd.DataFrame) -> None:
    for seed in range(50):
        column = learn_schema(people, make_schema("city"), epsilon=0.5, seed=seed)[0].columns["city"]
        assert isinstance(column, CategoricalColumn)
        assert column.values == ("Berlin", "Hamburg", "Köln", "München", "other")
    codes = encode(read(people, schema := learn_schema(people, make_schema("city"))[0]), schema).codes["city"]
    column = schema.columns["city"]
    assert isinstance(column, CategoricalColumn)
    assert column.decode(codes[:1]).to_pylist() == ["other"]


@pytest.mark.parametrize(("cap", "delta"), [(1, 0.01), (3, 0.03)])
def test_what_one_person_holds_is_published_as_rarely_as_delta_says(cap: int, delta: float) -> None:
    singles = 20_000
    schema = Schema.from_dict({"unit": "who", "cap": cap, "columns": {"name": {"type": "categorical", "learn": True}}})
    frame = {"who": np.arange(singles), "name": [f"n{i}" for i in range(singles)]}
    found = learn_schema(frame, schema, epsilon=1.0, delta=delta)[0].columns["name"]
    assert isinstance(found, CategoricalColumn)
    published = len(found.values or ()) - 1
    allowed = singles * delta / cap
    assert published <= allowed + 5 * np.sqrt(allowed)  # one key each: a cap may spread δ over more of them
    if cap == 1:
        assert published > 0.2 * allowed  # and the threshold is not so high that nothing would ever be learned


def test_one_person_with_many_records_does_not_make_a_category() -> None:
    columns = {"word": {"type": "categorical", "learn": True}}
    schema = Schema.from_dict({"unit": "who", "cap": 2, "columns": columns})
    who = [*range(3000), *[-1] * 3000]
    word = ["common"] * 3000 + ["secret"] * 3000
    for seed in range(30):
        column = learn_schema({"who": who, "word": word}, schema, epsilon=1.0, seed=seed)[0].columns["word"]
        assert isinstance(column, CategoricalColumn)
        assert column.values == ("common", "other")


def test_numbers_as_categories_are_learned_as_text() -> None:
    schema = Schema.from_dict({"columns": {"code": {"type": "categorical", "learn": True}}})
    found, _ = learn_schema({"code": [7, 12] * 500}, schema)
    assert found.columns["code"].to_dict()["values"] == ["12", "7", "other"]
    assert set(encode(read({"code": [7, 12]}, found), found).codes["code"].tolist()) == {0, 1}


def test_a_category_of_ones_own_stands_for_the_rest(people: pd.DataFrame) -> None:
    schema = Schema.from_dict({"columns": {"city": {**LEARNED["city"], "other": "elsewhere"}}})
    column = learn_schema(people, schema)[0].columns["city"]
    assert column.to_dict()["values"][-1] == "elsewhere"


# --- quantiles ---


@pytest.mark.parametrize("name", ["income", "score"])
def test_quantile_bins_hold_about_the_same(people: pd.DataFrame, name: str) -> None:
    schema, _ = learn_schema(people, make_schema(name), epsilon=4.0)
    column = schema.columns[name]
    bins = make_bins(column)
    assert 12 <= bins.count <= QUANTILE_BINS
    counts = np.bincount(bins.to_bins(encode(read(people, schema), schema).codes[name]), minlength=bins.count)
    assert counts.min() > 0.4 * N / QUANTILE_BINS
    assert counts.max() < 2.5 * N / QUANTILE_BINS


def test_quantiles_of_a_column_with_one_value_are_still_bins() -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "integer", "min": 0, "max": 9, "bins": "quantiles"}}})
    found, _ = learn_schema({"x": [4] * 1000}, schema, epsilon=4.0)
    assert 1 <= make_bins(found.columns["x"]).count <= 10


def test_quantiles_leave_missing_values_out() -> None:
    declared = {"type": "integer", "min": 0, "max": 999, "bins": "quantiles", "nullable": True}
    schema = Schema.from_dict({"columns": {"x": declared}})
    values = [*range(1000)] * 3 + [None] * 20_000
    found, _ = learn_schema({"x": values}, schema, epsilon=4.0)
    edges = found.columns["x"].to_dict()["edges"]
    assert 400 < np.median(edges) < 600


# --- what it costs ---


def test_the_charges_add_up_to_what_the_stage_was_given(people: pd.DataFrame) -> None:
    schema, ledger = learn_schema(people, make_schema(), epsilon=2.0, delta=1e-6)
    epsilon = delta = 0.0
    for charge in ledger.charges:
        if isinstance(charge.event, Failure):
            delta += charge.event.delta * charge.count
        else:
            assert isinstance(charge.event, DiscreteLaplace | Pure)
            epsilon += charge.event.epsilon * charge.count
    assert epsilon == pytest.approx(2.0)
    assert delta == pytest.approx(1e-6)
    assert compute_epsilon(ledger.charges, delta=1e-5) <= 2.0
    assert {charge.purpose.split(" of ")[1] for charge in ledger.charges} == set(schema.columns)


def test_a_unit_with_a_cap_pays_no_more_and_gets_more_noise(people: pd.DataFrame) -> None:
    frame = people.assign(who=np.arange(N))
    schema, ledger = learn_schema(frame, make_schema("visits", "city", unit="who", cap=4), epsilon=2.0)
    assert schema.complete
    assert compute_epsilon(ledger.charges, delta=1e-5) <= 2.0
    assert {type(charge.event) for charge in ledger.charges} == {Pure, Failure}


def test_nothing_is_learned_from_a_ledger_that_cannot_pay(people: pd.DataFrame) -> None:
    ledger = Ledger(epsilon=0.1, delta=1e-6)
    with pytest.raises(BudgetExceededError):
        prepare(read(people, make_schema("city")), make_schema("city")).learn(epsilon=1.0, delta=1e-7, ledger=ledger)
    assert ledger.charges == ()


def test_preparing_costs_nothing_and_says_what_is_wrong(people: pd.DataFrame) -> None:
    learning = prepare(read(people, make_schema()), make_schema())
    assert isinstance(learning, SchemaLearning)
    assert list(learning.values) == list(LEARNED)
    with pytest.raises(DataError, match=r"DataFrame: column 'visits': row 2: 'many' is not a whole number"):
        prepare(read(pd.DataFrame({"visits": ["1", "many"]}), make_schema("visits")), make_schema("visits"))
    with pytest.raises(DataError, match=r"DataFrame: column 'seen'"):
        prepare(read(pd.DataFrame({"seen": ["2020-01-01", "yesterday"]}), make_schema("seen")), make_schema("seen"))


@pytest.mark.parametrize(
    "declared",
    [
        {"type": "series", "length": 2, "learn": True},
        {"type": "image", "shape": [2, 2], "learn": True},
        {"type": "set", "universe": 3, "max_size": 1, "learn": True},
        {"type": "boolean", "learn": True},
    ],
    ids=lambda declared: declared["type"],
)
def test_other_types_cannot_be_learned(declared: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match=r"column 'x'.*`?learn`?"):
        Schema.from_dict({"columns": {"x": declared}})


# Whatever is wrong with a column that is to be learned must be said by `prepare`, before anything is spent.
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("visits", [1, 2, None]),
        ("visits", [1, 2, 3.7]),
        ("city", ["Berlin", None]),
        ("seen", ["2020-01-01", None]),
        ("score", [1.5, float("nan")]),
    ],
    ids=["empty integer", "fraction", "empty category", "empty date", "nan"],
)
def test_what_cannot_be_encoded_is_refused_before_anything_is_spent(name: str, values: list[Any]) -> None:
    with pytest.raises(DataError, match=f"column '{name}'"):
        prepare(read({name: values}, make_schema(name)), make_schema(name))


@pytest.mark.parametrize("kind", ["integer", "categorical", "datetime"])
def test_a_column_with_a_very_long_name_is_learned(kind: str) -> None:
    name = "n" * 300
    examples: dict[str, list[Any]] = {"integer": [1, 2], "categorical": ["a", "b"], "datetime": ["2020-01-01"]}
    values = examples[kind] * 1000
    schema = Schema.from_dict({"columns": {name: {"type": kind, "learn": True}}})
    assert learn_schema({name: values}, schema)[0].complete


# --- through the front door ---


def test_a_fit_that_learns_stays_within_its_budget(people: pd.DataFrame, tmp_path: Path) -> None:
    people.to_csv(tmp_path / "people.csv", index=False)
    synthesizer = Synthesizer("independent", epsilon=3.0, delta=1e-6).fit(tmp_path / "people.csv", make_schema())
    release = synthesizer.release_
    assert release.verify() == []
    assert 0.998 * 3.0 <= compute_epsilon(release.certificate.charges, delta=1e-6) <= 3.0
    assert release.schema.complete
    assert release.certificate.learned
    assert "a village of one" not in str(release.schema.to_dict())
    sample = release.sample(100, seed=0)
    assert set(sample["city"]) <= {"Berlin", "Hamburg", "München", "Köln", "other"}
