"""Private Lloyd: Lloyd where the noise is tiny, sound where clusters are empty, and nothing but noisy sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.cluster import KMeans

from sundog.mixture.kmeans import (
    Centres,
    find_nearest_centre,
    round_to_grain,
    run_private_lloyd,
    split_into_chunks,
    spread_directions,
)
from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Ledger

Floats = npt.NDArray[np.float64]


class Free(Ledger):
    """Takes any charge, and remembers it."""

    def __init__(self) -> None:
        super().__init__(epsilon=1.0, delta=1e-5)
        self.made: list[Charge] = []

    def spend(self, *charges: Charge) -> None:
        self.made += charges


def lloyd(points: Floats, start: Floats, ledger: Ledger | None = None, **changes: Any) -> Centres:
    options = {"iterations": 3, "clip_norm": 1.0, "noise_multiplier": 1e-7, **changes}
    rng = np.random.default_rng(0)
    return run_private_lloyd(split_into_chunks(points), start, ledger=ledger or Free(), purpose="p", rng=rng, **options)


def blobs(n: int = 3000, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.5, 0.5, (4, 5))
    points = round_to_grain(centres[rng.integers(0, 4, n)] + 0.15 * rng.uniform(-1, 1, (n, 5)))
    return points, round_to_grain(points[:4] + 0.0)


@pytest.mark.parametrize("iterations", [1, 4])
def test_with_little_noise_it_is_lloyd(iterations: int) -> None:
    points, start = blobs()
    found = lloyd(points, start, iterations=iterations, clip_norm=3.0)
    oracle = KMeans(4, init=start, n_init=1, max_iter=iterations, tol=0.0, algorithm="lloyd")
    oracle.fit(points)
    np.testing.assert_allclose(found.centres, oracle.cluster_centers_, atol=1e-4)


def test_each_iteration_is_charged() -> None:
    ledger = Free()
    lloyd(*blobs(100), ledger, iterations=5, noise_multiplier=3.0)
    assert ledger.made == [Charge(event=Gaussian(noise_multiplier=3.0), purpose="p")] * 5


def test_noise_moves_centres_by_as_much_as_it_should() -> None:
    points = np.zeros((20_000, 16))
    drawn = np.stack([lloyd(points, np.zeros((1, 16)), iterations=1, noise_multiplier=50.0).centres for _ in range(40)])
    expected = 50.0 * np.sqrt(1.25) / 20_000
    assert 0.8 * expected < drawn.std() < 1.25 * expected


def test_a_cluster_that_nobody_is_in_starts_again_in_the_largest() -> None:
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(0.5, 0.02, (900, 2)), rng.normal(-0.5, 0.02, (300, 2))])
    start = np.array([[0.5, 0.5], [-0.5, -0.5], [-0.9, 0.9]])  # the last is far from all
    found = lloyd(points, start, iterations=1, noise_multiplier=0.5)
    assert np.linalg.norm(found.centres[2] - [0.5, 0.5]) < 0.15
    again = lloyd(points, start, iterations=6, noise_multiplier=0.5)
    assert (again.counts > 50).all()


def test_points_that_are_all_equal() -> None:
    found = lloyd(np.full((500, 3), 0.25), np.zeros((4, 3)), noise_multiplier=1.0)
    assert np.isfinite(found.centres).all()
    assert np.linalg.norm(found.centres - 0.25, axis=1).min() < 0.05


@pytest.mark.parametrize("count", [0, 1, 3])
def test_fewer_points_than_clusters(count: int) -> None:
    found = lloyd(np.full((count, 3), 0.5), spread_directions(5, 3, np.random.default_rng(0)), noise_multiplier=2.0)
    assert found.centres.shape == (5, 3)
    assert (np.linalg.norm(found.centres, axis=1) <= 1 + 1e-4).all()


def test_centres_stay_in_the_ball_however_loud_the_noise() -> None:
    points, start = blobs()
    found = lloyd(points, start, clip_norm=0.7, noise_multiplier=1e5)
    assert (np.linalg.norm(found.centres, axis=1) <= 0.7 + 1e-4).all()


def test_the_nearest_is_the_nearest() -> None:
    rng = np.random.default_rng(2)
    points, centres = round_to_grain(rng.normal(size=(400, 3))), round_to_grain(rng.normal(size=(7, 3)))
    distances = np.square(points[:, None] - centres[None]).sum(axis=2)
    np.testing.assert_array_equal(find_nearest_centre(points, centres), distances.argmin(axis=1))
    np.testing.assert_array_equal(find_nearest_centre(points[5:6], centres), find_nearest_centre(points, centres)[5:6])


@pytest.mark.parametrize(("count", "width"), [(0, 3), (1, 1), (6, 3), (7, 3), (10, 200)])
def test_a_packing_keeps_its_distance(count: int, width: int) -> None:
    directions = spread_directions(count, width, np.random.default_rng(0))
    assert directions.shape == (count, width)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0)
    if 0 < count <= 2 * width:
        assert (directions @ directions.T - 2 * np.eye(count)).max() < 1e-9  # no two less than a right angle apart
