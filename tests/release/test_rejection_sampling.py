"""Every sampled record satisfies every rule: for each kind, under conditions, and in what is written."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sundog.data.bins import make_bins
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.independent.independent import Independent
from sundog.privacy.ledger import Ledger
from sundog.release.certificate import certify
from sundog.release.release import Release

MONEY = {"type": "continuous", "min": 0, "max": 50, "resolution": 0.01, "nullable": True}
COLUMNS: dict[str, dict[str, Any]] = {
    "school": {"type": "ordinal", "values": ["none", "high", "uni"]},
    "years": {"type": "integer", "min": 0, "max": 20},
    "rent": MONEY,
    "food": MONEY,
    "total": {**MONEY, "max": 80},
    "came": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "resolution": "day", "format": "%d.%m.%Y"},
    "left": {"type": "datetime", "min": "2020-03-01", "max": "2021-03-31", "resolution": "hour", "nullable": True},
    "low": {"type": "continuous", "min": 0.1, "max": 9, "resolution": 0.1, "dtype": "float32"},
    "high": {"type": "continuous", "min": 0, "max": 8, "resolution": 0.1, "dtype": "float32"},
    "city": {"type": "categorical", "values": ["Lyon", "Nice", "Rome"]},
    "country": {"type": "categorical", "values": ["FR", "IT"], "nullable": True},
    "age": {"type": "integer", "min": 10, "max": 30},
}
PAIRS = {("Lyon", "FR"), ("Nice", "FR"), ("Rome", "IT"), ("Rome", None)}
YEARS = {"none": 0, "high": 12, "uni": 16}


def _decimal(values: pd.Series[Any]) -> Any:
    return values.map(lambda value: Decimal(repr(value)) if pd.notna(value) else None)


def _sums(frame: pd.DataFrame) -> Any:
    known = frame.dropna(subset=["rent", "food"])
    rest = frame.drop(known.index)
    exact = (_decimal(known["rent"]) + _decimal(known["food"]) == _decimal(known["total"])).all()
    return exact and rest["total"].isna().all()


# Each kind of rule, and a check of records as values that knows nothing of codes.
KINDS: dict[str, tuple[Any, Callable[[pd.DataFrame], Any]]] = {
    "table": (
        {"column": "years", "from": "school", "table": YEARS},
        lambda frame: (frame["years"] == frame["school"].map(YEARS)).all(),
    ),
    "sum": ("total = rent + food", _sums),
    "times": ("came < left", lambda frame: ((frame["came"] < frame["left"]) | frame["left"].isna()).all()),
    "numbers": ("low < high", lambda frame: (frame["low"] < frame["high"]).all()),
    "combinations": (
        {"columns": ["city", "country"], "allowed": [list(pair) for pair in PAIRS]},
        lambda frame: set(frame["city"] + frame["country"].fillna("-")) <= {f"{city}{of or '-'}" for city, of in PAIRS},
    ),
    "nulls": (
        {"null_together": ["rent", "country", "left"]},
        lambda frame: frame[["rent", "country", "left"]].isna().sum(axis=1).isin([0, 3]).all(),
    ),
    "when": (
        {"when": ["age < 18", "city in Lyon, Rome"], "then": ["school != uni", "rent <= 20.5"]},
        lambda frame: (
            ~((frame["age"] < 18) & frame["city"].isin(["Lyon", "Rome"]))
            | ((frame["school"] != "uni") & (frame["rent"] <= 20.5))
        ).all(),
    ),
}  # fmt: skip
every_kind = pytest.mark.parametrize("kind", KINDS)
CONDITIONS: dict[str, list[str]] = {
    "table": ["years >= 12", "school != uni"],
    "sum": ["total > 60", "rent < 35"],
    "times": ["came >= 2020-06-01", "left < 2020-09-01"],
    "numbers": ["low > 4", "high <= 6"],
    "combinations": ["country =", "age > 20"],
    "nulls": ["rent != "],
    "when": ["age = 17", "rent > 10"],
}


def schema_of(*rules: Any, columns: dict[str, Any] | None = None) -> Schema:
    return Schema.from_dict({"columns": columns or COLUMNS, "rules": list(rules)})


def release_of(schema: Schema, **chances: list[float]) -> Release:
    """A release of independent columns: all bins are equally likely, unless chances are given."""
    modelled = schema.modelled
    sizes = {name: make_bins(column).count for name, column in modelled.columns.items()}
    marginals = {name: np.array(chances.get(name, np.full(size, 1 / size))) for name, size in sizes.items()}
    certificate = certify(Ledger(epsilon=1.0, delta=1e-6), schema)
    return Release(schema, Independent(modelled, marginals, 1000), certificate)


@every_kind
def test_no_record_breaks_a_rule(kind: str) -> None:
    rule, holds = KINDS[kind]
    frame = release_of(schema_of(rule)).sample(20_000, seed=0)
    assert len(frame) == 20_000
    assert holds(frame)
    assert not holds(release_of(schema_of()).sample(20_000, seed=0))  # and the check would find it


@every_kind
def test_no_record_breaks_a_rule_under_conditions(kind: str) -> None:
    rule, holds = KINDS[kind]
    release = release_of(schema_of(rule))
    frame = release.sample(3000, seed=1, where=CONDITIONS[kind])
    assert len(frame) == 3000
    assert holds(frame)
    assert _satisfies(release, frame, CONDITIONS[kind])


def _satisfies(release: Release, frame: pd.DataFrame, where: list[str]) -> bool:
    """Whether the records are among those that the conditions select, by a column at a time."""
    from sundog.data.conditions import encode_conditions

    for name, allowed in encode_conditions(where, release.schema, {}).items():
        column = release.schema.scalars[name].tighten()
        values = [None if pd.isna(value) else value for value in frame[name]]
        dated = [value.to_pydatetime() if isinstance(value, pd.Timestamp) else value for value in values]
        if not allowed.includes(column.encode(dated, where="")).all():
            return False
    return True


def fit_marginals(schema: Schema) -> Release:
    """Return a release of a model that gives impossible cells probability zero."""
    return Synthesizer("marginals", 3.0, 1e-6, seed=0).fit(release_of(schema).sample(3000, seed=2), schema).release_


@every_kind
def test_a_model_that_knows_the_rules_breaks_none(kind: str) -> None:
    rule, holds = KINDS[kind]
    release = fit_marginals(schema_of(rule))
    assert holds(release.sample(5000, seed=0))
    assert holds(release.sample(2000, seed=1, where=CONDITIONS[kind]))
    assert release.measure_acceptance() >= release_of(schema_of(rule)).measure_acceptance()


@pytest.mark.slow
@every_kind
@pytest.mark.parametrize("make", [release_of, fit_marginals])
def test_none_of_a_million_records_breaks_a_rule(make: Callable[[Schema], Release], kind: str) -> None:
    rule, holds = KINDS[kind]
    release = make(schema_of(rule))
    assert holds(release.sample(1_000_000, seed=0))
    assert holds(release.sample(1_000_000, seed=1, where=CONDITIONS[kind]))


def test_all_rules_hold_together_in_every_file(tmp_path: Path) -> None:
    release = release_of(schema_of(*(rule for rule, _ in KINDS.values())))
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        release.write(path, 4000, seed=3)
    text = pd.read_csv(tmp_path / "a.csv", parse_dates=["left"])
    text["came"] = pd.to_datetime(text["came"], format="%d.%m.%Y")
    for frame in (text, pd.read_parquet(tmp_path / "a.parquet")):
        assert len(frame) == 4000
        assert [kind for kind, (_, holds) in KINDS.items() if not holds(frame)] == []
        assert set(frame.columns) == set(COLUMNS)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_rules_on_derived_columns_hold_in_any_order(order: tuple[int, ...]) -> None:
    """A rule about a column that is derived from a derived column, written before or after them."""
    rules = [
        {"when": "years = 16", "then": "total > 40"},
        {"column": "years", "from": "school", "table": YEARS},
        "total = rent + food",
    ]
    frame = release_of(schema_of(*(rules[place] for place in order))).sample(3000, seed=0)
    assert (frame.loc[frame["years"] == 16, "total"] > 40).all()
    assert set(frame["years"]) == {0, 12, 16}
    assert _sums(frame)


# --- the distribution ---

SMALL = {
    "a": {"type": "integer", "min": 0, "max": 3},
    "b": {"type": "integer", "min": 0, "max": 3},
    "sum": {"type": "integer", "min": 0, "max": 5},
}


@pytest.mark.parametrize("where", [[], ["sum >= 3"], ["a > 0", "sum in 2, 4"]])
def test_records_have_the_distribution_of_the_model_given_the_rules(where: list[str]) -> None:
    p, q = [0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.4, 0.1]
    release = release_of(schema_of("sum = a + b", "a <= b", columns=SMALL), a=p, b=q)
    conditions: dict[str, Callable[[int, int], bool]] = {
        "sum >= 3": lambda a, b: a + b >= 3,
        "a > 0": lambda a, b: a > 0,
        "sum in 2, 4": lambda a, b: a + b in (2, 4),
    }
    exact = {
        (a, b): p[a] * q[b]
        for a, b in itertools.product(range(4), repeat=2)
        if a <= b and a + b <= 5 and all(conditions[text](a, b) for text in where)
    }
    frame = release.sample(50_000, seed=0, where=where)
    found = frame.groupby(["a", "b"]).size() / len(frame)
    assert set(found.index) == set(exact)
    total = sum(exact.values())
    assert all(abs(found[cell] - chance / total) < 0.01 for cell, chance in exact.items())


def test_a_seed_fixes_the_records() -> None:
    release = release_of(schema_of(*(rule for rule, _ in KINDS.values())))
    first, again, other = (release.sample(2000, seed=seed) for seed in (5, 5, 6))
    assert first.equals(again)
    assert not first.equals(other)


def test_a_rule_that_no_record_can_break_changes_no_other_column() -> None:
    """What follows from a table costs no draws."""
    plain = {name: column for name, column in COLUMNS.items() if name != "years"}
    rule, _ = KINDS["table"]
    without = release_of(schema_of(columns=plain)).sample(1000, seed=0)
    derived = release_of(schema_of(rule)).sample(1000, seed=0)
    assert derived[list(plain)].equals(without)
    assert release_of(schema_of(rule)).measure_acceptance() == 1.0


@pytest.mark.parametrize("n", [0, 1, 7])
def test_few_records_are_drawn_as_well(n: int) -> None:
    frame = release_of(schema_of("came < left", "total = rent + food")).sample(n, seed=0)
    assert frame.shape == (n, len(COLUMNS))


# --- what cannot be drawn ---


def test_rules_that_leave_almost_nothing_are_told() -> None:
    columns = {name: {"type": "integer", "min": 0, "max": 9999} for name in "ab"}
    release = release_of(schema_of({"when": "a >= 0", "then": "b = 7"}, columns=columns))
    with pytest.raises(DataError) as error:
        release.sample(10, seed=0)
    said = str(error.value)
    assert said.startswith("the rules of the schema leave ")
    assert "records that were drawn (0." in said
    assert "`when a >= 0 then b = 7` alone rejects " in said
    assert "fit a model that learns these columns together" in said
    assert "\n" not in said


def test_conditions_that_leave_almost_nothing_are_told() -> None:
    columns = {name: {"type": "integer", "min": 0, "max": 9999} for name in "ab"}
    release = release_of(schema_of("a <= b", columns=columns))
    with pytest.raises(DataError, match="the conditions and rules of the schema leave 0 of "):
        release.sample(10, seed=0, where=["a > 5000", "b < 5000"])


def test_a_condition_that_the_table_excludes_is_told() -> None:
    release = release_of(schema_of(KINDS["table"][0]))
    with pytest.raises(DataError, match="no value of 'school' satisfies the conditions on 'years'"):
        release.sample(10, where="years = 3")
    with pytest.raises(DataError, match="on 'years' and 'school' together"):
        release.sample(10, where=["years = 12", "school = uni"])


def test_sets_are_redrawn_with_their_records() -> None:
    """A set column is sparse, and its rows are kept or left with the others."""
    columns = {
        "page": {"type": "set", "universe": 5, "max_size": 5},
        **{name: COLUMNS[name] for name in ("came", "left")},
    }
    schema = schema_of("came < left", columns=columns)
    modelled = schema.modelled
    marginals = {
        name: np.full(make_bins(column).count, 1 / make_bins(column).count) for name, column in modelled.scalars.items()
    }
    model = Independent(modelled, {"page": np.full(5, 0.5), **marginals}, 100)
    release = Release(schema, model, certify(Ledger(epsilon=1.0, delta=1e-6), schema))
    with pytest.raises(DataError, match="leave 0 of "):
        release.sample(5, seed=0, where=["came > 2020-10-01", "left < 2020-05-01"])
    arrays = release.sample(500, seed=0, as_="arrays")
    assert arrays["page"].shape == (500, 5)
    assert len(arrays["came"]) == 500


def test_the_certificate_says_that_rules_are_public(tmp_path: Path) -> None:
    release = release_of(schema_of("came < left"))
    line = "the rules between columns that the schema declares, and that every record satisfies them"
    assert line in release.certificate.assumed_public
    assert not any("rules" in line for line in release_of(schema_of()).certificate.assumed_public)
    release.save(tmp_path / "a.sundog")
    loaded = Release.load(tmp_path / "a.sundog")
    assert loaded.schema == release.schema
    assert loaded.sample(50, seed=1).equals(release.sample(50, seed=1))
    bare = release.certificate.model_copy(update={"assumed_public": release.certificate.assumed_public[:1]})
    assert any("assumes public" in problem for problem in bare.recheck(release.schema))
