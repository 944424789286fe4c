"""Chains on the places of ones are chains of the same machine, and many records take few moves."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy import stats
from tests.contracts.material import schema_of

from sundog.models.neural.features import Features
from sundog.models.rbm import gibbs
from sundog.models.rbm.gibbs import _PlaceChains, _VectorChains, start_chains
from sundog.models.rbm.network import RbmNetwork
from sundog.models.rbm.rbm import Rbm

COLUMNS: dict[str, dict[str, Any]] = {
    "kind": {"type": "categorical", "values": ["a", "b", "c"]},
    "old": {"type": "boolean"},
    "level": {"type": "integer", "min": 0, "max": 3},
}
SCHEMA = schema_of(COLUMNS)
STATES = torch.stack(
    [
        torch.cat([torch.eye(3)[a], torch.eye(2)[b], torch.eye(4)[c]])
        for a in range(3)
        for b in range(2)
        for c in range(4)
    ]
)
COUNT = 20_000


def machine(size: float = 1.0, chains: int = 64) -> RbmNetwork:
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        network = RbmNetwork(Features(SCHEMA), torch.rand(9), hidden=4, chains=chains)
        for parameter in network.parameters():
            parameter.normal_(std=size)
    return network


def exact(network: RbmNetwork) -> npt.NDArray[np.float64]:
    with torch.no_grad():
        return np.asarray((-network.free_energy(STATES).double()).softmax(dim=0).numpy())


@pytest.mark.parametrize("where", [{}, {"level": 2}], ids=["free", "held"])
@pytest.mark.parametrize("kind", [_PlaceChains, _VectorChains], ids=["places", "vectors"])
def test_both_kinds_have_the_distribution_of_the_machine(kind: Any, where: dict[str, int]) -> None:
    network = machine()
    with torch.no_grad():
        chains = kind(STATES[:1].repeat(COUNT, 1), network, where, np.random.default_rng(0))
        for _ in range(60):
            chains.move()
        chains.draw_hidden()  # which holds the conditions
        vectors = chains.to_vectors()
    found = np.bincount((vectors @ STATES.T).argmax(dim=1).numpy(), minlength=len(STATES))
    p = exact(network)
    if where:
        p = p * STATES[:, 5 + where["level"]].numpy()
        p /= p.sum()
    assert not found[p == 0].any()
    assert stats.chisquare(found[p > 0], COUNT * p[p > 0]).pvalue > 1e-6


def test_weights_too_large_for_exponentials_take_the_careful_way() -> None:
    rng = np.random.default_rng(0)
    assert isinstance(start_chains(STATES.clone(), machine(), {}, rng), _PlaceChains)
    assert isinstance(start_chains(STATES.clone(), machine(size=100.0), {}, rng), _VectorChains)
    broken = machine()
    with torch.no_grad():
        broken.hidden.weight[0, 0] = torch.nan
    assert isinstance(start_chains(STATES.clone(), broken, {}, rng), _VectorChains)


@pytest.mark.parametrize(("records", "most"), [(1000, 50.0), (70_000, 11.0)])
def test_many_records_take_few_moves_each(records: int, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Adult, 20 µs a record are ten moves or so on one core."""
    moved = 0
    plain = gibbs._PlaceChains.move

    def counted(chains: Any) -> None:
        nonlocal moved
        moved += len(chains._places)
        plain(chains)

    monkeypatch.setattr(gibbs._PlaceChains, "move", counted)
    model = Rbm(SCHEMA, machine(chains=4096), 100)
    drawn = model.sample(records, np.random.default_rng(0), {})
    assert {len(codes) for codes in drawn.values()} == {records}
    assert moved <= most * records
    p = exact(model.network)
    states = drawn["kind"].astype(int) * 8 + drawn["old"].astype(int) * 4 + drawn["level"]
    found = np.bincount(states, minlength=len(p)) / records
    assert np.abs(found - p).max() < 8 * 0.5 / np.sqrt(records)  # records of a chain are a little alike


def test_fewer_records_are_not_the_start_of_more() -> None:
    """Draws are spread evenly over all that are asked for: so the documentation says."""
    model = Rbm(SCHEMA, machine(), 100)
    few, same, many = (model.sample(n, np.random.default_rng(7), {}) for n in (100, 100, 1000))
    assert all(np.array_equal(few[name], same[name]) for name in few)
    assert not all(np.array_equal(few[name], many[name][:100]) for name in few)


_PEAK = """
import numpy as np, pandas as pd, sundog
count = 100_000
rng = np.random.default_rng(0)
data = pd.DataFrame({"zip": rng.integers(0, count, 40_000).astype(str), "b": rng.random(40_000) < 0.5})
columns = {"zip": {"type": "categorical", "values": [str(i) for i in range(count)]}, "b": {"type": "boolean"}}
schema = sundog.Schema.from_dict({"columns": columns})
sundog.Synthesizer("rbm", epsilon=1.0, delta=1e-6, settings={"epochs": 0.03}).fit(data, schema)
print(next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_column_of_a_hundred_thousand_values_takes_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", _PEAK], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2200  # MB; it was 5,400
