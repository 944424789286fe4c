"""Private selection: one of several candidates, or the set of keys that enough records hold."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sundog.privacy.draws import ChoiceDraw, KeysDraw, PermuteAndFlipDraw
from sundog.privacy.events import Charge, DiscreteLaplace, Event, Failure, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)


def exponential_mechanism(scores: Floats, *, epsilon: float, sensitivity: float, ledger: Ledger, purpose: str) -> int:
    """Return the index of a high score: i with probability ∝ exp(ε·score(i) / 2·sensitivity).

    >>> ledger = Ledger(epsilon=9, delta=1e-6)
    >>> exponential_mechanism(np.array([0.0, 100.0]), epsilon=8, sensitivity=1, ledger=ledger, purpose="a choice")
    1
    """
    ledger.spend(Charge(event=Pure(epsilon=epsilon), purpose=purpose))
    return draw_by_score(np.asarray(scores, dtype=np.float64) * (epsilon / (2 * sensitivity)), ledger.noise)


def draw_by_score(logits: Floats, noise: NoiseSource) -> int:
    """Draw an index with probability ∝ exp(logit); the caller has paid for it."""
    return noise.release(ChoiceDraw(logits), lambda: sample_logits(logits, noise))


def sample_logits(logits: Floats, noise: NoiseSource) -> int:
    """Draw an index with probability ∝ exp(logit), as part of a mechanism that describes the draw itself."""
    cumulative = np.cumsum(np.exp(logits - logits.max()))
    return int(np.searchsorted(cumulative, noise.uniform(1)[0] * cumulative[-1], side="right"))


def noisy_max(scores: Floats, *, epsilon: float, sensitivity: float, ledger: Ledger, purpose: str) -> int:
    """Return the index of a high score by permute-and-flip: never worse than the exponential mechanism.

    (McKenna and Sheldon 2020.)

    >>> ledger = Ledger(epsilon=9, delta=1e-6)
    >>> noisy_max(np.array([0.0, 100.0]), epsilon=8, sensitivity=1, ledger=ledger, purpose="best")
    1
    """
    ledger.spend(Charge(event=Pure(epsilon=epsilon), purpose=purpose))
    logits = np.asarray(scores, dtype=np.float64) * (epsilon / (2 * sensitivity))

    def flip() -> int:
        order = ledger.noise.permutation(len(logits))
        heads = ledger.noise.coin(logits[order] - logits.max())
        return int(order[np.argmax(heads)])  # the first head in random order; the best one is always a head

    return ledger.noise.release(PermuteAndFlipDraw(logits), flip)


def stable_set(
    counts: Mapping[Key, int], *, epsilon: float, delta: float, ledger: Ledger, purpose: str, contribution: int = 1
) -> list[Key]:
    """Return the keys that enough records hold, if the possible keys are not known beforehand.

    They are sorted, so that their order reveals nothing. A key that one unit alone holds is published with probability
    at most δ, which is charged: with `contribution` records a unit can hold that many such keys, each at most that
    often.

    >>> ledger = Ledger(epsilon=2, delta=1e-5)
    >>> stable_set({"red": 5000, "my secret": 1}, epsilon=1, delta=1e-6, ledger=ledger, purpose="colours")
    ['red']
    """
    rate = epsilon / contribution
    # A unit changes one cell when it owns one record; with more, the worst case of any ε-DP mechanism is charged.
    event: Event = DiscreteLaplace(rate=rate) if contribution == 1 else Pure(epsilon=epsilon)
    ledger.spend(Charge(event=event, purpose=purpose), Charge(event=Failure(delta=delta), purpose=purpose))
    threshold = compute_stable_threshold(rate=rate, delta=delta, contribution=contribution)

    def compute() -> list[Key]:
        keys = sorted(counts, key=repr)
        noise = ledger.noise.discrete_laplace(epsilon=rate, size=len(keys))
        return [key for key, extra in zip(keys, noise, strict=True) if counts[key] + extra >= threshold]

    return ledger.noise.release(KeysDraw(counts, rate, threshold), compute)


def compute_stable_threshold(*, rate: float, delta: float, contribution: int) -> int:
    """Return the smallest count at which a key is published: P(contribution + noise ≥ threshold) ≤ δ / contribution.

    >>> compute_stable_threshold(rate=1.0, delta=1e-6, contribution=1)
    15
    """
    tail = delta / contribution * (1 + math.exp(-rate))  # P(noise ≥ k) = exp(−rate·k) / (1 + exp(−rate))
    return contribution + max(1, math.ceil(-math.log(tail) / rate))
