"""Private kernel k-means (Acs et al. 2019, Algorithm 2), from a plan to a cluster for each record.

1. The width of the kernel is the noisy median distance of pairs of records. 2. Records become random Fourier features,
vectors of norm one in many dimensions. 3. Their noisy second moments give the few directions in which they differ: k
centres span at most k dimensions, and noise in any other only hides them. 4. In that space, private Lloyd starts with
more centres than wanted, drawn from a normal distribution with those moments. 5. The noisy centres are clustered, which
is free, and private Lloyd continues from there. 6. The records nearest to each final centre are counted, with noise.

Public records, if given, determine the width, the space and the start, and the budget goes to centres and counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sundog.data.records import Records
from sundog.errors import ReleaseError, SundogError
from sundog.mixture.clustering_plan import ClusteringPlan
from sundog.mixture.feature_space import PrincipalSubspace
from sundog.mixture.fourier_features import (
    FourierFeatures,
    balance_columns,
    compute_median_distance,
    measure_median_distance,
)
from sundog.mixture.kmeans import (
    Centres,
    Points,
    clip_to_ball,
    find_nearest_centre,
    round_to_grain,
    run_private_lloyd,
    split_into_chunks,
)
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext
from sundog.models.released import CENTRES, COUNTS, MOMENTS, WIDTH
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.ledger_views import Prepaid
from sundog.privacy.mechanisms import gaussian_group_sums
from sundog.training.batches.examples import Device

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Tensors = dict[str, npt.NDArray[Any]]

_FINER = 3  # centres for each that is wanted, at first
_DRAWN = 100  # points for each centre, where a start is drawn
_POINTS = 20_000  # from which a start is found, at most
_FARTHEST = 2.0  # that two features can be from each other
_RESTARTS = 10  # of the clustering of noisy centres


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
        """Return the cluster of each record, which depends on no other record."""
        # Features are whole numbers here, so that sums are exact.
        scale = self.fourier.scale
        offsets = np.square(self.centres).sum(axis=1) / (2 * scale)
        found = [(units @ self.centres.T - offsets).argmax(axis=1) for units in self.fourier.stream(features, records)]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def to_tensors(self) -> Tensors:
        """Return the clusters as plain arrays."""
        arrays = {"weight": self.fourier.weight, "centres": self.centres, "counts": self.counts}
        return {name: array.astype(np.float32) for name, array in arrays.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, npt.NDArray[Any]], device: Device = None) -> Clusters:
        """Return the clusters of arrays; raise ReleaseError if they are not those of clusters."""
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
    """Cluster the records; the whole plan is charged at once, before anything is measured.

    >>> import scipy.sparse
    >>> from sundog.data.schema import Schema
    >>> from sundog.mixture.clustering_plan import plan_clustering
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
    public = _get_public(plan, context)
    rng = np.random.default_rng(context.seed)
    ledger.spend(*plan.charges)
    prepaid = Prepaid(ledger, _split_charges(plan.charges))
    context.progress("clustering", 0.0)
    fourier = _draw_fourier(features, records, public, plan, prepaid, rng, context.device)
    space = _find_subspace(fourier, features, records, public, plan, prepaid)
    context.progress("clustering", 0.4)
    points = split_into_chunks(space.project(fourier, features, records))
    context.progress("clustering", 0.8)
    known = None if public is None else space.project(fourier, features, public)
    start = _find_start(points, known, space, plan, prepaid, rng)
    found = _move_centres(points, start, space, plan, prepaid, rng, iterations=plan.iterations)
    counts = _count_clusters(points, found.centres, plan, prepaid)
    context.progress("clustering", 1.0)
    return Clusters(fourier, space.mean + found.centres @ space.basis.T, counts)


# --- the space ---


def _draw_fourier(
    features: Features,
    records: Records,
    public: Records | None,
    plan: ClusteringPlan,
    ledger: Ledger,
    rng: np.random.Generator,
    device: Device,
) -> FourierFeatures:
    """Draw Fourier features whose kernel is as wide as the median distance of records."""
    if public is not None:
        distance = compute_median_distance(features, public, rng)
    else:
        distance = measure_median_distance(features, records, epsilon=plan.width_epsilon, ledger=ledger, purpose=WIDTH)
    return FourierFeatures.draw(
        width=features.width,
        dimension=plan.dimension,
        distance=distance,
        kernel=plan.kernel,
        rng=rng,
        weights=balance_columns(features),
        device=device,
    )


def _find_subspace(
    fourier: FourierFeatures,
    features: Features,
    records: Records,
    public: Records | None,
    plan: ClusteringPlan,
    ledger: Ledger,
) -> PrincipalSubspace:
    """Return the directions in which public records differ, or those of noisy moments of private ones."""
    if public is not None:
        return PrincipalSubspace.of_public(fourier, features, public, rank=plan.rank)
    return PrincipalSubspace.of_private(
        fourier,
        features,
        records,
        rank=plan.rank,
        count=plan.records,
        noise_multiplier=plan.moments_noise,
        ledger=ledger,
        purpose=MOMENTS,
    )


# --- centres ---


def _find_start(
    points: Points,
    known: npt.NDArray[Any] | None,
    space: PrincipalSubspace,
    plan: ClusteringPlan,
    ledger: Ledger,
    rng: np.random.Generator,
) -> Floats:
    """Return starting centres: more than are wanted, moved by private Lloyd and then clustered."""
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
    """Return the noisy number of records nearest to each centre."""
    chunks = ((find_nearest_centre(chunk, centres), np.zeros((len(chunk), 0))) for chunk in points())
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
    """Run k-means on points that are public."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different points than clusters
        solver = KMeans(clusters, n_init=restarts, random_state=int(rng.integers(2**31)))
        return np.asarray(solver.fit(points, sample_weight=weights).cluster_centers_, np.float64)


# --- what the plan needs ---


def _get_public(plan: ClusteringPlan, context: FitContext) -> Records | None:
    """Return the public records that the plan needs; raise SundogError if there are too few."""
    if not plan.public:
        return None
    least = max(2, plan.clusters)
    if context.public is None or len(context.public) < least:
        raise SundogError(f"{plan.clusters} clusters need at least {least} public records to start from; give more")
    return context.public


def _split_charges(charges: Sequence[Charge]) -> list[Charge]:
    """Return the charges as mechanisms make them, one count at a time."""
    return [charge.model_copy(update={"count": 1}) for charge in charges for _ in range(charge.count)]
