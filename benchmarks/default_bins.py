"""Default bins beside bins of equal width: sentinels, zeros, a rule between columns, and two-way marginals of Adult.

The table of a bank is generated: `last_contact` is −1 if there was no earlier contact (82%), `transfers` is 0 for 78%,
and `duration` is 0 without a transfer. Adult has its schema without the hand-made edges; distances use those edges.

    SUNDOG_DATA=../shared/data python benchmarks/default_bins.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from report import DATA, Row, parse_arguments, publish

import sundog
from sundog.data.bins import make_bins
from sundog.data.reading.read import encode, read

SCHEMA = Path(__file__).parent.parent / "examples" / "adult.schema.yaml"
EQUAL = 64  # as many as there are by default
BANK = {
    "last_contact": {"type": "integer", "min": -1, "max": 900},
    "transfers": {"type": "integer", "min": 0, "max": 2_000},
    "duration": {"type": "integer", "min": 0, "max": 100_000},
}


def generate_bank(n: int) -> pd.DataFrame:
    """Return the generated table."""
    rng = np.random.default_rng(0)
    called, active = rng.random(n) > 0.82, rng.random(n) > 0.78
    transfers = np.where(active, np.minimum(1 + rng.geometric(0.01, n), 2_000), 0)
    return pd.DataFrame(
        {
            "last_contact": np.where(called, rng.integers(1, 900, n), -1),
            "transfers": transfers,
            "duration": np.where(active, np.minimum(1 + rng.gamma(2.0, 4_000.0, n), 100_000).astype(int), 0),
        }
    )


def use_equal_width(columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns with bins of equal width where default ones would be refined."""
    wide = {name for name, column in columns.items() if "min" in column and column["max"] - column["min"] >= 128}
    return {name: {**column, "bins": EQUAL} if name in wide else dict(column) for name, column in columns.items()}


def draw_sample(data: Any, columns: Mapping[str, Any], model: str, settings: dict[str, Any]) -> pd.DataFrame:
    """Draw as many synthetic records as there are real ones, at ε = 1."""
    synth = sundog.Synthesizer(model, epsilon=1.0, delta=1e-6, settings=settings)
    return synth.fit(data, {"columns": dict(columns)}).release_.sample(len(data), seed=1)


def measure_pair_distance(real: pd.DataFrame, fake: pd.DataFrame, schema: sundog.Schema) -> float:
    """Return the mean total-variation distance of all pairs of columns, over the bins of a schema."""
    counts = {name: make_bins(column) for name, column in schema.columns.items()}
    binned = []
    for frame in (real, fake):
        codes = encode(read(frame, schema), schema).codes
        binned.append({name: bins.to_bins(codes[name]).astype(np.int64) for name, bins in counts.items()})
    found = []
    for one, other in combinations(counts, 2):
        cells = counts[one].count * counts[other].count
        pairs = [table[one] * counts[other].count + table[other] for table in binned]
        shares = [np.bincount(pair, minlength=cells) / len(pair) for pair in pairs]
        found.append(0.5 * np.abs(shares[0] - shares[1]).sum())
    return float(np.mean(found))


def compare_on_bank(options: argparse.Namespace) -> list[Row]:
    """Return the errors of the shares of spikes, and how often the rule is violated."""
    real = generate_bank(2_000 if options.quick else 20_000)
    drawn = {
        kind: draw_sample(real, columns, "rbm", {"epochs": 1 if options.quick else 10})
        for kind, columns in {"refined": BANK, "equal": use_equal_width(BANK)}.items()
    }
    errors: dict[str, Callable[[Any], Any]] = {
        "share of −1, error": lambda frame: abs((frame.last_contact == -1).mean() - (real.last_contact == -1).mean()),
        "share of 0, error": lambda frame: abs((frame.transfers == 0).mean() - (real.transfers == 0).mean()),
        "0 transfers with a duration": lambda frame: (frame.duration[frame.transfers == 0] > 0).mean(),
    }
    return [
        Row(name, float(error(drawn["refined"])), "", "equal width", float(error(drawn["equal"])))
        for name, error in errors.items()
    ]


def compare_on_adult(options: argparse.Namespace) -> list[Row]:
    """Return the distances of two-way marginals, without hand-made edges and with them."""
    source = DATA / "adult_train.csv.gz"
    if options.quick or not source.exists():
        source = Path(str(resources.files("sundog.demo") / "adult.csv.gz"))
    real, by_hand = pd.read_csv(source), sundog.Schema.load(SCHEMA)
    given = by_hand.to_dict()["columns"]
    plain = {name: {k: v for k, v in column.items() if k not in ("edges", "bins")} for name, column in given.items()}
    rows = []
    for model, settings in (("independent", {}), ("rbm", {"epochs": 1 if options.quick else 10})):
        schemas = {"refined": plain, "equal width": use_equal_width(plain), "hand-made edges": given}
        found = {
            kind: measure_pair_distance(real, draw_sample(real, columns, model, dict(settings)), by_hand)
            for kind, columns in schemas.items()
        }
        rows += [
            Row(f"Adult pairs, {model}", found["refined"], "TVD", peer, found[peer])
            for peer in ("equal width", "hand-made edges")
        ]
    return rows


def main() -> None:
    options = parse_arguments(__doc__ or "")
    publish([*compare_on_bank(options), *compare_on_adult(options)], options)


if __name__ == "__main__":
    main()
