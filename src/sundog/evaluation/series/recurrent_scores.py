"""Discriminative and predictive scores of time series by recurrent networks, as in TimeGAN (Yoon et al. 2019).

Discriminative score: a network learns to distinguish real from synthetic series, on one half of each; the score is
|accuracy − ½| on the other half. Predictive score: a network learns on synthetic series to forecast the next value from
all previous ones; the score is its mean absolute error on real ones. Both use a GRU of 24 units. Training takes fewer
steps than TimeGAN's, on larger batches, so scores are comparable with those of real series measured here, not with
published ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from sundog.evaluation.bootstrap import Floats, bootstrap_mean
from sundog.evaluation.measure import Measure, measure_share
from sundog.evaluation.series.series_statistics import draw_series
from sundog.training.speed.threads import use_one_thread

MOST_SERIES = 4000  # real or synthetic
MOST_VALUES = 2**19  # real or synthetic
STEPS, BATCH, HIDDEN, LEARNING_RATE = 150, 256, 24, 0.03
LONGEST = 128  # positions that a network reads in training


def measure_discriminative_score(real: Floats, synthetic: Floats, rng: np.random.Generator) -> Measure:
    """Return |accuracy − ½| of a network that distinguishes real from synthetic series: from 0 to ½.

    Args:
        real: series that the synthetic ones were not fitted on, (count, length), without gaps.
        synthetic: synthetic series; equally many of both are used.
        rng: chooses the series and initialises the network.
    """
    count = min(_limit_count(real), _limit_count(synthetic))
    if count < 2:  # nothing is left to test on
        return Measure(math.nan, 0.0, 0.5)
    both = np.concatenate([draw_series(values, count, rng) for values in (real, synthetic)])
    values, truth = _group_places(_build_features(both, like=both)), torch.arange(2 * count).ge(count).float()
    learned = torch.arange(2 * count) % count < count // 2
    inputs, labels = values[learned], truth[learned]

    def compute_loss(network: nn.Module, rows: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy_with_logits(network(inputs[rows]).mean(1), labels[rows])

    with _isolate_randomness(rng):
        network = _train(compute_loss, rows=len(inputs), width=values.shape[2])
        with torch.no_grad():
            right = network(values[~learned]).mean(1).gt(0) == truth[~learned].bool()
    return _measure_from_half(measure_share(float(right.sum()), len(right)))


def measure_predictive_score(synthetic: Floats, real: Floats, rng: np.random.Generator) -> Measure:
    """Return the mean absolute error of one-step forecasts of real series by a network trained on synthetic ones.

    Args:
        synthetic: the training series, (count, length), at least two positions, without gaps.
        real: the test series.
        rng: chooses the series and initialises the network.
    """
    synthetic, real = (draw_series(values, _limit_count(values), rng) for values in (synthetic, real))
    seen, unseen = _build_features(synthetic, like=real), _build_features(real, like=real)
    length = seen.shape[1]
    places = min(LONGEST, length)

    def compute_loss(network: nn.Module, rows: Tensor) -> Tensor:
        start = int(torch.randint(length - places + 1, ()))
        return _compute_errors(network, seen[rows, start : start + places]).mean()

    with _isolate_randomness(rng):
        network = _train(compute_loss, rows=len(seen), width=2)
        with torch.no_grad():
            errors = _compute_errors(network, unseen).mean(1).double().numpy() * _compute_scale(real)
    return bootstrap_mean(errors, rng, lowest=0.0)


def compute_persistence_error(real: Floats) -> float:
    """Return the mean absolute error of the forecast that nothing changes.

    >>> compute_persistence_error(np.array([[0.0, 1.0, 3.0]]))
    1.5
    """
    return float(np.abs(np.diff(real, axis=1)).mean())


def _measure_from_half(accuracy: Measure) -> Measure:
    """Return the distance of an accuracy from one half; the lower end is 0 where the interval contains one half."""
    value, *ends = (abs(end - 0.5) for end in (accuracy.value, accuracy.low, accuracy.high))
    return Measure(value, 0.0 if accuracy.low <= 0.5 <= accuracy.high else min(ends), max(ends))


class RecurrentNetwork(nn.Module):
    """Reads series in order and outputs one number at each position."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.memory = nn.GRU(width, HIDDEN, batch_first=True)
        self.answer = nn.Linear(HIDDEN, 1)

    def forward(self, values: Tensor) -> Tensor:
        """Map (series, positions, width) to (series, positions)."""
        said: Tensor = self.answer(self.memory(values)[0]).squeeze(2)
        return said


def _compute_errors(network: nn.Module, features: Tensor) -> Tensor:
    """Return the error of each one-step forecast: the previous value plus the output of the network."""
    values = features[:, :, 0]
    misses: Tensor = (values[:, :-1] + network(features[:, :-1]) - values[:, 1:]).abs()
    return misses


def _train(compute_loss: Callable[[nn.Module, Tensor], Tensor], *, rows: int, width: int) -> nn.Module:
    network = RecurrentNetwork(width)
    optimiser = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    for _ in range(STEPS):
        optimiser.zero_grad()
        compute_loss(network, torch.randint(rows, (min(BATCH, rows),))).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
    return network


@contextmanager
def _isolate_randomness(rng: np.random.Generator) -> Iterator[None]:
    """Seed torch from `rng` and restore its state afterwards; use one thread for the small network."""
    with torch.random.fork_rng(devices=[]), use_one_thread():
        torch.manual_seed(int(rng.integers(2**63)))
        yield


def _limit_count(values: Floats) -> int:
    return min(len(values), MOST_SERIES, max(2, MOST_VALUES // int(values.shape[1])))


def _compute_scale(values: Floats) -> float:
    return float(values.std()) or 1.0


def _build_features(values: Floats, *, like: Floats) -> Tensor:
    """Return the inputs of a network at each position: the value and its change, scaled as `like`."""
    changes = np.diff(values, axis=1, prepend=values[:, :1])
    scaled = [(values - like.mean()) / _compute_scale(like), changes / _compute_scale(np.diff(like, axis=1))]
    return torch.from_numpy(np.stack(scaled, axis=2)).float()


def _group_places(features: Tensor) -> Tensor:
    """Group positions of long series: (series, at most LONGEST, width)."""
    count, length, width = features.shape
    together = -(-length // LONGEST)
    padded = nn.functional.pad(features, (0, 0, 0, -length % together))
    return padded.reshape(count, -1, together * width)
