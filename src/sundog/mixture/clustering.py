"""Private kernel k-means (Acs et al. 2019, Algorithm 2), from a budget to a number for each record.

1. The width of the kernel is the noisy median distance of pairs of records. 2. Records become random Fourier features,
long vectors of length one. 3. Their noisy second moments show in which few directions they differ: k centres span no
more than k dimensions, and noise in any other only hides them. 4. In that space, private Lloyd starts with more
centres than were asked for, from a normal distribution of those moments. 5. The noisy centres are clustered, which is
free, and private Lloyd goes on from there. 6. What is nearest to each final centre is counted, with noise.

With public records, the width, the space and the start are theirs, and the budget goes to centres and counts.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.data.records import Records
from sundog.errors import ReleaseError, SundogError
from sundog.mixture.feature_space import PrincipalSubspace
from sundog.mixture.fourier_features import (
    FourierFeatures,
    Kernel,
    balance_columns,
    compute_median_distance,
    measure_median_distance,
)
from sundog.mixture.kmeans import (
    Centres,
    Points,
    clip_to_ball,
    find_nearest,
    round_to_grain,
    run_private_lloyd,
    split_into_chunks,
)
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext
from sundog.models.released import CENTRES, COUNTS, MOMENTS, WIDTH
from sundog.privacy.calibration import smallest_noise
from sundog.privacy.events import Charge, Gaussian, Pure
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.ledger_views import Prepaid
from sundog.privacy.mechanisms import gaussian_group_sums
from sundog.training.batches.examples import Device

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Tensors = dict[str, npt.NDArray[Any]]

_WIDTH_SHARE = 0.05  # of ε
_MOMENTS_SHARE, _COUNTS_SHARE = 0.5, 0.03  # of the inverse variance of the noise; centres have what is left
_LARGEST_DIMENSION = 512  # that is chosen
_FINER = 3  # centres for each one asked for, at first
_COARSE = 2  # iterations with them
_DRAWN = 100  # points for each centre, where a start is drawn
_POINTS = 20_000  # from which a start is found, at most
_FARTHEST = 2.0  # that two features can be from each other
_RESTARTS = 10  # of the clustering of noisy centres


@dataclass(frozen=True)
class ClusteringPlan:
    """The public numbers of one clustering.

    Args:
        records: about how many there are, declared or paid for.
        clusters: how many are wanted.
        public: whether public records show the width of the kernel, the space and the start.
        kernel: gaussian or exponential.
        dimension: of the Fourier features.
        rank: dimensions of the space in which centres are looked for.
        coarse: iterations with more centres than are wanted.
        iterations: those with as many as are wanted.
        width_epsilon: ε of the noisy median distance.
        moments_noise: noise multiplier of the second moments.
        centres_noise: noise multiplier of each iteration.
        counts_noise: noise multiplier of the counts.
    """

    records: int
    clusters: int
    public: bool
    kernel: Kernel
    dimension: int
    rank: int
    coarse: int
    iterations: int
    width_epsilon: float
    moments_noise: float
    centres_noise: float
    counts_noise: float

    def charges(self) -> tuple[Charge, ...]:
        """Everything that the clustering costs."""
        centres = _make_gaussian(self.centres_noise, CENTRES)
        found = [centres.model_copy(update={"count": self.coarse + self.iterations})]
        found.append(_make_gaussian(self.counts_noise, COUNTS))
        if not self.public:
            found.append(Charge(event=Pure(epsilon=self.width_epsilon), purpose=WIDTH))
            found.append(_make_gaussian(self.moments_noise, MOMENTS))
        return tuple(found)


def plan_clustering(
    budget: Budget,
    *,
    records: int,
    clusters: int,
    kernel: Kernel = "gaussian",
    dimension: int | None = None,
    iterations: int | None = None,
    public: bool = False,
) -> ClusteringPlan:
    """Plans dimensions and iterations by the budget and the number of records, and the least noise for them.

    The rules were chosen by the accuracy of a few runs on MNIST, and nothing else was tried. They go by the signal:
    records over the noise multiplier of a single sum that spends the whole budget.

    >>> plan = plan_clustering(Budget(1.0, 1e-5), records=60_000, clusters=10)
    >>> plan.dimension, plan.rank, plan.iterations
    (418, 10, 4)
    >>> poor = plan_clustering(Budget(0.1, 1e-5), records=60_000, clusters=10)
    >>> poor.dimension, poor.iterations
    (146, 1)

    Args:
        budget: what the clustering may cost.
        records: about how many there are, declared or paid for; never the exact private count.
        clusters: how many are wanted.
        kernel: gaussian or exponential.
        dimension: of the Fourier features; None for one that the budget allows.
        iterations: of k-means; None for as many as the budget allows.
        public: whether there will be public records.
    """
    once = smallest_noise(lambda noise: [_make_gaussian(noise, CENTRES)], epsilon=budget.epsilon, delta=budget.delta)
    signal = max(1, records) / once
    dimension = dimension or (
        _LARGEST_DIMENSION if public else 2 * round(min(_LARGEST_DIMENSION, max(16.0, 3.3 * math.sqrt(signal))) / 2)
    )
    iterations = iterations or 1 + max(0, min(3, math.floor(math.log2(signal / (200 * clusters)))))
    moments = 0.0 if public else _MOMENTS_SHARE
    each = (1 - moments - _COUNTS_SHARE) / (_COARSE + iterations)

    def at(noise: float) -> ClusteringPlan:
        return ClusteringPlan(
            records=max(1, records),
            clusters=clusters,
            public=public,
            kernel=kernel,
            dimension=dimension,
            rank=min(dimension, max(4, clusters) * (2 if public else 1)),
            coarse=_COARSE,
            iterations=iterations,
            width_epsilon=_WIDTH_SHARE * budget.epsilon,
            moments_noise=noise / math.sqrt(moments) if moments else noise,
            centres_noise=noise / math.sqrt(each),
            counts_noise=noise / math.sqrt(_COUNTS_SHARE),
        )

    return at(smallest_noise(lambda noise: at(noise).charges(), epsilon=budget.epsilon, delta=budget.delta))


class Clusters:
    """Centres in the space of Fourier features, and about how many records are nearest to each.

    Args:
        fourier: the features.
        centres: of shape (clusters, dimension of the features).
        counts: noisy ones, which may be negative.
    """

    def __init__(self, fourier: FourierFeatures, centres: npt.NDArray[Any], counts: npt.NDArray[Any]) -> None:
        self.fourier = fourier
        self.centres = round_to_grain(centres)
        self.counts = np.asarray(counts, np.float64)

    def assign(self, features: Features, records: Records) -> Integers:
        """Return the cluster of each record, by nothing but the record."""
        # Features are whole numbers here, so that no sum is rounded.
        scale = self.fourier.scale
        offsets = np.square(self.centres).sum(axis=1) / (2 * scale)
        found = [(units @ self.centres.T - offsets).argmax(axis=1) for units in self.fourier.stream(features, records)]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def to_tensors(self) -> Tensors:
        """Everything, as plain arrays."""
        arrays = {"weight": self.fourier.weight, "centres": self.centres, "counts": self.counts}
        return {name: array.astype(np.float32) for name, array in arrays.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, npt.NDArray[Any]], device: Device = None) -> Clusters:
        """Return the clusters that the arrays came from; raises ReleaseError if there are none."""
        if set(tensors) != {"weight", "centres", "counts"}:
            raise ReleaseError("the arrays are not those of clusters")
        weight, centres, counts = (tensors[name] for name in ("weight", "centres", "counts"))
        if not (
            weight.ndim == centres.ndim == 2 and centres.shape == (len(counts), 2 * weight.shape[1]) and len(counts)
        ):
            raise ReleaseError("the arrays of the clusters do not fit together")
        if not all(np.isfinite(array).all() for array in (weight, centres, counts)):
            raise ReleaseError("the arrays of the clusters are not all finite numbers")
        return cls(FourierFeatures(weight, device), centres, counts)


def find_clusters(
    features: Features, records: Records, plan: ClusteringPlan, ledger: Ledger, context: FitContext
) -> Clusters:
    """Clusters the records, charging the whole plan at once and before anything is measured.

    >>> import scipy.sparse
    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {"basket": {"type": "set", "universe": 9, "max_size": 2}}})
    >>> ledger, features = Ledger(epsilon=1.0, delta=1e-6), Features(schema)
    >>> plan = plan_clustering(ledger.budget, records=500, clusters=3)
    >>> records = Records(schema, {"basket": scipy.sparse.csr_array(np.eye(500, 9, dtype=np.uint8))}, 500)
    >>> clusters = find_clusters(features, records, plan, ledger, FitContext(seed=0))
    >>> clusters.assign(features, records).shape, clusters.counts.shape
    ((500,), (3,))

    Args:
        features: of their schema.
        records: the private records.
        plan: what to spend, and on what.
        ledger: pays, and draws the noise.
        context: has the seed (of frequencies and starts, never of noise), and public records if the plan needs them.
    """
    public = context.public if plan.public else None
    if plan.public and (public is None or len(public) < max(2, plan.clusters)):
        raise SundogError(f"{plan.clusters} clusters that start from public records need as many of them, and two")
    rng = np.random.default_rng(context.seed)
    ledger.spend(*plan.charges())
    prepaid = Prepaid(ledger, _split_charges(plan.charges()))
    context.progress("clustering", 0.0)
    fourier = FourierFeatures.draw(
        width=features.width,
        dimension=plan.dimension,
        distance=_measure_distance(features, records, public, plan, prepaid, rng),
        kernel=plan.kernel,
        rng=rng,
        weights=balance_columns(features),
        device=context.device,
    )
    if public is not None:
        space = PrincipalSubspace.of_public(fourier, features, public, rank=plan.rank)
    else:
        space = PrincipalSubspace.of_private(
            fourier,
            features,
            records,
            rank=plan.rank,
            count=plan.records,
            noise_multiplier=plan.moments_noise,
            ledger=prepaid,
            purpose=MOMENTS,
        )
    context.progress("clustering", 0.4)
    points = split_into_chunks(space.project(fourier, features, records))
    context.progress("clustering", 0.8)
    known = None if public is None else space.project(fourier, features, public)
    start = _find_start(points, known, space, plan, prepaid, rng)
    found = _move_centres(points, start, space, plan, prepaid, rng, iterations=plan.iterations)
    counts = _count_clusters(points, found.centres, plan, prepaid)
    context.progress("clustering", 1.0)
    return Clusters(fourier, space.mean + found.centres @ space.basis.T, counts)


# --- centres ---


def _find_start(
    points: Points,
    known: npt.NDArray[Any] | None,
    space: PrincipalSubspace,
    plan: ClusteringPlan,
    ledger: Ledger,
    rng: np.random.Generator,
) -> Floats:
    """More centres than are wanted, which can do less wrong where they start, made into as many as are wanted."""
    finer = _FINER * plan.clusters
    if known is None:
        drawn = rng.standard_normal((min(_DRAWN * finer, _POINTS), len(space.variances)))
        known = clip_to_ball(drawn * np.sqrt(space.variances), _FARTHEST)
    elif len(known) > _POINTS:
        known = known[rng.choice(len(known), _POINTS, replace=False)]
    start = _run_k_means(known, None, min(finer, len(known)), rng, restarts=1)
    found = _move_centres(points, start, space, plan, ledger, rng, iterations=plan.coarse)
    return _run_k_means(found.centres, np.maximum(found.counts, 0.0) + 1e-6, plan.clusters, rng)


def _move_centres(
    points: Points,
    start: Floats,
    space: PrincipalSubspace,
    plan: ClusteringPlan,
    ledger: Ledger,
    rng: np.random.Generator,
    *,
    iterations: int,
) -> Centres:
    return run_private_lloyd(
        points,
        start,
        iterations=iterations,
        clip_norm=space.radius,
        noise_multiplier=plan.centres_noise,
        ledger=ledger,
        purpose=CENTRES,
        rng=rng,
    )


def _count_clusters(points: Points, centres: Floats, plan: ClusteringPlan, ledger: Ledger) -> Floats:
    """Return how many records are nearest to each centre; with nothing to sum, one record is one."""
    chunks = ((find_nearest(chunk, centres), np.zeros((len(chunk), 0))) for chunk in points())
    counts, _ = gaussian_group_sums(
        chunks,
        groups=len(centres),
        width=0,
        clip_norm=1.0,
        noise_multiplier=plan.counts_noise,
        ledger=ledger,
        purpose=COUNTS,
    )
    return counts


def _run_k_means(
    points: npt.NDArray[Any], weights: Floats | None, clusters: int, rng: np.random.Generator, restarts: int = _RESTARTS
) -> Floats:
    """k-means of what is public."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different points than clusters
        solver = KMeans(clusters, n_init=restarts, random_state=int(rng.integers(2**31)))
        return np.asarray(solver.fit(points, sample_weight=weights).cluster_centers_, np.float64)


# --- small things ---


def _measure_distance(
    features: Features,
    records: Records,
    public: Records | None,
    plan: ClusteringPlan,
    ledger: Ledger,
    rng: np.random.Generator,
) -> float:
    if public is not None:
        return compute_median_distance(features, public, rng)
    return measure_median_distance(features, records, epsilon=plan.width_epsilon, ledger=ledger, purpose=WIDTH)


def _make_gaussian(noise_multiplier: float, purpose: str) -> Charge:
    return Charge(event=Gaussian(noise_multiplier=noise_multiplier), purpose=purpose)


def _split_charges(charges: Sequence[Charge]) -> list[Charge]:
    """Return the charges as mechanisms make them."""
    return [charge.model_copy(update={"count": 1}) for charge in charges for _ in range(charge.count)]
