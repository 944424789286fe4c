"""Small files that ask for much: each is a few kilobytes, and would take minutes or gigabytes if it were believed.

`python -m tests.release.small_files FOLDER` writes them all, to look at or to try on another reader.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from sundog.release.archive import FORMAT, VERSION

Columns = list[dict[str, Any]]
CERTIFICATE: dict[str, Any] = {
    "private": True,
    "epsilon": 1.0,
    "delta": 1e-6,
    "spent": {"pld": 0.0, "rdp": 0.0, "moments": 0.0},
    "unit": None,
    "cap": 1,
    "neighbours": "add or remove one unit",
    "noise": "ChaCha20 and AES-256 keyed by the operating system",
    "charges": [],
    "assumed_public": ["the schema: names and types of columns, declared values, bounds and resolutions"],
}
SMALL = [{"name": "c0", "type": "boolean"}]
RBM = {"hidden": 1, "chains": 1, "deviation": None, "records": 1}
INDEPENDENT = {"records": 1}


def write_release(
    path: Path,
    columns: Columns,
    *,
    model: str = "rbm",
    config: dict[str, Any] = RBM,
    schema: dict[str, Any] | None = None,
    certificate: dict[str, Any] | None = None,
    tensors: dict[str, Any] | None = None,
) -> None:
    """A release file of this content, whatever it says."""
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "created": "now",
        "libraries": {},
        "schema": {"sundog": 1, "reviewed": True, "columns": columns, **(schema or {})},
        "model": {"name": model, "config": config},
        "certificate": {**CERTIFICATE, **(certificate or {})},
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:  # as a stranger would, and not as we do
        file.writestr("manifest.json", json.dumps(manifest))
        weights = safetensors.numpy.save(tensors or {"x": np.zeros(1)})
        file.writestr("weights.safetensors", weights, compress_type=zipfile.ZIP_STORED)


def columns_of(count: int, **declared: Any) -> Columns:
    return [{"name": f"c{place}", **declared} for place in range(count)]


def write_charges(path: Path, count: int, event: dict[str, Any], field: str, times: int, **promised: Any) -> None:
    """A sound model, and a certificate with charges of so many kinds."""
    events = [{**event, field: event[field] * (1 + place / count)} for place in range(count)]
    charges = [{"event": one, "count": times, "purpose": "x"} for one in events]
    tensors = {"marginal.0": np.array([0.5, 0.5])}
    certificate = {"charges": charges, **promised}
    write_release(path, SMALL, model="independent", config=INDEPENDENT, certificate=certificate, tensors=tensors)


INTEGER: dict[str, Any] = {"type": "integer", "min": 0, "max": 2**62}
DATES: dict[str, Any] = {"type": "datetime", "min": "1900-01-01", "max": "2100-01-01"}


def _edges(count: int, place: int = 0) -> list[float]:
    return [float(f"{number + place}.{number % 1000:03d}1") for number in range(count)]


def _times(count: int) -> list[str]:
    return [
        f"{1901 + i // 300}-{1 + i // 28 % 12:02d}-{1 + i % 28:02d}T00:{i // 60 % 60:02d}:{i % 60:02d}"
        for i in range(count)
    ]


def bins(path: Path) -> None:
    """A million bins of each of a thousand columns, and no weights."""
    write_release(path, columns_of(1000, **INTEGER, bins=2**20))


def bins_of_marginals(path: Path) -> None:
    """The same of a model of marginals, whose arrays have the right names."""
    tensors = {f"marginal.{place}": np.ones(1) for place in range(1000)}
    write_release(
        path, columns_of(1000, **INTEGER, bins=2**20), model="independent", config=INDEPENDENT, tensors=tensors
    )


def elimination(path: Path) -> None:
    """Pairs of neighbouring columns, in an order that relates all columns to each other."""
    count = 1000
    cliques = [[place, place + step] for step in (1, 2, 3) for place in range(count - step)]
    order = [*range(0, count, 2), *range(1, count, 2)]
    config = {"records": 1, "cliques": cliques, "order": order, "units": [], "public": True}
    tensors: dict[str, Any] = {f"marginal.{place}": np.full(2, 0.5) for place in range(count)}
    tensors |= {f"groups.{place}": np.arange(2) for place in range(count)}
    tensors |= {f"potential.{place}": np.zeros((2, 2)) for place in range(len(cliques))}
    write_release(path, columns_of(count, type="boolean"), model="marginals", config=config, tensors=tensors)


def pixels(path: Path) -> None:
    """An image that no memory holds."""
    config = {**RBM, "shape": "conv", "latent": 1, "condition": None, "public": False, "named": False}
    del config["chains"], config["deviation"]
    write_release(path, [{"name": "image", "type": "image", "shape": [10**9, 10**9]}], model="gan", config=config)


def universe(path: Path) -> None:
    """Sets of items that nobody can count to."""
    write_release(path, [{"name": "basket", "type": "set", "universe": 10**15, "max_size": 10**14}])


def many_columns(path: Path) -> None:
    """More columns than any table has."""
    write_release(path, columns_of(95_000, type="boolean"))


def many_dates(path: Path) -> None:
    """Columns whose bounds take long to parse."""
    write_release(path, columns_of(4096, **DATES))


def many_local_dates(path: Path) -> None:
    """The same on a clock that is put forward and back."""
    write_release(path, columns_of(4096, **DATES, timezone="Europe/Berlin"))


def edges(path: Path) -> None:
    """As many edges as there may be, each a fraction."""
    column = {"type": "continuous", "min": 0.0, "max": 1e6, "resolution": 1e-4}
    write_release(path, [{"name": f"c{place}", **column, "edges": _edges(5000, place)} for place in range(13)])


def edges_of_dates(path: Path) -> None:
    """As many edges as there may be, each a time on a clock."""
    write_release(path, columns_of(64, **DATES, timezone="Europe/Berlin", edges=sorted(set(_times(1024)))))


def values(path: Path) -> None:
    """As many values as a manifest may list."""
    write_release(path, [{"name": "code", "type": "categorical", "values": [f"{place:x}" for place in range(450_000)]}])


def wrong_values(path: Path) -> None:
    """Values each of which is an error of its own."""
    write_release(path, [{"name": "code", "type": "categorical", "values": [None] * 150_000}])


def long_format(path: Path) -> None:
    """A format that becomes a regular expression of a megabyte."""
    write_release(path, columns_of(1, **DATES, format="%Y" + "x.*?" * 250_000))


def components(path: Path) -> None:
    """A mixture of as many components as there may be, of many columns, without weights."""
    config = {"of": "rbm", "records": 1, "public": False, "components": [RBM] * 500}
    tensors = {"weights": np.full(500, 1 / 500), "x": np.zeros((500, 1))}
    write_release(path, columns_of(4096, type="boolean"), model="mixture", config=config, tensors=tensors)


def tiny_losses(path: Path) -> None:
    """Losses so small that a grid for them has billions of points."""
    write_charges(path, 64, {"kind": "pure", "epsilon": 1e-7}, "epsilon", 10**9)


def small_losses(path: Path) -> None:
    """Losses for which a distribution is made, of many kinds."""
    write_charges(path, 64, {"kind": "pure", "epsilon": 1e-5}, "epsilon", 1000)


def trainings(path: Path) -> None:
    """More trainings than a fit has."""
    event = {"kind": "sampled_gaussian", "noise_multiplier": 1.0, "sample_rate": 0.01}
    write_charges(path, 5000, event, "noise_multiplier", 10**6)


def many_charges(path: Path) -> None:
    """As many charges as there may be, none like another."""
    write_charges(path, 20_000, {"kind": "discrete_gaussian", "sigma": 3.0}, "sigma", 1000)


def drifting(path: Path) -> None:
    """Few kinds of event, a million million times each."""
    event = {"kind": "sampled_gaussian", "noise_multiplier": 20.0, "sample_rate": 7e-4}
    write_charges(path, 20, event, "noise_multiplier", 10**12)


def wide_losses(path: Path) -> None:
    """A δ at which ε is small, and losses that reach far beyond it."""
    write_charges(path, 64, {"kind": "pure", "epsilon": 1e-2}, "epsilon", 1000, delta=0.9999)


def discrete(path: Path) -> None:
    """Many kinds of discrete noise, whose distributions are made one by one."""
    write_charges(path, 64, {"kind": "discrete_gaussian", "sigma": 15.0}, "sigma", 100)


def sampled(path: Path) -> None:
    """Many kinds of training."""
    event = {"kind": "sampled_gaussian", "noise_multiplier": 1.0, "sample_rate": 1e-3}
    write_charges(path, 60, event, "noise_multiplier", 1000)


def rules(path: Path) -> None:
    """As many rules as there may be, with tables as large as they may be and conditions with long lists."""
    columns = columns_of(64, type="integer", min=0, max=2**40, nullable=True)
    combinations = [{"columns": ["c0", f"c{n}"], "allowed": [[i, i] for i in range(120)]} for n in range(1, 64)]
    sums = [f"c{n} = " + " + ".join(["c60"] * 60) for n in range(50)]
    conditions = [{"when": f"c{n} in {','.join(map(str, range(30)))}", "then": f"c{n + 1} < 9"} for n in range(50)]
    write_release(path, columns, schema={"rules": [*combinations, *sums, *conditions]})


def long_rules(path: Path) -> None:
    """Tables that are too large, again and again."""
    table = [[i, i] for i in range(60_000)]
    write_release(
        path, columns_of(2, **INTEGER), schema={"rules": [{"column": "c1", "from": "c0", "table": table}] * 2}
    )


def listed_marginals(path: Path) -> None:
    """As many measured marginals as a certificate may list, of columns with long names."""
    listed = [{"columns": ["x" * 200, "y" * 200, f"{place}"], "deviation": 1.0} for place in range(20_000)]
    tensors = {"marginal.0": np.array([0.5, 0.5])}
    write_release(
        path, SMALL, model="independent", config=INDEPENDENT, certificate={"measured": listed}, tensors=tensors
    )


def measured_marginals(path: Path) -> None:
    """A mixture whose components measured many marginals each, and as many charges as there may be."""
    cliques = [[place] for place in range(32)] + [[0, place] for place in range(1, 32)]
    units = [[1] * len(cliques)] * 3
    one = {"records": 1, "cliques": cliques, "order": list(range(32)), "units": units, "public": False}
    config = {"of": "marginals", "records": 1, "public": False, "components": [one] * 200}
    half, groups = np.full((200, 2), 0.5), np.tile(np.arange(2), (200, 1))
    tensors: dict[str, Any] = {"weights": np.full(200, 1 / 200)}
    tensors |= {f"marginal.{place}": half for place in range(32)} | {f"groups.{place}": groups for place in range(32)}
    tensors |= {f"potential.{place}": np.zeros((200, *[2] * len(clique))) for place, clique in enumerate(cliques)}
    charges = [
        {
            "event": {"kind": "discrete_gaussian", "sigma": 3.0},
            "count": len(cliques),
            "purpose": f"marginals, round {place % 3 + 1}",
        }
        for place in range(20_000)
    ]
    columns = [{"name": f"{place}" + "x" * 500, "type": "boolean"} for place in range(32)]
    write_release(path, columns, model="mixture", config=config, certificate={"charges": charges}, tensors=tensors)


FILES: dict[str, Callable[[Path], None]] = {
    make.__name__: make
    for make in (
        bins,
        bins_of_marginals,
        elimination,
        pixels,
        universe,
        many_columns,
        many_dates,
        many_local_dates,
        edges,
        edges_of_dates,
        values,
        wrong_values,
        long_format,
        components,
        tiny_losses,
        small_losses,
        trainings,
        many_charges,
        drifting,
        wide_losses,
        discrete,
        sampled,
        rules,
        long_rules,
        listed_marginals,
        measured_marginals,
    )
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name, make in FILES.items():
        make(folder / f"{name}.sundog")
