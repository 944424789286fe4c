"""Random Fourier features (Rahimi and Recht 2007): vectors whose products are about the values of a kernel.

z(x) has a pair (cos⟨w, x⟩, sin⟨w, x⟩) for each of d/2 frequencies w, drawn from the spectral density of the kernel, and
is divided by √(d/2). So its norm is one for every x; with cosines of random phases, as in the papers, it may be √2.
Frequencies are orthogonal (Yu et al. 2016), so that fewer of them are needed.

The features of a record must not depend, not even in the last bit, on the records beside it: summed over thousands of
records, the differences would exceed what one record may change. But matrix products round differently by their blocks.
So frequencies are whole parts of a turn and intensities whole parts of one; sums of them are exact in any order, and
cosines are looked up in a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.models.neural.features import Compact, Features
from sundog.privacy.draws import PairingDraw
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import noisy_quantiles
from sundog.training.batches.examples import Device

Kernel = Literal["gaussian", "exponential"]
Floats = npt.NDArray[np.float64]

UNIT = 2**15  # of a cosine
_TURN = 2**16  # parts of a turn
_LEVELS = 2**8  # parts of an intensity
_LARGEST = 2.0**23  # of a frequency, in parts of a turn: a float32 holds it exactly
_EXACT = 2.0**24  # whole numbers that float32 adds without rounding
_NUMBERS = 2**20  # of features or intensities at a time
_PAIRS = 2**15  # of records whose distances are looked at
_DISTANCES = 2**16  # values of a distance


class FourierFeatures:
    """The map z, from records to vectors of length one at most.

    >>> z = FourierFeatures.draw(width=3, dimension=4000, distance=2.0, kernel="gaussian", rng=np.random.default_rng(0))
    >>> x, y = z(np.eye(3)[:2])
    >>> round(float(x @ x), 2), round(float(x @ y), 1)  # κ(x, y) = exp(−|x − y|² / 2) = 0.37
    (1.0, 0.4)

    Args:
        weight: the frequencies, of shape (width of a record, d/2), in whole parts of a turn.
        device: where vectors are computed; they are the same everywhere.
    """

    def __init__(self, weight: npt.NDArray[Any], device: Device = None) -> None:
        self.weight = np.rint(np.clip(np.asarray(weight, np.float64), -_LARGEST, _LARGEST))
        self.dimension = 2 * self.weight.shape[1]
        self.scale = 1 / (UNIT * math.sqrt(max(1, self.weight.shape[1])))  # of what `transform` returns
        self.device = torch.device("cpu" if device is None else device)
        self._weight = torch.from_numpy(self.weight).to(self.device)
        light = self.device.type == "cpu" and np.abs(self.weight).sum(axis=0).max(initial=0.0) < _EXACT
        self._light = self.weight.astype(np.float32) if light else None  # for records of zeros and ones
        turns = np.arange(_TURN) * (2 * math.pi / _TURN)
        # Towards zero: no pair may be longer than one.
        table = np.stack([np.trunc(UNIT * np.cos(turns)), np.trunc(UNIT * np.sin(turns))])
        self._table = torch.from_numpy(table).to(self.device)

    @classmethod
    def draw(
        cls,
        *,
        width: int,
        dimension: int,
        distance: float,
        kernel: Kernel,
        rng: np.random.Generator,
        weights: Floats | None = None,
        device: Device = None,
    ) -> FourierFeatures:
        """Draw frequencies for a kernel that is 1/e at a squared distance of `distance`.

        The Gaussian one is exp(−γ|x − y|²) with γ = 1/distance: w is normal of variance 2γ. The exponential one is
        exp(−γ|x − y|), not squared, with γ = 1/√distance: its spectral density is a multivariate Cauchy
        distribution, a normal vector times γ and divided by the size of one more normal number.
        """
        pairs = max(1, dimension // 2)
        blocks = [_draw_orthogonal(width, min(width, pairs - start), rng) for start in range(0, pairs, width)]
        w = np.concatenate(blocks, axis=1)
        if kernel == "gaussian":
            w *= math.sqrt(2 / distance)
        else:
            w /= math.sqrt(distance) * np.abs(rng.standard_normal(pairs)).clip(1e-12)
        if weights is not None:  # of each feature in a squared distance
            w *= np.sqrt(weights)[:, None]
        return cls(w * (_TURN / (2 * math.pi)), device)

    def __call__(self, rows: npt.NDArray[Any]) -> Floats:
        """Return the vectors of rows of features."""
        levels = torch.from_numpy(np.asarray(rows)).to(self.device)
        return _look_up(self._table, self._sum_levels(levels, 0)) * self.scale

    def transform(self, batch: Compact, features: Features) -> Floats:
        """Return the vectors of records as whole numbers, 1/`scale` times as long; no row of features is unfolded."""
        count = len(next(iter(batch.values())))
        phases = torch.zeros(count, self._weight.shape[1], dtype=torch.float64, device=self.device)
        start = len(self._weight)
        if "levels" in batch:
            tail = features.to_dense({"levels": batch["levels"]})
            start -= tail.shape[1]
            phases += self._sum_levels(tail, start)
        if "places" in batch:
            phases += self._sum_places(batch["places"], start)
        return _look_up(self._table, phases)

    def stream(self, features: Features, records: Records) -> Iterator[Floats]:
        """Yield the transformed records in chunks."""
        examples = features.to_examples(records, self.device)
        size = max(1, _NUMBERS // max(self.dimension, features.width))
        for start in range(0, len(records), size):
            yield self.transform(examples.take(np.arange(start, min(start + size, len(records)))), features)

    def _sum_levels(self, levels: Tensor, start: int) -> Tensor:
        if self._light is not None and bool(((levels == 0) | (levels == 1)).all()):
            phases = levels.float().numpy() @ self._light[start:]  # exact too, and in half the time
            return torch.from_numpy(phases).double()
        parts = (levels.double() * _LEVELS).round()
        return (parts @ self._weight[start:]).div(_LEVELS, rounding_mode="floor")

    def _sum_places(self, places: Tensor, end: int) -> Tensor:
        """Return the sums of the frequencies at these places; places from `end` on are unused."""
        held = places < end
        lengths = held.sum(dim=1)
        offsets = lengths.cumsum(0) - lengths
        return functional.embedding_bag(places[held].long(), self._weight, offsets, mode="sum")


def compute_median_distance(features: Features, records: Records, rng: np.random.Generator) -> float:
    """Return the median squared distance of public records: 1/γ of the Gaussian kernel.

    >>> schema = Schema.from_dict({"columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}})
    >>> records = Records(schema, {"sex": np.array([1, 0], np.uint8)}, 2)
    >>> compute_median_distance(Features(schema), records, np.random.default_rng(0))
    2.0
    """
    found = _compute_distances(features, records, rng.permutation(len(records)))
    return (
        max(float(np.median(found)), _find_resolution(features.schema))
        if len(found)
        else bound_distance(features.schema)
    )


def measure_median_distance(
    features: Features, records: Records, *, epsilon: float, ledger: Ledger, purpose: str
) -> float:
    """Return the noisy median squared distance of private records, over pairs that share no record.

    The pairing is secret. docs/mixture.md proves that one record moves the rank of a distance by one.

    >>> schema = Schema.from_dict({"columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}})
    >>> records = Records(schema, {"sex": np.array([1, 0] * 50, np.uint8)}, 100)
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
    >>> 0 < measure_median_distance(Features(schema), records, epsilon=0.5, ledger=ledger, purpose="width") <= 2
    True
    """
    finest = _find_resolution(features.schema)
    order = ledger.noise.hide(PairingDraw(len(records)), lambda: ledger.noise.permutation(len(records)))
    codes = np.floor(_compute_distances(features, records, order) / finest).astype(np.int64)
    (code,) = noisy_quantiles(codes, [0.5], size=_DISTANCES, epsilon=epsilon, ledger=ledger, purpose=purpose)
    return max(1, code) * finest


def balance_columns(features: Features) -> Floats:
    """Return the weight of each feature in a squared distance, so that columns count alike.

    An image has hundreds of pixels and its label one value; unweighted, clusters would be blind to the label. The
    largest distance of two values is made about the same in all columns: that of two categories. Weights are powers of
    two, which leave sums exact.
    """
    largest = {name: column.largest_distance for name, column in features.schema.columns.items()}
    return features.spread_by_column({name: _choose_weight(distance) for name, distance in largest.items()})


def bound_distance(schema: Schema) -> float:
    """Return the largest weighted squared distance of two records of a schema.

    >>> bound_distance(Schema.from_dict({"columns": {"basket": {"type": "set", "universe": 9, "max_size": 3}}}))
    3.0
    """
    largest = [column.largest_distance for column in schema.columns.values()]
    return sum(_choose_weight(distance) * distance for distance in largest)


def _choose_weight(largest: int) -> float:
    return 2.0 ** -math.floor(math.log2(max(2, largest) / 2))


def _find_resolution(schema: Schema) -> float:
    return bound_distance(schema) / (_DISTANCES - 1)


def _compute_distances(features: Features, records: Records, order: npt.NDArray[np.int64]) -> Floats:
    """Return the squared distances of consecutive pairs of records in a given order."""
    examples = features.to_examples(records)
    weights = torch.from_numpy(balance_columns(features))
    count = min(len(records) // 2, _PAIRS)
    size = max(1, _NUMBERS // features.width)
    found = []
    for start in range(0, count, size):
        end = min(start + size, count)
        pairs = features.to_dense(examples.take(order[2 * start : 2 * end])).double()
        parts = (pairs * _LEVELS).round()  # whole numbers, so that sums are exact
        found.append((((parts[0::2] - parts[1::2]) / _LEVELS).square() * weights).sum(dim=1).numpy())
    return np.concatenate(found) if found else np.zeros(0)


def _look_up(table: Tensor, phases: Tensor) -> Floats:
    place = phases.long() & (_TURN - 1)
    cosines: Floats = torch.cat([table[0][place], table[1][place]], dim=1).cpu().numpy()
    return cosines


def _draw_orthogonal(width: int, count: int, rng: np.random.Generator) -> Floats:
    """Return vectors with normal marginals, as columns, orthogonal to one another."""
    directions, triangle = np.linalg.qr(rng.standard_normal((width, count)))
    signs = np.where(np.diagonal(triangle) < 0, -1.0, 1.0)  # without them, directions would not be uniform
    return np.asarray(directions * (signs * np.sqrt(rng.chisquare(width, count))))
