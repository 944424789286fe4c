"""Scores of generated images, from the output of a classifier or a discriminator.

All are functions of plain arrays: class probabilities, features or logits. The Inception and the Jensen-Shannon score
are those of Zhang, Ji and Wang (2018, section 5.3); the Fréchet distance is that of Heusel et al. (2017).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit, log_expit
from threadpoolctl import threadpool_limits

from sundog.evaluation.measure import Measure

Array = NDArray[Any]

GROUPS = 10  # of a jackknife


def compute_inception_score(probabilities: Array) -> float:
    """Return the Inception score exp E KL(p(y|x) ‖ p(y)) over images x (Salimans et al. 2016).

    It is high where a classifier is confident about each image and predicts all classes evenly: from 1 to the number of
    classes.

    >>> round(compute_inception_score(np.eye(10)), 6), round(compute_inception_score(np.full((5, 10), 0.1)), 6)
    (10.0, 1.0)

    Args:
        probabilities: of the classes, one row per image.
    """
    information = entr(probabilities.mean(axis=0)).sum() - entr(probabilities).sum(axis=1).mean()
    return float(np.exp(information))


def compute_frechet_distance(first: Array, second: Array) -> float:
    """Return the squared 2-Wasserstein distance of the normal distributions fitted to two samples.

    It is ‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2 (Σ₁Σ₂)^½). With Σ = RᵀR, by a QR decomposition of the centred sample, the last
    trace is the sum of the singular values of R₁R₂ᵀ, which needs no matrix root and works for singular Σ.

    >>> sample = np.random.default_rng(0).normal(size=(500, 3))
    >>> round(compute_frechet_distance(sample, sample + [3, 4, 0]), 6)
    25.0
    """
    with threadpool_limits(1):  # more threads would only wait for each other
        root_1, root_2 = _factor_covariance(first), _factor_covariance(second)
        common = np.linalg.svd(root_1 @ root_2.T, compute_uv=False).sum()
    between = np.square(first.mean(axis=0, dtype=np.float64) - second.mean(axis=0, dtype=np.float64)).sum()
    return max(0.0, float(between + np.square(root_1).sum() + np.square(root_2).sum() - 2 * common))


def _factor_covariance(sample: Array) -> Array:
    """Return R with RᵀR the covariance of the rows."""
    centred = sample - sample.mean(axis=0, dtype=np.float64)
    return np.asarray(np.linalg.qr(centred / math.sqrt(max(1, len(sample) - 1)), mode="r"))


def measure_frechet(first: Array, second: Array, rng: np.random.Generator) -> Measure:
    """Return the Fréchet distance without small-sample bias, with its interval, by a jackknife over tenths.

    The plain distance of two samples of one distribution is not 0 but decreases as one over their size; a jackknife
    removes exactly such a bias.
    """
    groups = min(GROUPS, len(first), len(second))
    whole = compute_frechet_distance(first, second)
    if groups < 2:
        return Measure(whole, 0.0, math.inf)
    group_1, group_2 = (rng.permutation(len(sample)) % groups for sample in (first, second))
    without = [compute_frechet_distance(first[group_1 != group], second[group_2 != group]) for group in range(groups)]
    value = groups * whole - (groups - 1) * float(np.mean(without))
    error = math.sqrt((groups - 1) * float(np.var(without)))
    return Measure.around(max(0.0, value), error=error, lowest=0.0)


def measure_jensen_shannon(real: Array, generated: Array) -> Measure:
    """Return the lower bound of the Jensen-Shannon divergence by a discriminator, in nats: from 0 to ln 2.

    For any discriminator D, ln 2 + ½ E ln D(real) + ½ E ln(1 − D(generated)) is at most the divergence, with equality
    for the best D; up to chance, so is the average over images that D was not trained on.

    >>> measure_jensen_shannon(np.zeros(9), np.zeros(9)).value
    0.0
    >>> round(measure_jensen_shannon(np.full(9, 50), np.full(9, -50)).value, 4)
    0.6931

    Args:
        real: logits that an image is real, for real images.
        generated: the same for generated ones.
    """
    gains = log_expit(real) + math.log(2), log_expit(-np.asarray(generated)) + math.log(2)
    value = sum(gain.mean() for gain in gains) / 2
    error = math.sqrt(sum(gain.var() / len(gain) for gain in gains)) / 2
    value = min(math.log(2), max(0.0, float(value)))
    return Measure.around(value, error=error, lowest=0.0, highest=math.log(2))


def compute_discriminator_score(generated: Array) -> float:
    """Return the score of the paper: E ½ KL(D(x) ‖ B) + ½ KL(B ‖ D(x)) over generated x, with a fair coin B.

    The paper calls it the Jensen-Shannon score. It has no upper limit, and measures how confident the discriminator is,
    not whether it is right; so it is shown beside `measure_jensen_shannon`, not in its place. For coins with logits t
    and 0 the sum of both divergences is (D − ½) t.

    >>> compute_discriminator_score(np.zeros(3)), round(compute_discriminator_score(np.array([-2.0, 2.0])), 4)
    (0.0, 0.3808)
    """
    return float(np.mean((expit(generated) - 0.5) * generated) / 2)
