"""The few directions in which Fourier features of records differ, around their mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sundog.data.records import Records
from sundog.mixture.fourier_features import FourierFeatures
from sundog.mixture.kmeans import clip_to_ball, round_to_grain
from sundog.models.neural.features import Features
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import gaussian_moments

Floats = npt.NDArray[np.float64]

_SPREAD = 1.2  # how far points may be from the mean, over the root of their mean square


@dataclass(frozen=True)
class PrincipalSubspace:
    """The principal subspace of Fourier features, in which centres are searched.

    Args:
        mean: of the features.
        basis: the directions, as columns.
        variances: along each of them.
        radius: the distance from the mean within which most points are.
    """

    mean: Floats
    basis: Floats
    variances: Floats
    radius: float

    @classmethod
    def of_moments(cls, mean: Floats, products: Floats, *, rank: int) -> PrincipalSubspace:
        """Return the directions of largest variance of a distribution with these first and second moments.

        >>> PrincipalSubspace.of_moments(np.zeros(3), np.diag([0.0, 0.5, 0.1]), rank=1).basis.round(2).ravel().tolist()
        [0.0, 1.0, 0.0]
        """
        mean = clip_to_ball(mean[None], 1.0)[0]  # features are in the unit ball, and so is their mean without noise
        values, vectors = np.linalg.eigh(products - np.outer(mean, mean))
        variances = np.maximum(values[::-1][:rank], 0.0)
        radius = min(1.0, max(0.05, _SPREAD * math.sqrt(variances.sum())))
        return cls(round_to_grain(mean), round_to_grain(vectors[:, ::-1][:, :rank]), variances, radius)

    @classmethod
    def of_public(
        cls, fourier: FourierFeatures, features: Features, public: Records, *, rank: int
    ) -> PrincipalSubspace:
        """Return the subspace of public records."""
        total, products = np.zeros(fourier.dimension), np.zeros((fourier.dimension, fourier.dimension))
        for units in fourier.stream(features, public):
            z = units * fourier.scale
            total += z.sum(axis=0)
            products += z.T @ z
        return cls.of_moments(total / len(public), products / len(public), rank=rank)

    @classmethod
    def of_private(
        cls,
        fourier: FourierFeatures,
        features: Features,
        records: Records,
        *,
        rank: int,
        count: int,
        noise_multiplier: float,
        ledger: Ledger,
        purpose: str,
    ) -> PrincipalSubspace:
        """Return the subspace of private records, by noisy moments; `count` is the public number of records."""
        total, products = gaussian_moments(
            (units * fourier.scale for units in fourier.stream(features, records)),
            width=fourier.dimension,
            clip_norm=1.0,
            noise_multiplier=noise_multiplier,
            ledger=ledger,
            purpose=purpose,
        )
        return cls.of_moments(total / count, products / count, rank=rank)

    def project(self, fourier: FourierFeatures, features: Features, records: Records) -> npt.NDArray[np.float32]:
        """Return the coordinates of all records in the subspace."""
        found = np.empty((len(records), self.basis.shape[1]), np.float32)
        offset, start = self.mean @ self.basis, 0
        for units in fourier.stream(features, records):
            # Whole numbers, up to a power of two, so that the product is exact; what follows is one number at a time.
            found[start : start + len(units)] = round_to_grain(units @ self.basis * fourier.scale - offset)
            start += len(units)
        return found
