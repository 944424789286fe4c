"""Daily series of 96 values, and their comparison with generated ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

import sundog
from sundog.data.columns import Form
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.measure import Measure
from sundog.evaluation.section import Section
from sundog.evaluation.series.series_evaluation import evaluate_series
from sundog.privacy.noise import NoiseSource

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
HELD_OUT = 0.1  # of the days, or households
MEASURES = {
    "spectra": "series.spectral_distance",
    "autocorrelation": "series.autocorrelation_distance",
    "totals": "series.total_distance",
    "values": "series.marginal_distance",
    "told apart": "series.discriminative_score",
    "nearest day": "series.nearest_dtw",
}


@dataclass(frozen=True)
class Days:
    """Series for training, and held-out ones."""

    name: str
    schema: sundog.Schema
    learned: Mapping[str, NDArray[Any]]
    held_out: Mapping[str, NDArray[Any]]

    @property
    def column(self) -> str:
        """The column of the series."""
        (name,) = (name for name, column in self.schema.columns.items() if column.form is Form.SERIES)
        return name

    def section(self, synthetic: Records | None = None) -> Section:
        """Compare generated days, or by default the held-out ones, with those used for training."""
        learned, held_out = (self._records(part) for part in (self.learned, self.held_out))
        return evaluate_series(
            Comparison(learned, held_out if synthetic is None else synthetic, learned, held_out), self.column
        )

    def _records(self, part: Mapping[str, NDArray[Any]]) -> Records:
        """Encode all records, without a cap on those of one owner: nothing is released."""
        whole = sundog.Schema.from_dict({"columns": self.schema.to_dict()["columns"]})
        return encode(read({name: part[name] for name in whole.columns}, whole), whole)


class Silence(NoiseSource):
    """A noise source without noise on gradients and sums, for a GAN that is not private. Its certificate says so."""

    def __init__(self) -> None:
        super().__init__()
        self.private, self.description = False, "gradients and sums have none: NOT PRIVATE"

    def standard_normal_(self, out: Tensor) -> Tensor:
        """Return zeros."""
        return out.zero_()

    def discrete_gaussian(self, *, sigma: float, size: int | tuple[int, ...]) -> NDArray[np.int64]:  # noqa: ARG002
        """Return zeros."""
        return np.zeros(size, np.int64)


def load_meters(folder: Path, unit: str) -> Days:
    """Load the days of Swiss households."""
    schema = sundog.Schema.load(EXAMPLES / "smartmeter-days.schema.yaml")
    found = np.load(folder / "swiss_smartmeter_daily96.npz")
    values = {"load": found["x"], "weekday": found["weekday"], "house": found["house"]}
    if unit == "day":
        return hold_out("meters", schema, values)
    schema = sundog.Schema.from_dict({**schema.to_dict(), "unit": "house", "cap": 49})
    return hold_out("meters by house", schema, values, owners=found["house"])


def load_transformers(folder: Path) -> Days:
    """Load the days of ETTm1."""
    found = np.load(folder / "ettm1_daily96.npz")
    schema = sundog.Schema.load(EXAMPLES / "ettm1.schema.yaml")
    return hold_out("ETTm1", schema, {"value": found["x"], "series": found["series"]})


def generate_waves(count: int = 600) -> Days:
    """Generate days with one peak at a random hour, to replace missing data files."""
    rng = np.random.default_rng(0)
    hour, height = rng.integers(0, 24, (count, 1)), rng.random((count, 1))
    shape = height * np.exp(-np.square((np.arange(24) - hour) / 2))
    schema = sundog.Schema.from_dict(
        {"columns": {"value": {"type": "series", "length": 24, "min": 0, "max": 1, "resolution": 0.001}}}
    )
    return hold_out("waves", schema, {"value": shape})


def hold_out(
    name: str, schema: sundog.Schema, values: Mapping[str, NDArray[Any]], owners: NDArray[Any] | None = None
) -> Days:
    """Hold out a tenth of the days, or of their owners if they have any."""
    rng = np.random.default_rng(0)
    owners = np.arange(len(next(iter(values.values())))) if owners is None else owners
    everybody = rng.permutation(np.unique(owners))
    out = np.isin(owners, everybody[: round(HELD_OUT * len(everybody))])
    wanted = [*schema.columns, *([schema.unit] if schema.unit else [])]
    return Days(
        name, schema, {each: values[each][~out] for each in wanted}, {each: values[each][out] for each in wanted}
    )


def combine_seeds(measures: Sequence[Measure]) -> Measure:
    """Return the mean over seeds, with an interval that contains those of all seeds."""
    low, high = min(each.low for each in measures), max(each.high for each in measures)
    return Measure(float(np.mean([each.value for each in measures])), low, high)
