"""An audit of a whole mixture: can a record that moved from one cluster to another be told from its release?

In one world a record with a mark is of the one kind, in the other of the other kind; the rest is the same. The mixture
clusters, assigns and learns as it always does, and somebody who sees the release guesses. A record that moved is one
removed and one added: so at most 2ε, with a δ that no number of runs here could show. From guesses that are right at a
rate p follows an ε of log(p / (1 − p)) at least.

The attacks must catch components without noise, and a record that decides where all others go.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from tests.contracts.material import schema_of
from tests.statistical.test_training_audit import SURE, smallest_rate

from sundog.data.records import Records
from sundog.mixture.clustering import Clusters
from sundog.mixture.configuration import MixtureConfiguration
from sundog.mixture.mixture import Mixture
from sundog.models.independent.configuration import IndependentConfiguration
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

Attack = Callable[[Mixture], float]  # above 0 where it thinks that the record has moved

COMMON, RARE = 6_000, 4_000
RECORDS = COMMON + RARE + 1
KINDS = ("b0", "b1", "b2", "b3")
SCHEMA = schema_of({name: {"type": "boolean"} for name in (*KINDS, "mark")}, records=RECORDS)
CONFIGURATION = MixtureConfiguration(
    component=IndependentConfiguration(), clustering=0.5, by=tuple(KINDS), dimension=16, iterations=1
)
RUNS = 60
EPSILON = 0.5


pytestmark = pytest.mark.usefixtures("one_thread")


def make_records(moved: bool) -> Records:
    """Many of one kind, fewer of the other, and the record."""
    kinds = np.array([0] * COMMON + [1] * RARE + [int(moved)], np.uint8)
    mark = np.array([0] * (RECORDS - 1) + [1], np.uint8)
    return Records(SCHEMA, {**dict.fromkeys(KINDS, kinds), "mark": mark}, RECORDS)


def compute_shares(mixture: Mixture, *names: str) -> Floats:
    """The part of ones in these columns of each component."""
    columns = [[each.marginals[name][1] for name in names] for each in mixture.components]  # type: ignore[attr-defined]
    return np.asarray(np.mean(columns, axis=1))


def where_the_mark_is(mixture: Mixture) -> float:
    """In the component of the second kind, or in that of the first."""
    marks, kind = mixture.weights * compute_shares(mixture, "mark"), compute_shares(mixture, *KINDS)
    return float(marks[kind.argmax()] - marks[kind.argmin()])


def which_kind_is_common(mixture: Mixture) -> float:
    return float(compute_shares(mixture, *KINDS)[mixture.weights.argmax()]) - 0.5


def epsilon_of(*attacks: Attack) -> float:
    """A lower bound on what two records lose, from how often the guess of the best attack is right."""
    plan = Mixture.plan(SCHEMA, Budget(EPSILON, 1e-6), CONFIGURATION, already=(), records=RECORDS)
    right = np.zeros(len(attacks), int)
    for moved in np.random.default_rng(0).random(RUNS) < 0.5:
        ledger = Ledger(epsilon=EPSILON, delta=1e-6)
        mixture = Mixture.fit(make_records(bool(moved)), plan, ledger, FitContext())
        assert ledger.charges == plan.charges
        right += [(attack(mixture) > 0) == moved for attack in attacks]
    rate = smallest_rate(int(right.max()), RUNS, SURE)
    return math.log(rate / (1 - rate))


def test_a_moved_record_loses_no_more_than_two_records() -> None:
    assert epsilon_of(where_the_mark_is, which_kind_is_common) <= 2 * EPSILON


def test_components_without_noise_lose_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(source: NoiseSource, *, sigma: float, size: tuple[int, ...]) -> Integers:
        return np.zeros(size, np.int64)

    monkeypatch.setattr(NoiseSource, "discrete_gaussian", silent)
    assert epsilon_of(where_the_mark_is) > 2 * EPSILON


def test_a_record_that_moves_others_loses_more(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Clusters.assign

    def swayed(clusters: Clusters, features: Features, records: Records) -> Integers:
        moved: Integers = (own(clusters, features, records) + int(records.codes["b0"][-1])) % 2
        return moved

    monkeypatch.setattr(Clusters, "assign", swayed)
    assert epsilon_of(which_kind_is_common) > 2 * EPSILON
