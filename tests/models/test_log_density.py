"""How probable models find records: against enumeration of all records, and against how often they are drawn."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from sundog.data.records import Records, concatenate
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.protocol import HasLogDensity
from sundog.release.release import Release

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "colour": {"type": "categorical", "values": ["red", "green", "blue"]},
            "size": {"type": "integer", "min": 0, "max": 9, "edges": [3, 4], "nullable": True},
            "old": {"type": "boolean"},
        }
    }
)
SETS = Schema.from_dict({"columns": {"basket": {"type": "set", "universe": 6, "max_size": 6}}})


def make_frame(rows: int = 1500) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.integers(0, 10, rows)
    colour = np.where(rng.random(rows) < 0.2, "blue", np.where(size > 5, "red", "green"))
    old = (colour == "red") ^ (rng.random(rows) < 0.1)
    return pd.DataFrame({"colour": colour, "size": pd.Series(size, dtype="Int64").mask(size == 3), "old": old})


def fit(model: str, *, clusters: int = 1, **settings: Any) -> Release:
    synthesizer = Synthesizer(model, epsilon=20.0, delta=1e-6, seed=0, clusters=clusters, **settings)
    return synthesizer.fit(make_frame(), SCHEMA).release_


def list_all_records() -> Records:
    """Return each possible record once."""
    sizes = [range(column.size) for column in SCHEMA.columns.values()]
    table = np.array(list(itertools.product(*sizes)))
    codes = {name: table[:, place].astype(column.dtype) for place, (name, column) in enumerate(SCHEMA.columns.items())}
    return Records(SCHEMA, codes, len(table))


def find_probabilities(release: Release) -> np.ndarray:
    assert isinstance(release.model, HasLogDensity)
    return np.exp(release.model.log_density(list_all_records()))


EXACT = {"independent": {}, "marginals": {}, "mixture": {"clusters": 2}}


@pytest.mark.parametrize("name", [*EXACT, "vae"])
def test_the_probabilities_of_all_records_add_up_to_one(name: str) -> None:
    """Those of networks are probabilities of cells, here of one code or more."""
    release = fit("independent" if name == "mixture" else name, **EXACT.get(name, {}))
    found = find_probabilities(release)
    if name == "vae":
        bins = np.array([3, 1, 6, 1])[np.digitize(list_all_records().codes["size"], [3, 4, 10])]
        found = found / bins
    assert found.sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("name", EXACT)
def test_records_are_drawn_as_often_as_they_are_probable(name: str) -> None:
    release = fit("independent" if name == "mixture" else name, **EXACT[name])
    drawn = concatenate(list(release.batches(200_000, seed=1)))
    place = np.ravel_multi_index(
        [drawn.codes[column] for column in SCHEMA.columns], [column.size for column in SCHEMA.columns.values()]
    )
    shares = np.bincount(place, minlength=len(list_all_records())) / len(drawn)
    assert np.abs(shares - find_probabilities(release)).sum() / 2 < 0.01


def test_the_free_energy_is_that_of_all_hidden_states() -> None:
    release = fit("rbm", settings={"hidden": 4, "epochs": 2})
    model: Any = release.model
    records = list_all_records()
    x = model.features.to_examples(records).take_vectors(np.arange(len(records)))
    states = torch.tensor(list(itertools.product((0.0, 1.0), repeat=4)))
    network, z = model.network, x - model.network.centre
    with torch.no_grad():
        fields = z @ network.hidden.weight.T + network.hidden.bias
        energies = -(fields @ (states - 0.5).T) - network.visible(z)
        expected = torch.logsumexp(-energies, dim=1).double().numpy()
    assert model.log_density(records) == pytest.approx(expected, abs=1e-4)


def test_impossible_values_have_no_probability() -> None:
    release = fit("independent")
    release.model.marginals["colour"][:] = [0.5, 0.5, 0.0]  # type: ignore[attr-defined]
    found = find_probabilities(release)
    assert (found[list_all_records().codes["colour"] == 2] == 0).all()
    assert found.sum() == pytest.approx(1)


def test_items_of_sets_are_independent() -> None:
    rng = np.random.default_rng(0)
    sets = (rng.random((1000, 6)) < 0.3).astype(np.uint8)
    release = Synthesizer("independent", epsilon=20.0, delta=1e-6, seed=0).fit(sets, SETS).release_
    every = np.array(list(itertools.product((0, 1), repeat=6)), np.uint8)
    model: Any = release.model
    from scipy import sparse

    found = np.exp(model.log_density(Records(SETS, {"basket": sparse.csr_array(every)}, len(every))))
    p = model.marginals["basket"]
    assert found == pytest.approx(np.prod(np.where(every == 1, p, 1 - p), axis=1))


def test_a_mixture_of_models_without_densities_says_so() -> None:
    release = fit("independent", clusters=2)
    mixture: Any = release.model
    mixture.components = [object.__new__(type("Plain", (), {"name": "plain"}))]
    with pytest.raises(DataError, match="a plain model has no density"):
        mixture.log_density(list_all_records())
