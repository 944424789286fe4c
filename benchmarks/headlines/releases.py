"""Releases whose truth is known: real tables, and synthetic records made from them in known ways."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sundog.data.schema import Schema
from sundog.evaluation.evaluator import Bounds, Report, build_report
from sundog.evaluation.inputs import EvaluationRequest, read_inputs

REAL, HELD_OUT = 1500, 1000  # records


@dataclass(frozen=True)
class Release:
    """Synthetic records and the real ones.

    Args:
        table: returns a number of real records, given a seed.
        schema: the columns.
        target: the column to predict.
        made: returns the synthetic records, given the real ones.
        real: how many real records there are.
        held_out: how many more are held out.
    """

    table: Callable[[int, int], Any]
    schema: dict[str, Any]
    target: str | None
    made: Callable[[Any], Any]
    real: int = REAL
    held_out: int = HELD_OUT

    def report(self) -> Report:
        """Return the evaluation; every draw has a fixed seed, and releases of the same table share their bounds."""
        request = EvaluationRequest(
            self.made(self.table(self.real, 0)),
            real=self.table(self.real, 0),
            holdout=self.table(self.held_out, 1),
            target=self.target,
            schema=Schema.from_dict({"columns": self.schema}),
        )
        inputs = read_inputs(request)
        reals = (self.table, self.real, self.held_out, self.target)
        report = build_report(inputs, _BOUNDS.get(reals))
        _BOUNDS[reals] = report.bounds
        return report


_BOUNDS: dict[tuple[Any, ...], Bounds] = {}  # by table and sizes


# --- real data -----------------------------------------------------------------------------------------------------

PEOPLE: dict[str, Any] = {
    "age": {"type": "integer", "min": 18, "max": 90, "bins": 10},
    "hours": {"type": "continuous", "min": 0, "max": 100, "resolution": 0.1, "bins": 10},
    "income": {"type": "continuous", "min": 0, "max": 200, "resolution": 0.1, "bins": 10},
    "rent": {"type": "continuous", "min": 0, "max": 200, "resolution": 0.1, "bins": 10},
    "job": {"type": "categorical", "values": list("abcd")},
    "city": {"type": "categorical", "values": list("uvwxyz")},
}


def draw_people(rows: int, seed: int) -> pd.DataFrame:
    """Return people: the job depends on age, income on both, rent on income; the city is independent."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, rows)
    job = np.array(list("abcd"))[np.clip((age - 18) / 20 + rng.normal(0, 0.5, rows), 0, 3.99).astype(int)]
    hours = np.clip(40 + 10 * (job == "c") - 15 * (job == "d") + rng.normal(0, 8, rows), 0, 100)
    income = np.clip(age + hours * 0.8 + 30 * (job == "b") + rng.normal(0, 6, rows), 0, 200)
    rent = np.clip(income * 0.7 + rng.normal(0, 6, rows), 0, 200)
    city = rng.choice(list("uvwxyz"), rows, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    numbers = {"hours": hours.round(1), "income": income.round(1), "rent": rent.round(1)}
    return pd.DataFrame({"age": age, **numbers, "job": job, "city": city})


def draw_unrelated_people(rows: int, seed: int) -> pd.DataFrame:
    """Return the same people with independent columns, so that there are no relations to keep."""
    return shuffle_columns(draw_people(rows, seed), seed + 100)


BITS = {name: {"type": "boolean"} for name in ("a", "b", "c", "both")}


def draw_bits(rows: int, seed: int) -> pd.DataFrame:
    """Return bits: c mostly equals a; `both` is a xor b, and is independent of each alone."""
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, rows)) < 0.5
    return pd.DataFrame({"a": a, "b": b, "c": a ^ (rng.random(rows) < 0.05), "both": a ^ b})


SHOPPING = {"basket": {"type": "set", "universe": 20, "max_size": 20}}


def draw_baskets(rows: int, seed: int) -> dict[str, list[list[int]]]:
    """Return baskets of twenty items; some people buy many, and even items occur together."""
    rng = np.random.default_rng(seed)
    much, even = rng.random((rows, 1)) < 0.4, rng.random((rows, 1)) < 0.5
    likely = np.where(much, 0.4, 0.15) * np.where(np.arange(20) % 2 == even, 1.5, 0.5)
    return {"basket": [np.flatnonzero(row).tolist() for row in rng.random((rows, 20)) < likely]}


WAVES: dict[str, Any] = {"load": {"type": "series", "length": 12, "min": -1, "max": 2}}


def draw_waves(rows: int, seed: int) -> dict[str, Any]:
    """Return series that rise, fall and rise again."""
    rng = np.random.default_rng(seed)
    return {"load": 0.5 + 0.3 * np.sin(np.arange(12) / 2 + rng.random((rows, 1))) + rng.normal(0, 0.03, (rows, 12))}


# --- synthetic data --------------------------------------------------------------------------------------------------


def copy(real: Any) -> Any:
    """Return the real records themselves."""
    return real


def shuffle_columns(real: pd.DataFrame, seed: int = 7) -> pd.DataFrame:
    """Return the records with every column shuffled independently."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.permutation(real[name].to_numpy()) for name in real})


def shuffle_half(real: pd.DataFrame) -> pd.DataFrame:
    """Return the first half of the records, and a second half with independent columns."""
    mixed = shuffle_columns(real)
    mixed.iloc[: len(real) // 2] = real.iloc[: len(real) // 2].to_numpy()
    return mixed.astype(real.dtypes.to_dict())


def shift_hours(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with 12 hours added to `hours`."""
    return real.assign(hours=np.clip(real["hours"] + 12, 0, 100))


def shuffle_hours(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with `hours` shuffled: the marginal is kept, all relations are lost."""
    return real.assign(hours=np.random.default_rng(7).permutation(real["hours"].to_numpy()))


def shuffle_every_fourth(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with `hours` shuffled in every fourth."""
    hours = real["hours"].to_numpy().copy()
    hours[::4] = np.random.default_rng(7).permutation(hours[::4])
    return real.assign(hours=hours)


def sort_cities_by_age(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with cities sorted by age, on which they do not depend in the real data."""
    dealt = real.sort_values("age", kind="stable")
    return dealt.assign(city=np.sort(dealt["city"].to_numpy()))


def sort_some_cities_by_age(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with two in five cities sorted by age."""
    some = np.arange(len(real)) % 5 < 2
    return pd.concat([sort_cities_by_age(real[some]), real[~some]])


def draw_uniformly(real: pd.DataFrame) -> pd.DataFrame:
    """Return uniform draws of all declared values."""
    rng = np.random.default_rng(7)
    rows = len(real)
    numbers = {name: rng.uniform(0, 200, rows).round(1) for name in ("income", "rent")}
    return pd.DataFrame(
        {
            "age": rng.integers(18, 91, rows),
            "hours": rng.uniform(0, 100, rows).round(1),
            **numbers,
            "job": rng.choice(list("abcd"), rows),
            "city": rng.choice(list("uvwxyz"), rows),
        }
    )


def add_outliers(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with a few outliers, which change a linear regression much more than a forest."""
    few = real.iloc[: len(real) // 25].assign(hours=100.0, income=200.0, rent=0.0)
    return pd.concat([real.iloc[len(few) :], few])


def shuffle_both(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with `both` shuffled: pairs are kept, the relation of three columns is lost."""
    return real.assign(both=np.random.default_rng(7).permutation(real["both"].to_numpy()))


def shuffle_c(real: pd.DataFrame) -> pd.DataFrame:
    """Return the records with `c` shuffled: the one relation of a pair is lost, that of three columns is kept."""
    return real.assign(c=np.random.default_rng(7).permutation(real["c"].to_numpy()))


def add_item(real: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
    """Return the baskets with item 3 added to a third of them."""
    return {"basket": [sorted({*items, 3}) if place % 3 == 0 else items for place, items in enumerate(real["basket"])]}


def reverse(real: dict[str, Any]) -> dict[str, Any]:
    """Return the series reversed."""
    return {"load": real["load"][:, ::-1]}


def _make_release(made: Callable[[Any], Any], **sizes: int) -> Release:
    return Release(draw_people, PEOPLE, "rent", made, **sizes)


RELEASES = {
    "copied real data": _make_release(copy),
    "independent columns": _make_release(shuffle_columns),
    "half the links": _make_release(shuffle_half),
    "one destroyed column": _make_release(shift_hours),
    "one shuffled column": _make_release(shuffle_hours),
    "a quarter of one column shuffled": _make_release(shuffle_every_fourth, real=2500),
    "made-up relations": _make_release(sort_cities_by_age),
    "some made-up relations": _make_release(sort_some_cities_by_age, real=1000),
    "anything that is declared": _make_release(draw_uniformly),
    "a few outliers": _make_release(add_outliers),
    "sixty other records": _make_release(lambda _: draw_people(60, 2), real=60, held_out=60),
    "real data without relations": Release(draw_unrelated_people, PEOPLE, "rent", copy),
    "three columns lose what links them": Release(draw_bits, BITS, "both", shuffle_both),
    "only three columns are linked": Release(draw_bits, BITS, "both", shuffle_c),
    "copied sets": Release(draw_baskets, SHOPPING, None, copy, real=4000),
    "one destroyed item": Release(draw_baskets, SHOPPING, None, add_item),
    "sixty other sets": Release(draw_baskets, SHOPPING, None, lambda _: draw_baskets(60, 2), real=60, held_out=60),
    "copied series": Release(draw_waves, WAVES, None, copy, real=400, held_out=400),
    "series run backwards": Release(draw_waves, WAVES, None, reverse, real=400, held_out=400),
}
