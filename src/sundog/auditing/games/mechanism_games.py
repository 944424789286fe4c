"""Games for the mechanisms in `privacy/mechanisms/`, each on the worst pair of inputs that was found for it.

Scores are likelihood ratios, or increase with them, where these have a simple form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from sundog.auditing.games.game import Game
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import (
    Partition,
    exponential_mechanism,
    gaussian_group_sums,
    gaussian_moments,
    gaussian_sum,
    noisy_count,
    noisy_extent,
    noisy_histogram,
    noisy_max,
    noisy_quantiles,
    noisy_tree,
    stable_set,
)
from sundog.privacy.mechanisms.selection import compute_stable_threshold

Floats = npt.NDArray[np.float64]

_PURE = 1.0  # ε of the mechanisms without δ
_OTHERS = np.array(
    [[-0.2, 0.5, 0.1], [0.0, 2.0, 0.0], [-4.0, 0.0, 3.0], [-0.1, 0.0, 0.7]]
)  # rows that are always there
_RECORD = np.array([[30.0, 0.0, 0.0]])  # far longer than the clipping norm of 1
_PURPOSE = "a game"


def make_mechanism_games(*, noise_multiplier: float) -> list[Game]:
    """Return a game for each mechanism.

    >>> [game.name for game in make_mechanism_games(noise_multiplier=1.0)][:3]
    ['gaussian_sum', 'gaussian_group_sums', 'gaussian_moments']

    Args:
        noise_multiplier: of mechanisms with Gaussian noise, as they charge it.
    """
    gaussian: dict[str, Callable[[bool, Ledger, float], Sequence[float]]] = {
        "gaussian_sum": _play_sum,
        "gaussian_group_sums": _play_group_sums,
        "gaussian_moments": _play_moments,
        "noisy_histogram": _play_histogram,
        "noisy_tree": _play_tree,
    }
    pure: dict[str, Callable[[bool, Ledger], Sequence[float]]] = {
        "noisy_count": _play_count,
        "exponential_mechanism": _play_exponential_mechanism,
        "noisy_max": _play_noisy_max,
        "noisy_quantiles": _play_quantiles,
        "noisy_extent": _play_extent,
        "stable_set": _play_stable_set,
    }
    games = [Game(name, _fix_noise(play, noise_multiplier)) for name, play in gaussian.items()]
    return games + [Game(name, play) for name, play in pure.items()]


def _fix_noise(
    play: Callable[[bool, Ledger, float], Sequence[float]], noise_multiplier: float
) -> Callable[[bool, Ledger], Sequence[float]]:
    return lambda present, ledger: play(present, ledger, noise_multiplier)


# --- Gaussian noise ------------------------------------------------------------------------------------------------


def _play_sum(present: bool, ledger: Ledger, sigma: float) -> Sequence[float]:
    rows = np.concatenate([_OTHERS, _RECORD[: int(present)]])
    return [gaussian_sum(rows, clip_norm=1.0, noise_multiplier=sigma, ledger=ledger, purpose=_PURPOSE)[0]]


def _play_group_sums(present: bool, ledger: Ledger, sigma: float) -> Sequence[float]:
    rows = np.concatenate([_OTHERS, _RECORD[: int(present)]])
    group = np.array([0, 1, 0, 1, 1][: len(rows)])
    counts, sums = gaussian_group_sums(
        [(group, rows)], groups=2, width=3, clip_norm=1.0, noise_multiplier=sigma, ledger=ledger, purpose=_PURPOSE
    )
    squared = 3**-0.5  # of the weight of a count, whose noise is larger by its inverse than that of a sum
    return [squared * counts[1] + sums[1, 0]]


def _play_moments(present: bool, ledger: Ledger, sigma: float) -> Sequence[float]:
    rows = np.concatenate([_OTHERS, _RECORD[: int(present)]])
    total, products = gaussian_moments(
        [rows], width=3, clip_norm=1.0, noise_multiplier=sigma, ledger=ledger, purpose=_PURPOSE
    )
    return [0.5 * total[0] + products[0, 0]]  # the variance of a total is twice that of a product


def _play_histogram(present: bool, ledger: Ledger, sigma: float) -> Sequence[float]:
    """Count two records of one person, each in two cells: four measurements of the one-cell mechanism."""
    counts = np.zeros(5, np.int64)
    counts[:2] = 2 * present
    noisy = noisy_histogram(counts, sigma=2 * sigma, ledger=ledger, purpose=_PURPOSE, touched=2, contribution=2)
    return [float(noisy[:2].sum())]


def _play_tree(present: bool, ledger: Ledger, sigma: float) -> Sequence[float]:
    """Count a record at two levels; the interval that it is in is always cut."""
    code = 500
    tree: Partition | None = noisy_tree(
        np.full(50 + present, code),
        size=1000,
        sigma=math.sqrt(2) * sigma,
        threshold=10,
        ledger=ledger,
        purpose=_PURPOSE,
    )
    score = 0.0
    while tree is not None:
        place = int(np.searchsorted(tree.bounds, code, side="right")) - 1
        score += float(tree.counts[place])
        tree = tree.parts.get(place)
    return [score]


# --- no δ ----------------------------------------------------------------------------------------------------------


def _play_count(present: bool, ledger: Ledger) -> Sequence[float]:
    return [noisy_count(10 + present, epsilon=_PURE, ledger=ledger, purpose=_PURPOSE)]


def _play_exponential_mechanism(present: bool, ledger: Ledger) -> Sequence[float]:
    """Change all scores by one: the first one up, all others down."""
    scores = _score_candidates(10, present)
    return [-exponential_mechanism(scores, epsilon=_PURE, sensitivity=1.0, ledger=ledger, purpose=_PURPOSE)]


def _play_noisy_max(present: bool, ledger: Ledger) -> Sequence[float]:
    return [-noisy_max(_score_candidates(5, present), epsilon=_PURE, sensitivity=1.0, ledger=ledger, purpose=_PURPOSE)]


def _score_candidates(count: int, present: bool) -> Floats:
    return np.where(np.arange(count) == 0, float(present), float(not present))


def _play_quantiles(present: bool, ledger: Ledger) -> Sequence[float]:
    """Ask for a quantile between two gaps of the same width and score; a large value brings it nearer to the second."""
    codes = np.repeat([0, 499, 999], [8, 2, int(present)])
    return noisy_quantiles(codes, [0.9], size=1000, epsilon=_PURE, ledger=ledger, purpose=_PURPOSE)


def _play_extent(present: bool, ledger: Ledger) -> Sequence[float]:
    """Count values in one cell, of which there are just about enough to stand out."""
    size = 10
    enough = math.ceil(math.log(1000 * size) / _PURE)
    cells = np.full(enough - 1 + present, 3)
    found = noisy_extent(cells, size=size, epsilon=_PURE, ledger=ledger, purpose=_PURPOSE)
    return [float(found is not None)]


def _play_stable_set(present: bool, ledger: Ledger) -> Sequence[float]:
    """Hold a key just about often enough for it to be published."""
    delta = 1e-6
    threshold = compute_stable_threshold(rate=_PURE, delta=delta, contribution=1)
    counts = {"common": threshold - 1 + present}
    found = stable_set(counts, epsilon=_PURE, delta=delta, ledger=ledger, purpose=_PURPOSE)
    return [float("common" in found)]
