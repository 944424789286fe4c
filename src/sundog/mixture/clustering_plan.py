"""The plan of a private clustering: from a budget to dimensions, iterations and noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sundog.mixture.fourier_features import Kernel
from sundog.models.released import CENTRES, COUNTS, MOMENTS, WIDTH
from sundog.privacy.calibration import find_smallest_noise
from sundog.privacy.events import Charge, Gaussian, Pure
from sundog.privacy.ledger import Budget

_WIDTH_SHARE = 0.05  # of ε
_MOMENTS_SHARE, _COUNTS_SHARE = 0.5, 0.03  # of the inverse variance of the noise; centres have what is left
_SMALLEST_DIMENSION, _LARGEST_DIMENSION = 16.0, 512  # of the Fourier features
_COARSE = 2  # iterations with more centres than there will be clusters


@dataclass(frozen=True)
class ClusteringPlan:
    """The public numbers of one clustering.

    Args:
        records: about how many records there are, declared or counted with noise.
        clusters: the number of clusters.
        public: whether public records show the width of the kernel, the space and the start.
        kernel: gaussian or exponential.
        dimension: of the Fourier features.
        rank: dimensions of the space in which centres are sought.
        coarse: iterations with more centres than clusters.
        iterations: those with one centre for each cluster.
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

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges of the clustering."""
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
    """Plan dimensions and iterations by the budget and the number of records, with the least noise that they allow.

    >>> plan = plan_clustering(Budget(1.0, 1e-5), records=60_000, clusters=10)
    >>> plan.dimension, plan.rank, plan.iterations
    (418, 10, 4)

    Args:
        budget: for the clustering.
        records: about how many there are, declared or paid for; never the exact private count.
        clusters: the number of clusters.
        kernel: gaussian or exponential.
        dimension: of the Fourier features; None for one that the budget allows.
        iterations: of k-means; None for as many as the budget allows.
        public: whether there will be public records.
    """
    signal = _compute_signal(budget, records)
    dimension = dimension or (_LARGEST_DIMENSION if public else _choose_dimension(signal))
    iterations = iterations or _choose_iterations(signal, clusters)
    moments = 0.0 if public else _MOMENTS_SHARE
    centres = (1 - moments - _COUNTS_SHARE) / (_COARSE + iterations)

    def plan_at(noise: float) -> ClusteringPlan:
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
            centres_noise=noise / math.sqrt(centres),
            counts_noise=noise / math.sqrt(_COUNTS_SHARE),
        )

    noise = find_smallest_noise(lambda noise: plan_at(noise).charges, epsilon=budget.epsilon, delta=budget.delta)
    return plan_at(noise)


# --- rules that were chosen by the accuracy of a few runs on MNIST; nothing else was tried ---


def _compute_signal(budget: Budget, records: int) -> float:
    """Return the number of records over the noise multiplier of a single sum that spends the whole budget."""
    return max(1, records) / find_smallest_noise(
        lambda noise: [_make_gaussian(noise, CENTRES)], epsilon=budget.epsilon, delta=budget.delta
    )


def _choose_dimension(signal: float) -> int:
    """Return the dimension of Fourier features, an even number.

    >>> _choose_dimension(16_000.0), _choose_dimension(2_000.0), _choose_dimension(1.0)
    (418, 148, 16)
    """
    return 2 * round(min(_LARGEST_DIMENSION, max(_SMALLEST_DIMENSION, 3.3 * math.sqrt(signal))) / 2)


def _choose_iterations(signal: float, clusters: int) -> int:
    """Return how many iterations of k-means the signal allows, from 1 to 4.

    >>> [_choose_iterations(signal, clusters=10) for signal in (100.0, 4_000.0, 16_000.0, 10.0**6)]
    [1, 2, 4, 4]
    """
    return 1 + max(0, min(3, math.floor(math.log2(signal / (200 * clusters)))))


def _make_gaussian(noise_multiplier: float, purpose: str) -> Charge:
    return Charge(event=Gaussian(noise_multiplier=noise_multiplier), purpose=purpose)
