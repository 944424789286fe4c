"""Learning a schema: what is found, what is never found, and the cost."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sundog.data.bins import QUANTILE_BINS, make_bins
from sundog.data.columns import CategoricalColumn, IntegerColumn
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.data.schema_learning import SchemaLearning, list_unknown_columns, prepare
from sundog.errors import BudgetExceededError, DataError, SchemaError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import DiscreteLaplace, Failure, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource

N = 4000
LEARNED: dict[str, dict[str, Any]] = {
    "city": {"type": "categorical", "learn": True},
    "grade": {"type": "ordinal", "learn": True},
    "visits": {"type": "integer", "learn": True},
    "weight": {"type": "continuous", "learn": True, "nullable": True},
    "seen": {"type": "datetime", "learn": True, "resolution": "day"},
    "income": {"type": "integer", "min": 0, "max": 1_000_000, "bins": "quantiles"},
    "score": {"type": "continuous", "learn": True, "bins": "quantiles"},
}


def make_schema(*names: str, **rest: Any) -> Schema:
    return Schema.from_dict({**rest, "columns": {name: LEARNED[name] for name in names or LEARNED}})


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    cities = np.array(["Berlin", "Hamburg", "München", "Köln"], dtype=object)
    frame = pd.DataFrame(
        {
            "city": cities[rng.choice(4, N, p=[0.5, 0.3, 0.15, 0.05])],
            "grade": rng.choice(["a", "b", "c"], N),
            "visits": rng.poisson(12, N) + 1,
            "weight": np.where(rng.random(N) < 0.1, np.nan, rng.normal(75, 12, N)),
            "seen": np.datetime64("2015-01-01") + rng.integers(0, 2000, N).astype("timedelta64[D]"),
            "income": np.minimum(rng.lognormal(10, 0.7, N).astype(int), 1_000_000),
            "score": rng.normal(-3, 1, N),
        }
    )
    frame.loc[0, "city"] = "a village of one"
    return frame


def learn_schema(
    frame: Any, schema: Schema, *, epsilon: float = 2.0, delta: float = 1e-6, seed: int = 0
) -> tuple[Schema, Ledger]:
    """Learn with fixed noise: one range in a thousand is wrong, which is not a failure."""
    ledger = Ledger(epsilon=100.0, delta=10 * delta, noise=NoiseSource.seeded(seed))
    return prepare(read(frame, schema), schema).learn(epsilon=epsilon, delta=delta, ledger=ledger), ledger


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


# --- ranges ---


@pytest.mark.parametrize("name", ["visits", "weight", "score"])
def test_a_learned_range_holds_nearly_everything_and_not_much_more(people: pd.DataFrame, name: str) -> None:
    column = learn_schema(people, make_schema(name))[0].columns[name]
    values = people[name].dropna().to_numpy(float)
    low, high = float(getattr(column, "min")), float(getattr(column, "max"))  # noqa: B009
    assert ((values >= low) & (values <= high)).mean() > 0.99
    assert high - low <= 8 * (values.max() - values.min() + 1)


def test_a_learned_range_does_not_follow_an_outlier(people: pd.DataFrame) -> None:
    with_outlier = pd.concat([people, people.iloc[:1].assign(visits=10**15)], ignore_index=True)
    schema, _ = learn_schema(with_outlier, make_schema("visits"))
    column = schema.columns["visits"]
    assert isinstance(column, IntegerColumn)
    assert column.max is not None
    assert column.max < 1000
    codes = encode(read(with_outlier, schema), schema).codes["visits"]
    assert column.decode(codes[-1:]).to_pylist() == [column.max]  # it is clamped


def test_negative_and_missing_numbers_are_learned_too() -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "integer", "learn": True, "nullable": True}}})
    values = [*range(-200, -100)] * 30 + [None] * 500
    column = learn_schema({"x": values}, schema)[0].columns["x"]
    assert isinstance(column, IntegerColumn)
    assert (column.min, column.max) == (-256, -64)


def test_learned_dates_span_the_bulk(people: pd.DataFrame) -> None:
    column = learn_schema(people, make_schema("seen"))[0].columns["seen"]
    low, high = (datetime.date.fromisoformat(str(getattr(column, end))) for end in ("min", "max"))
    days = people["seen"].dt.date
    assert ((days >= low) & (days <= high)).mean() > 0.97


def test_learned_dates_span_not_much_more_than_the_bulk(people: pd.DataFrame) -> None:
    spans = []
    for seed in range(9):
        column = learn_schema(people, make_schema("seen"), seed=seed)[0].columns["seen"]
        low, high = (datetime.date.fromisoformat(str(getattr(column, end))) for end in ("min", "max"))
        spans.append((high - low).days)
    assert np.median(spans) < 4 * 2000


VISITS = np.random.default_rng(0).poisson(12, N) + 1
DAYS = np.datetime64("2015-01-01") + np.random.default_rng(0).integers(0, 2000, N).astype("timedelta64[D]")


def complete_column(declared: dict[str, Any], values: Any, *, epsilon: float = 8.0) -> dict[str, Any]:
    schema = Schema.from_dict({"columns": {"x": {"learn": True, **declared}}})
    found, _ = learn_schema({"x": values}, schema, epsilon=epsilon)
    assert found.complete
    assert len(encode(read({"x": values}, found), found)) == len(values)
    return found.columns["x"].to_dict()


@pytest.mark.parametrize("kind", ["integer", "continuous"])
def test_a_declared_bound_is_kept_and_the_other_one_is_learned(kind: str) -> None:
    low = complete_column({"type": kind, "min": 0}, VISITS)
    assert low["min"] == 0
    assert 20 <= low["max"] <= 64
    high = complete_column({"type": kind, "max": 1000}, VISITS)
    assert 0 <= high["min"] <= 8
    assert high["max"] == 1000


@pytest.mark.parametrize("bound", ["min", "max"])
def test_a_declared_bound_beyond_everything_is_kept_too(bound: str) -> None:
    far = {"min": 10_000, "max": -10_000}[bound]
    found = complete_column({"type": "integer", bound: far}, VISITS)
    assert (found["min"], found["max"]) == (far, far)  # and every value is clamped to it
    dates = {"min": "2090-01-01", "max": "1930-01-01"}[bound]
    found = complete_column({"type": "datetime", "resolution": "day", bound: dates}, DAYS)
    assert (found["min"], found["max"]) == (dates, dates)


def test_a_declared_date_is_kept_and_the_other_one_is_learned() -> None:
    low = complete_column({"type": "datetime", "resolution": "day", "min": "2010-05-05"}, DAYS)
    assert low["min"] == "2010-05-05"
    assert "2019-01-01" <= low["max"] <= "2024-12-31"
    high = complete_column({"type": "datetime", "resolution": "day", "max": "2030-05-05"}, DAYS)
    assert "2010-01-01" <= high["min"] <= "2016-12-31"
    assert high["max"] == "2030-05-05"


@pytest.mark.parametrize(
    ("declared", "values", "kept"),
    [
        ({"type": "integer", "edges": [-500, 5, 12, 5000]}, VISITS, [5, 12]),
        ({"type": "integer", "edges": [-500, 5000]}, VISITS, None),
        ({"type": "integer", "min": -500, "edges": [-500, 5, 5000]}, VISITS, [-500, 5]),
        ({"type": "continuous", "edges": [-500.5, 5.5, 12.5, 5e9]}, VISITS, [5.5, 12.5]),
        ({"type": "datetime", "edges": ["1900-01-01", "2016-07-01", "2090-01-01"]}, DAYS, ["2016-07-01"]),
        ({"type": "datetime", "edges": ["1900-01-01", "2090-01-01"]}, DAYS, None),
    ],
    ids=str,
)
def test_edges_outside_the_learned_range_are_dropped(declared: dict[str, Any], values: Any, kept: Any) -> None:
    assert complete_column(declared, values).get("edges") == kept


def test_a_resolution_too_fine_for_the_learned_range_becomes_the_default() -> None:
    values = np.random.default_rng(0).normal(0, 1e6, N)
    found = complete_column({"type": "continuous", "resolution": 1e-12}, values)
    assert found["resolution"] == complete_column({"type": "continuous"}, values)["resolution"] == 1.0
    assert complete_column({"type": "continuous", "resolution": 1e-3}, values)["resolution"] == 1e-3


@pytest.mark.parametrize(
    "values",
    [
        [b"tea", b"milk"] * 500,
        np.array([b"tea", b"milk"] * 500),
        pa.array([b"tea", b"milk"] * 500),
        pa.array([b"tea", b"milk"] * 500).dictionary_encode(),
    ],
    ids=["list", "numpy", "arrow", "dictionary"],
)
def test_bytes_are_learned_as_the_text_they_are(values: Any) -> None:
    assert sorted(complete_column({"type": "categorical"}, values)["values"]) == ["milk", "other", "tea"]


def test_bytes_that_are_no_text_are_refused_before_anything_is_spent() -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "categorical", "learn": True}}})
    with pytest.raises(DataError, match="column 'x': holds bytes that are not UTF-8 text"):
        prepare(read({"x": pa.array([b"tea", b"\xff"] * 500)}, schema), schema)


def test_too_few_records_are_told_with_the_column() -> None:
    schema = Schema.from_dict({"columns": {"x": {"type": "integer", "learn": True}}})
    with pytest.raises(DataError, match="column 'x': too few records"):
        learn_schema({"x": [1, 2, 3]}, schema, epsilon=0.5)


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
