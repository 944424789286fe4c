"""What can be asked of synthetic records, and what is said where it cannot."""

from __future__ import annotations

from datetime import date, datetime
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sundog.data.code_set import CodeSet
from sundog.data.conditions import encode_conditions
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.models.independent.independent import Independent
from sundog.privacy.ledger import Ledger
from sundog.release.certificate import certify
from sundog.release.release import Release

COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"type": "integer", "min": 18, "max": 90},
    "pay": {"type": "integer", "min": 0, "max": 10_000, "step": 7, "nullable": True},
    "price": {"type": "continuous", "min": 0, "max": 9999, "resolution": 0.5, "format": "1.234,5"},
    "weight": {"type": "continuous", "min": 0, "max": 1, "resolution": 0.01},
    "born": {"type": "datetime", "min": "1990-01-01", "max": "1999-12-31", "resolution": "day", "nullable": True},
    "seen": {
        "type": "datetime",
        "min": "2020-03-28",
        "max": "2020-03-31",
        "resolution": "hour",
        "timezone": "Europe/Berlin",
    },
    "visit": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "resolution": "day", "format": "%d.%m.%Y"},
    "job": {"type": "categorical", "values": ["cook", "nurse", "a, b", "it's", " x"], "nullable": True},
    "pain": {"type": "ordinal", "values": ["none", "some", "much"]},
    "smokes": {"type": "boolean"},
    "a>=b": {"type": "integer", "min": 0, "max": 9},
    "born in": {"type": "categorical", "values": ["in", "x=y"]},
}
SCHEMA = Schema.from_dict({"columns": COLUMNS})


def list_selected(where: Any, name: str) -> list[Any]:
    """The values that a condition allows, one by one."""
    (codes,) = encode_conditions(where, SCHEMA, {}).values()
    column: Any = SCHEMA.columns[name]
    everything = column.decode(np.arange(column.size)).to_pylist()
    return [value for code, value in enumerate(everything) if code in codes]


@pytest.mark.parametrize(
    ("where", "name", "is_allowed"),
    [
        ("age>=40", "age", lambda v: v >= 40),
        ("age > 40", "age", lambda v: v > 40),
        (["age>=40", "age<65"], "age", lambda v: 40 <= v < 65),
        (["age>=40", "age!=41", "age not in 42,43"], "age", lambda v: v >= 40 and v not in (41, 42, 43)),
        ("age<=40.5", "age", lambda v: v <= 40.5),
        ("age>1e1", "age", lambda v: True),
        ("age in 20, 21,90", "age", lambda v: v in (20, 21, 90)),
        ({"age": range(30, 40)}, "age", lambda v: 30 <= v < 40),
        ({"age": {30, 31}}, "age", lambda v: v in (30, 31)),
        ({"age": np.array([30, 31])}, "age", lambda v: v in (30, 31)),
        ({"age": pd.Series([30, 31])}, "age", lambda v: v in (30, 31)),
        ("pay>=9999", "pay", lambda v: v is not None and v >= 9999),
        ("pay<8", "pay", lambda v: v is not None and v < 8),
        ("pay!=7", "pay", lambda v: v is not None and v != 7),
        ("pay=", "pay", lambda v: v is None),
        ("pay!=", "pay", lambda v: v is not None),
        ("pay in 7,,14", "pay", lambda v: v in (7, None, 14)),
        ({"pay": [None, 7]}, "pay", lambda v: v in (None, 7)),
        ("weight>0.07", "weight", lambda v: v > 0.07),
        ("weight<=0.07", "weight", lambda v: v <= 0.07),
        ("weight<inf", "weight", lambda v: True),
        ("price>=1.234,5", "price", lambda v: v >= 1234.5),
        ("born>=1995-06-15", "born", lambda v: v is not None and v >= datetime(1995, 6, 15)),
        ("born>1995-06-15T12:00:00", "born", lambda v: v is not None and v > datetime(1995, 6, 15, 12)),
        ("born<1900-01-01", "born", None),
        ("born<2100-01-01", "born", lambda v: v is not None),
        (["visit>=05.03.2020", "visit<01.04.2020"], "visit", lambda v: (3, 5) <= (v.month, v.day) < (4, 1)),
        (["visit>=2020-03-05", "visit<01.04.2020"], "visit", lambda v: (3, 5) <= (v.month, v.day) < (4, 1)),
        ("visit in 2020-03-05,06.03.2020", "visit", lambda v: v.month == 3 and v.day in (5, 6)),
        ("seen>=2020-03-29", "seen", lambda v: v.date() >= date(2020, 3, 29)),
        ("seen<2020-03-29T04:00:00+02:00", "seen", lambda v: v.isoformat() < "2020-03-29T04"),
        ("job in cook,nurse", "job", lambda v: v in ("cook", "nurse")),
        ('job in cook,"a, b"', "job", lambda v: v in ("cook", "a, b")),
        ("job in cook,'a, b'", "job", lambda v: v in ("cook", "a, b")),
        ("job IN (cook, it's)", "job", lambda v: v in ("cook", "it's")),
        ("job=a, b", "job", lambda v: v == "a, b"),
        ("job='a, b'", "job", lambda v: v == "a, b"),
        ("job = cook", "job", lambda v: v == "cook"),
        ("job= x", "job", lambda v: v == " x"),
        ("job!=cook", "job", lambda v: v not in ("cook", None)),
        ("job not in cook,nurse", "job", lambda v: v not in ("cook", "nurse", None)),
        ("pain>=some", "pain", lambda v: v in ("some", "much")),
        ("pain<some", "pain", lambda v: v == "none"),
        ("smokes!=yes", "smokes", lambda v: v is False),
        ("a>=b>=3", "a>=b", lambda v: v >= 3),
        ('"a>=b"=3', "a>=b", lambda v: v == 3),
        ("born in=x=y", "born in", lambda v: v == "x=y"),
        ("born in in in,x=y", "born in", lambda v: True),
    ],
    ids=lambda given: "" if callable(given) else repr(given),
)  # fmt: skip
def test_conditions_select_the_values_they_say(where: Any, name: str, is_allowed: Any) -> None:
    if is_allowed is None:
        with pytest.raises(DataError, match=f"no value of '{name}'"):
            list_selected(where, name)
        return
    column: Any = SCHEMA.columns[name]
    everything = column.decode(np.arange(column.size)).to_pylist()
    assert list_selected(where, name) == [value for value in everything if is_allowed(value)]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("age>90", "where: no value of 'age' satisfies age>90"),
        (["age>=40", "age<40"], "where: no value of 'age' satisfies age>=40 and age<40 together"),
        (["age>=40", "age=30"], "where: no value of 'age' satisfies age>=40 and age=30 together"),
        ("age!=17", "where: column 'age': '17' is below min (18); ask for a value that the schema declares"),
        ("age>=old", "where: column 'age': 'old' is not a number; compare with a number"),
        ("born>=yesterday", "where: column 'born': 'yesterday' is not a time written in ISO 8601; "),
        ("born>=1995-01-01T00:00:00+01:00", "where: column 'born': '1995-01-01T00:00:00+01:00' has a timezone"),
        ("job<nurse", "where: column 'job' has no order; use =, != or in"),
        ("smokes>=1", "where: column 'smokes' has no order; use =, != or in"),
        ("pain>=lots", "where: column 'pain': 'lots' is not a declared value"),
        ("job in cook,tinker", "where: column 'job': 'tinker' is not a declared value"),
        ("agee>=40", "where: there is no column 'agee'; did you mean 'age'?"),
        ("Age>=40", "where: there is no column 'Age'; did you mean 'age'?"),
        ("height in 1,2", "where: there is no column 'height'; did you mean 'weight'?"),
        ("qqq in 1,2", "where: there is no column 'qqq'; the columns are age, pay, price, weight"),
        ({"agee": 40}, "where: there is no column 'agee'; did you mean 'age'?"),
        ("age", "where: 'age' is not a condition; write it as column=value, column>=value or column in a,b"),
        ("age within 1,2", "is not a condition"),
        ("", "where: '' is not a condition"),
        (">=40", "where: '>=40' is not a condition"),
        (["age>=40", 7], "where: 7 is not a condition; write it as text, such as 'age>=40'"),
        (40, "where: give a mapping of columns to values or a list of conditions, not 40"),
        ('job in "cook\nnurse', "where: "),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_said_in_one_line(where: Any, said: str) -> None:
    with pytest.raises(DataError) as error:
        encode_conditions(where, SCHEMA, {})
    assert str(error.value).startswith(said) or said in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@given(st.sampled_from(["<", "<=", ">", ">="]), st.integers(-50, 250), st.integers(1, 9), st.integers(-20, 120))
def test_ranges_of_any_lattice(operator: str, bound: int, step: int, high: int) -> None:
    """Against comparing every value."""
    column = {"type": "integer", "min": -20, "max": high, "step": step}
    schema = Schema.from_dict({"columns": {"x": column}})
    whole: Any = schema.columns["x"]
    values = whole.decode(np.arange(whole.size)).to_pylist()
    compare = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}[operator]
    expected = CodeSet.of(code for code, value in enumerate(values) if compare(value, bound))
    try:
        assert encode_conditions(f"x{operator}{bound}", schema, {})["x"] == expected
    except DataError:
        assert not expected


# --- drawn records ---


@cache
def release() -> Release:
    marginals = {"age": np.zeros(73), "pay": np.zeros(65)}
    marginals["age"][[2, 30, 60]] = 0.2, 0.5, 0.3
    marginals["pay"][[0, 1, 64]] = 0.5, 0.25, 0.25
    schema = Schema.from_dict({"columns": {name: COLUMNS[name] for name in marginals}})
    model = Independent(schema, marginals, 1000)
    return Release(schema, model, certify(Ledger(epsilon=1.0, delta=1e-6), schema))


def test_bins_that_are_covered_in_part_weigh_what_is_covered() -> None:
    """The first bin of pay has 22 codes; 11 of them and the 22 of the second are left."""
    pay: Any = release().schema.columns["pay"]
    model: Any = release().model
    assert model.log_evidence({"pay": CodeSet.between(11, 43)}) == pytest.approx(np.log(0.25 + 0.25))
    drawn = next(release().batches(20_000, seed=1, where=["pay>=77", "pay<308"])).codes["pay"]
    assert set(drawn.tolist()) == set(range(11, 44))
    assert abs(int((drawn < 22).sum()) - 10_000) < 2
    assert stats.chisquare(np.bincount(drawn - 11, minlength=33)[11:]).pvalue > 1e-6
    assert pay.decode([11, 43]).to_pylist() == [77, 301]


def test_a_range_keeps_what_the_model_knows_and_changes_no_other_column() -> None:
    free = release().sample(1000, seed=3)
    drawn = release().sample(1000, seed=3, where="age>=40")
    assert drawn["age"].value_counts().to_dict() == {48: 625, 78: 375}
    assert drawn["pay"].tolist() == free["pay"].tolist()


def test_what_was_measured_as_impossible_can_be_asked_for() -> None:
    drawn = release().sample(1000, seed=3, where={"age": [20, 21, 22], "pay": None})
    assert set(drawn["age"]) == {20}  # the only one of them that occurs
    assert set(release().sample(300, seed=3, where={"age": [21, 22]})["age"]) == {21, 22}
    assert drawn["pay"].isna().all()


def test_the_same_conditions_and_seed_give_the_same_records() -> None:
    one, other = (release().sample(50, seed=1, where=["age in 20,48", "pay>100"]) for _ in range(2))
    pd.testing.assert_frame_equal(one, other)
    assert len(release().sample(0, where="age>=40")) == 0
