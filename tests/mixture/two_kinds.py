"""A table of two kinds of records, and mixtures that were fitted to it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from tests.contracts.material import schema_of

from sundog.data.records import Records
from sundog.mixture.configuration import MixtureConfiguration
from sundog.mixture.mixture import Mixture
from sundog.models.marginals.marginals import Marginals
from sundog.models.protocol import FitContext
from sundog.models.registry import get_configuration
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource

QUICK: dict[str, Any] = {"hidden": 6, "latent": 2, "batch": 50, "epochs": 2}
CLUSTERED: dict[str, Any] = {"dimension": 16, "iterations": 1}
BUDGET = Budget(1.0, 1e-6)

# Two kinds of records: few have a 0 on the left and a 1 on the right, or the other way round.
COLUMNS: dict[str, Any] = {
    **{f"left{i}": {"type": "boolean"} for i in range(4)},
    "side": {"type": "categorical", "values": ["left", "right"]},
    "shade": {"type": "integer", "min": 0, "max": 9},
}
TABLE = schema_of(COLUMNS, records=3000)


def two_kinds(n: int = 3000, seed: int = 0, share: float = 0.75) -> Records:
    """Three quarters are on the left, where everything is true and the shade is dark."""
    rng = np.random.default_rng(seed)
    left = rng.random(n) < share
    codes = {name: np.where(rng.random(n) < 0.97, left, ~left) for name in COLUMNS if name.startswith("left")}
    codes["side"] = ~left
    codes["shade"] = np.where(left, rng.integers(0, 3, n), rng.integers(7, 10, n))
    return Records(TABLE, {name: codes[name].astype(TABLE.columns[name].dtype) for name in COLUMNS}, n)


def configure_mixture(component: str, *, clusters: int = 2, **settings: Any) -> MixtureConfiguration:
    """A quick clustering."""
    asked = {**CLUSTERED, **settings}
    return MixtureConfiguration.of(get_configuration(component), asked, clusters=clusters, public=False)


def fit_mixture(component: str, epsilon: float = 20.0, **settings: Any) -> Mixture:
    configuration = configure_mixture(component, **{"dimension": 64, **settings})
    plan = Mixture.plan(TABLE, Budget(epsilon, 1e-6), configuration, already=(), records=3000)
    ledger = Ledger(epsilon=epsilon, delta=1e-6, noise=NoiseSource.seeded(1))
    return Mixture.fit(two_kinds(), plan, ledger, FitContext(seed=1))


@cache
def fit_independent() -> Mixture:
    return fit_mixture("independent")


@cache
def fit_marginals() -> Mixture:
    """Two components, of which the second has one more pair, so that they have other arrays."""
    first, second = fit_mixture("marginals").components
    assert isinstance(second, Marginals)
    sizes = [second.groups[name].max() + 1 for name in ("left0", "shade")]
    potentials = {**second.potentials, (0, len(COLUMNS) - 1): np.zeros(sizes)}
    units = [[*own, 0] for own in second.units]
    groups, subgroups, order = second.groups, second.subgroups, second.order
    more = Marginals(second.schema, second.marginals, groups, subgroups, potentials, order, second.records, units)
    return Mixture([first, more], np.array([0.75, 0.25]), 3000, public=False)


@cache
def fit_vaes() -> Mixture:
    return fit_mixture("vae", hidden=20, latent=2, batch=200, epochs=8)


def left_of(mixture: Mixture) -> int:
    """The number of the component of those on the left."""
    shares = [np.mean(mixture.sample(400, np.random.default_rng(0), {"cluster": c})["side"]) for c in (0, 1)]
    return int(np.argmin(shares))
