"""The feature extractor of images, in place of the Inception network: a classifier of real images, or their PCA.

One extractor serves the release, the ceiling and the floor: it is cached for as long as the training records are the
same object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.records import Records
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.images.image_classifiers import BATCH, STEPS, Images, train_classifier
from sundog.evaluation.images.image_sample import FEWEST, ImageView

LEARNED_FROM = 20_000  # images
MOST_STEPS, EPOCHS = 2000, 40  # more would make it overconfident
COMPONENTS = 64  # where there are no classes


@dataclass(frozen=True)
class FeatureExtractor:
    """Maps images to features, and to class probabilities if it has learned classes.

    Args:
        extract_features: returns features with a total variance of 1 on the training images, one row per image.
        predict_probabilities: returns class probabilities; None without classes.
    """

    extract_features: Callable[[Images], NDArray[Any]]
    predict_probabilities: Callable[[Images], NDArray[Any]] | None


def fit_feature_extractor(comparison: Comparison, view: ImageView) -> FeatureExtractor | None:
    """Fit the extractor to the training records, or return it from the cache; None where there are too few images."""
    return _fit(_IdentityKey(comparison.train), view, comparison.draw_seed("images.judge"))


class _IdentityKey:
    """Records as a cache key, compared by identity."""

    def __init__(self, records: Records) -> None:
        self.records = records

    def __hash__(self) -> int:
        return id(self.records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdentityKey) and other.records is self.records


@lru_cache(maxsize=1)
def _fit(key: _IdentityKey, view: ImageView, seed: int) -> FeatureExtractor | None:
    known = view.sample(key.records, LEARNED_FROM, np.random.default_rng(seed))
    if len(known) < FEWEST:
        return None
    if view.classes:
        steps = min(MOST_STEPS, max(STEPS, EPOCHS * len(known) // BATCH))
        network = train_classifier("cnn", known.pixels, known.labels, classes=len(view.classes), seed=seed, steps=steps)
        return FeatureExtractor(_scale_features(network.extract_features, known.pixels), network.predict_probabilities)
    return FeatureExtractor(_scale_features(_fit_components(known.pixels, seed), known.pixels), None)


def _fit_components(pixels: Images, seed: int) -> Callable[[Images], NDArray[Any]]:
    from sklearn.decomposition import PCA

    flat = pixels.reshape(len(pixels), -1)
    fitted = PCA(min(COMPONENTS, *flat.shape), random_state=seed).fit(flat)
    return lambda images: np.asarray(fitted.transform(images.reshape(len(images), -1)))


def _scale_features(extract: Callable[[Images], NDArray[Any]], known: Images) -> Callable[[Images], NDArray[Any]]:
    """Return an extractor whose features have a total variance of 1 on the known images: distances are comparable."""
    size = float(np.sqrt(extract(known).var(axis=0).sum())) or 1.0
    return lambda images: extract(images) / size
