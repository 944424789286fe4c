"""Order statistics and ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sundog.privacy.draws import DiscreteLaplaceDraw, QuantileDraw
from sundog.privacy.events import Charge, DiscreteLaplace, Event, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms.selection import sample_logits
from sundog.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_EXPONENTS = np.arange(-32, 65)  # magnitudes: below 2⁻³² counts as zero, above 2⁶⁴ as 2⁶⁴


def noisy_quantiles(
    codes: Integers,
    probabilities: Sequence[float],
    *,
    size: int,
    epsilon: float,
    ledger: Ledger,
    purpose: str,
    contribution: int = 1,
) -> list[int]:
    """Return quantiles of integers in [0, size), by the exponential mechanism over the gaps between them (Smith 2011).

    The budget is split evenly among the quantiles; the answers are sorted.

    >>> ledger = Ledger(epsilon=9, delta=1e-6)
    >>> 45 <= noisy_quantiles(np.arange(100), [0.5], size=100, epsilon=8, ledger=ledger, purpose="median")[0] <= 55
    True
    """
    if not all(0 <= p <= 1 for p in probabilities):  # beyond, one record would move a score by more than one
        raise ValueError(f"quantiles are asked for by probabilities between 0 and 1, not {list(probabilities)}")
    share = epsilon / len(probabilities)
    ledger.spend(Charge(event=Pure(epsilon=share), count=len(probabilities), purpose=purpose))
    ordered = np.sort(np.clip(codes, 0, size - 1))
    draws = [QuantileDraw(ordered, p, size, share / (2 * contribution)) for p in probabilities]
    return sorted(_draw_quantile(draw, ledger.noise) for draw in draws)


def _draw_quantile(draw: QuantileDraw, noise: NoiseSource) -> int:
    return noise.release(draw, lambda: _sample_quantile(draw, noise))


def _sample_quantile(draw: QuantileDraw, noise: NoiseSource) -> int:
    edges = np.concatenate([[0], draw.ordered + 1, [draw.size]])  # gap i: the codes with exactly i values below them
    widths = np.diff(edges)
    n = len(draw.ordered)
    scores = -np.abs(np.arange(n + 1) - draw.p * n)  # one record moves a score by at most max(p, 1 − p) ≤ 1
    with np.errstate(divide="ignore"):  # an empty gap is never chosen
        gap = sample_logits(draw.weight * scores + np.log(widths.astype(np.float64)), noise)
    return int(edges[gap] + math.floor(noise.uniform(1)[0] * widths[gap]))


def noisy_extent(
    cells: Integers, *, size: int, epsilon: float, ledger: Ledger, purpose: str, contribution: int = 1
) -> tuple[int, int] | None:
    """Return the first and the last of `size` cells that are not empty; None if no cell has enough records.

    Geometric noise is added to the count of each cell, and a cell counts if it stands out of the noise, as some empty
    cell does in one measurement of a thousand.

    >>> ledger = Ledger(epsilon=9, delta=1e-6)
    >>> noisy_extent(np.repeat([3, 5], 1000), size=10, epsilon=8, ledger=ledger, purpose="years")
    (3, 5)
    """
    rate = epsilon / contribution
    event: Event = DiscreteLaplace(rate=rate) if contribution == 1 else Pure(epsilon=epsilon)
    ledger.spend(Charge(event=event, purpose=purpose))
    draw = DiscreteLaplaceDraw(np.bincount(cells, minlength=size), rate)
    noisy = ledger.noise.release(draw, lambda: draw.exact + ledger.noise.discrete_laplace(epsilon=rate, size=size))
    present = np.flatnonzero(noisy > math.log(1000 * size) / rate)
    return (int(present[0]), int(present[-1])) if len(present) else None


def noisy_bounds(
    values: Floats, *, epsilon: float, ledger: Ledger, purpose: str, contribution: int = 1
) -> tuple[float, float] | None:
    """Return a range that holds nearly all values, if none was declared; None if there are too few values.

    It spans the outermost magnitudes (by sign and power of two) that enough values have.

    >>> ledger = Ledger(epsilon=9, delta=1e-6)
    >>> noisy_bounds(np.linspace(17, 90, 10_000), epsilon=8, ledger=ledger, purpose="age")
    (16.0, 128.0)
    """
    edges = _list_magnitudes()
    size = len(edges) - 1
    cells = np.clip(np.searchsorted(edges, values[~np.isnan(values)], side="right") - 1, 0, size - 1)
    found = noisy_extent(cells, size=size, epsilon=epsilon, ledger=ledger, purpose=purpose, contribution=contribution)
    return None if found is None else (float(edges[found[0]]), float(edges[found[1] + 1]))


def _list_magnitudes() -> Floats:
    powers = np.exp2(_EXPONENTS.astype(np.float64))
    return np.concatenate([-powers[::-1], [0.0], powers])
