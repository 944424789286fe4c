"""The tables: Adult, and two that nothing was ever tuned on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sundog
from sundog.data.columns import Scale
from sundog.data.reading.read import encode, read
from sundog.data.records import Records

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGES = ("plotnine==0.15.8", "statsmodels==0.15.0")  # their wheels hold the two other tables
TEST_SHARE = 1 / 3  # of a table that comes in one file
QUANTILES = 16

# The cut points of a public evaluation script, as the first value of each bin.
ADULT_EDGES: Mapping[str, Sequence[int]] = {
    "age": range(20, 95, 5),
    "fnlwgt": range(150_000, 1_500_000, 150_000),
    "capital_gain": (1, 5_001, 10_001),
    "capital_loss": (1,),
    "hours_per_week": range(5, 100, 5),
}


class AbsentError(Exception):
    """A table is not on this machine."""


@dataclass(frozen=True)
class Table:
    """A table in two parts, and what is asked of it.

    Args:
        name: of the table.
        train: the private records.
        test: other records, for classifiers that learned from synthetic ones.
        schema: what is publicly known of it.
        edges: first values of the bins that distances are taken with, by column. Peers get these bins, too, and pay
            nothing for them; other columns have the bins of the schema.
        target: the column that is predicted.
        positive: the value of the target that is told from all others.
    """

    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    schema: sundog.Schema
    edges: Mapping[str, Sequence[float]]
    target: str
    positive: Any

    @cached_property
    def binned(self) -> sundog.Schema:
        """The schema, with the bins that distances are taken with."""
        given = self.schema.to_dict()
        columns = dict(given["columns"])
        for name, edges in self.edges.items():
            own = {key: value for key, value in columns[name].items() if key not in ("bins", "special")}
            columns[name] = own | {"edges": list(edges)}
        return sundog.Schema.from_dict({"columns": columns, "rules": given.get("rules", [])})

    @property
    def numeric(self) -> list[str]:
        """The columns whose values can be subtracted."""
        return [name for name, column in self.schema.columns.items() if column.scale is Scale.INTERVAL]

    def encode(self, frame: pd.DataFrame) -> Records:
        """Return the codes of records, with the bins that distances are taken with."""
        return encode(read(frame, self.binned), self.binned)


def load_adult(folder: Path, *, packages: Path, quick: bool) -> Table:  # noqa: ARG001
    """Return Adult, or a part of it that is bundled."""
    if not quick and (folder / "adult_train.csv.gz").exists():
        train, test = (
            pd.read_csv(folder / f"adult_{part}.csv.gz", keep_default_na=False) for part in ("train", "test")
        )
    else:
        print("on the bundled slice; set SUNDOG_DATA for all of Adult")
        bundled = pd.read_csv(str(resources.files("sundog.demo") / "adult.csv.gz"), keep_default_na=False)
        cut = 2000 if quick else 7000
        train, test = bundled[:cut], bundled[cut : 2 * cut].reset_index(drop=True)
    schema = sundog.Schema.load(EXAMPLES / "adult.schema.yaml")
    return Table("adult", train, test, schema, ADULT_EDGES, "income", ">50K")


def load_affairs(folder: Path, *, packages: Path, quick: bool) -> Table:  # noqa: ARG001
    """Return Fair's survey: nine columns of few values each."""
    frame = _read_bundled(packages / "statsmodels" / "datasets" / "fair" / "fair.csv")
    frame["affair"] = frame.pop("affairs") > 0
    return _split("affairs", frame, "affair", True, quick=quick)


def load_diamonds(folder: Path, *, packages: Path, quick: bool) -> Table:  # noqa: ARG001
    """Return the diamonds: seven numbers and three categories."""
    frame = _read_bundled(packages / "plotnine" / "data" / "diamonds.csv")
    return _split("diamonds", frame, "cut", "Ideal", quick=quick)


def load_insurance(folder: Path, *, packages: Path, quick: bool) -> Table:  # noqa: ARG001
    """Return the RAND health insurance experiment: five numbers and five flags."""
    frame = _read_bundled(packages / "statsmodels" / "datasets" / "randhie" / "randhie.csv")
    frame["limited"] = frame.pop("physlm") > 0
    for name in ("idp", "hlthg", "hlthf", "hlthp"):
        frame[name] = frame[name] == 1
    return _split("insurance", frame, "limited", True, quick=quick)


TABLES: dict[str, Callable[..., Table]] = {
    "adult": load_adult,
    "affairs": load_affairs,
    "diamonds": load_diamonds,
    "insurance": load_insurance,
}


def _read_bundled(path: Path) -> pd.DataFrame:
    if not path.exists():
        raise AbsentError(f"there is no {path}; `--make-peers` installs it")
    return pd.read_csv(path, keep_default_na=False)


def _split(name: str, frame: pd.DataFrame, target: str, positive: Any, *, quick: bool) -> Table:
    """Hold records out, and take quantiles of the others as the bins of numbers."""
    order = np.random.default_rng(0).permutation(len(frame))[: 3000 if quick else None]
    cut = round(len(order) * (1 - TEST_SHARE))
    train, test = (frame.iloc[part].reset_index(drop=True) for part in (order[:cut], order[cut:]))
    table = Table(name, train, test, sundog.Schema.load(EXAMPLES / f"{name}.schema.yaml"), {}, target, positive)
    return replace(table, edges={column: _quantiles(train[column]) for column in table.numeric})


def _quantiles(values: pd.Series[Any]) -> list[float]:
    """Return the first value of each bin but the lowest, of bins with about as many records each."""
    edges = np.unique(np.quantile(values, np.arange(1, QUANTILES) / QUANTILES, method="higher"))
    return [edge for edge in edges.tolist() if edge > values.min()]
