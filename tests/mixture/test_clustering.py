"""Clustering from a budget to owners: the plan is what is spent, clusters are found, and odd data is survived."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.contracts.material import KINDS, random_records, schema_of

import sundog.mixture.clustering as clustering
from sundog.data.records import Records
from sundog.errors import BudgetExceededError, ReleaseError, SundogError
from sundog.mixture.clustering import Clusters, find_clusters
from sundog.mixture.clustering_plan import ClusteringPlan, plan_clustering
from sundog.mixture.configuration import MixtureConfiguration
from sundog.mixture.feature_space import PrincipalSubspace
from sundog.mixture.fourier_features import FourierFeatures
from sundog.mixture.kmeans import GRAIN, round_to_grain
from sundog.mixture.released import find_unpaid_clustering
from sundog.models.independent.configuration import IndependentConfiguration
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.ledger_views import Prepaid
from sundog.privacy.noise import NoiseSource

IMAGES = schema_of({"image": {"type": "image", "shape": [5, 5], "levels": 2}})
FEATURES = Features(IMAGES)
BUDGET = Budget(1.0, 1e-5)


def draw_stripes(n: int, seed: int = 0) -> tuple[Records, npt.NDArray[np.int64]]:
    """Images with one bright row of five and a little noise, and which row it is."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 5, n)
    images = rng.random((n, 5, 5)) < 0.08
    images[np.arange(n), kind] = rng.random((n, 5)) < 0.95
    return Records(IMAGES, {"image": images.astype(np.uint8)}, n), kind


def planned(records: int = 6000, clusters: int = 5, epsilon: float = 1.0, **changes: Any) -> ClusteringPlan:
    return plan_clustering(Budget(epsilon, 1e-5), records=records, clusters=clusters, **changes)


def compute_purity(kind: npt.NDArray[np.int64], owner: npt.NDArray[np.int64]) -> float:
    table = np.zeros((5, owner.max() + 1))
    np.add.at(table, (kind, owner), 1)
    return float(table.max(axis=0).sum() / len(kind))


# --- plans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 3.0])
def test_a_plan_spends_its_budget_and_no_more(epsilon: float, public: bool) -> None:
    plan = planned(epsilon=epsilon, public=public)
    assert 0.99 * epsilon < compute_epsilon(plan.charges, delta=1e-5) <= epsilon


def test_less_budget_or_fewer_records_mean_fewer_dimensions_and_iterations() -> None:
    plans = [planned(records=n, epsilon=e) for n, e in ((60_000, 2.0), (60_000, 0.2), (600, 0.2))]
    for name in ("dimension", "iterations"):
        values = [getattr(plan, name) for plan in plans]
        assert values == sorted(values, reverse=True), name
    assert plans[0].iterations > plans[-1].iterations
    assert plans[0].dimension > plans[1].dimension > plans[2].dimension


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", "linear"),
        ("dimension", 0),
        ("dimension", 2.5),
        ("dimension", 41),
        ("dimension", 2050),
        ("iterations", 0),
    ],
)
def test_invalid_settings_are_refused(name: str, value: object) -> None:
    with pytest.raises(SundogError, match=name):
        MixtureConfiguration.of(IndependentConfiguration, {name: value}, clusters=5, public=False)


def test_settings_are_kept() -> None:
    plan = planned(kernel="exponential", dimension=40, iterations=7)
    assert (plan.kernel, plan.dimension, plan.iterations) == ("exponential", 40, 7)


# --- clusters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
@pytest.mark.parametrize("public", [False, True])
def test_clusters_are_found(public: bool, kernel: str) -> None:
    records, kind = draw_stripes(6000)
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    plan = planned(epsilon=2.0, public=public, kernel=kernel, dimension=64)
    seen: list[tuple[str, float]] = []
    context = FitContext(
        seed=1,
        public=draw_stripes(300, seed=9)[0] if public else None,
        progress=lambda stage, done: seen.append((stage, done)),
    )
    clusters = find_clusters(FEATURES, records, plan, ledger, context)
    owner = clusters.assign(FEATURES, records)
    assert compute_purity(kind, owner) > 0.8  # a fifth, if nothing is learned
    np.testing.assert_allclose(clusters.counts, np.bincount(owner, minlength=5), atol=6 * plan.counts_noise + 20)
    assert ledger.charges == plan.charges
    assert find_unpaid_clustering(ledger.charges, public=public) == []
    assert {stage for stage, _ in seen} == {"clustering"}
    assert seen[-1][1] == 1.0


def test_everything_is_charged_in_one_line_before_anything_is_drawn() -> None:
    class Drawn(Exception):  # noqa: N818
        pass

    class Untouchable(NoiseSource):
        @property
        def _rng(self) -> np.random.Generator:
            raise Drawn

    ledger = Ledger(epsilon=1.0, delta=1e-5, noise=Untouchable())
    plan = planned(records=200)
    with pytest.raises(Drawn):
        find_clusters(FEATURES, draw_stripes(200)[0], plan, ledger, FitContext(seed=0))
    assert [entry.charges for entry in ledger.entries] == [plan.charges]
    poor = Ledger(epsilon=0.5, delta=1e-5, noise=Untouchable())
    with pytest.raises(BudgetExceededError):
        find_clusters(FEATURES, draw_stripes(200)[0], plan, poor, FitContext(seed=0))
    assert poor.entries == ()


def test_what_was_paid_for_and_lost_is_not_paid_for_again() -> None:
    ledger, plan = Ledger(epsilon=1.0, delta=1e-5), planned(records=300)
    ledger.spend(*plan.charges)
    find_clusters(FEATURES, draw_stripes(300)[0], plan, Prepaid(ledger, plan.charges), FitContext(seed=0))
    assert ledger.charges == plan.charges


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("public", [False, True])
def test_few_records(count: int, public: bool) -> None:
    records = draw_stripes(count)[0]
    context = FitContext(seed=0, public=draw_stripes(40, seed=3)[0] if public else None)
    plan = planned(records=100, public=public)
    clusters = find_clusters(FEATURES, records, plan, Ledger(epsilon=1.0, delta=1e-5), context)
    owner = clusters.assign(FEATURES, records)
    assert owner.shape == (count,)
    assert clusters.counts.shape == (5,)
    assert ((owner >= 0) & (owner < 5)).all()


@pytest.mark.parametrize("clusters", [1, 3, 40])
def test_records_that_are_all_equal(clusters: int) -> None:
    records = draw_stripes(1)[0].take([0] * 400)
    plan = planned(records=400, clusters=clusters)
    found = find_clusters(FEATURES, records, plan, Ledger(epsilon=1.0, delta=1e-5), FitContext(seed=0))
    assert len(set(found.assign(FEATURES, records).tolist())) == 1


@pytest.mark.parametrize("kind", ["mix", "numbered_set", "all_scalars", "series"])
def test_records_of_every_kind(kind: str) -> None:
    schema = schema_of(KINDS[kind])
    records, features = random_records(schema, 150), Features(schema)
    plan = planned(records=150, clusters=3)
    found = find_clusters(features, records, plan, Ledger(epsilon=1.0, delta=1e-5), FitContext(seed=0))
    assert found.assign(features, records).shape == (150,)


@pytest.mark.parametrize("noisy", [True, False])
def test_however_noisy_the_moments_numbers_stay_so_small_that_sums_are_exact(noisy: bool) -> None:
    """One record, and noise a thousand times as long: all that is compared is on the lattice, and not long."""
    records = draw_stripes(1)[0]
    fourier = FourierFeatures.draw(
        width=FEATURES.width, dimension=32, distance=4.0, kernel="gaussian", rng=np.random.default_rng(0)
    )
    mean = np.full(32, 1e3 if noisy else 0.1)
    space = PrincipalSubspace.of_moments(mean, np.diag(np.linspace(0, 1e6, 32)), rank=5)
    assert np.linalg.norm(space.mean) <= 1 + 32 * GRAIN
    if not noisy:
        np.testing.assert_array_equal(space.mean, round_to_grain(mean))
    points = space.project(fourier, FEATURES, records)
    np.testing.assert_array_equal(points, round_to_grain(points))
    assert np.abs(points).max() <= 2


@pytest.mark.parametrize("public", [False, True])
def test_a_start_is_found_from_few_points(public: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[npt.NDArray[Any]] = []

    def noted(points: npt.NDArray[Any], *rest: Any, **options: Any) -> Any:
        seen.append(points)
        return k_means(points, *rest, **options)

    k_means = clustering._run_k_means
    monkeypatch.setattr(clustering, "_run_k_means", noted)
    monkeypatch.setattr(clustering, "_POINTS", 50)
    context = FitContext(seed=0, public=draw_stripes(300, seed=3)[0] if public else None)
    plan = planned(records=3, public=public)
    find_clusters(FEATURES, draw_stripes(100)[0], plan, Ledger(epsilon=1.0, delta=1e-5), context)
    assert [len(points) for points in seen] == [50, 15]
    assert np.linalg.norm(seen[0], axis=1).max() <= 2.01  # though three records have noise longer than they are


def test_too_few_public_records_are_refused_before_anything_is_spent() -> None:
    ledger, plan = Ledger(epsilon=1.0, delta=1e-5), planned(public=True)
    for public in (None, draw_stripes(4)[0]):
        with pytest.raises(SundogError, match="public"):
            find_clusters(FEATURES, draw_stripes(20)[0], plan, ledger, FitContext(public=public))
    assert ledger.entries == ()


# --- arrays ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found() -> Clusters:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    return find_clusters(FEATURES, draw_stripes(300)[0], planned(records=300), ledger, FitContext(seed=0))


def test_arrays_bring_the_same_clusters_back(found: Clusters) -> None:
    tensors = found.to_tensors()
    assert {array.dtype for array in tensors.values()} == {np.dtype(np.float32)}
    again = Clusters.from_tensors(tensors)
    records = draw_stripes(500, seed=4)[0]
    np.testing.assert_array_equal(again.assign(FEATURES, records), found.assign(FEATURES, records))
    np.testing.assert_allclose(again.counts, found.counts, rtol=1e-6)


def test_an_owner_does_not_depend_on_the_others(found: Clusters) -> None:
    records = draw_stripes(200, seed=5)[0]
    whole = found.assign(FEATURES, records)
    assert [int(found.assign(FEATURES, records.take([place]))[0]) for place in range(50)] == whole[:50].tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"centres": None},
        {"centres": np.zeros((5, 3), np.float32)},
        {"counts": np.zeros(4, np.float32)},
        {"counts": np.full(5, np.nan, np.float32)},
        {"weight": np.zeros(3, np.float32)},
        {"more": np.zeros(3, np.float32)},
    ],
)
def test_arrays_that_are_no_clusters_are_refused(found: Clusters, change: dict[str, Any]) -> None:
    tensors = {name: array for name, array in {**found.to_tensors(), **change}.items() if array is not None}
    with pytest.raises(ReleaseError, match="clusters"):
        Clusters.from_tensors(tensors)
