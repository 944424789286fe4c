"""Sampling from a decoder, which turns latent variables z into the logits of all features.

Without conditions, z is drawn from N(0, I) and a record from its logits. Under conditions many z are drawn, and those
that explain them are kept. A decoder may be conditioned on one column, which has a distribution of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sundog.data.code_set import CodeSet
from sundog.data.records import Records
from sundog.models.neural.features import Features, join_codes
from sundog.models.neural.network_training import LARGEST_LOGIT
from sundog.models.protocol import Codes, Where
from sundog.training.speed.threads import use_one_thread

Inputs = npt.NDArray[np.float32]
_CANDIDATES, _FEWEST_CANDIDATES = 16, 4096  # for each conditioned record, and for all of them
_FEW, _MANY = 256, 4096  # for an average
_DRAWS, _COMPARED = 4096, 1024  # from the prior, for a density; and records at a time


@dataclass(frozen=True)
class DecoderSampler:
    """Draws records from a decoder.

    Args:
        features: of the records.
        decoder: latent variables and the condition, side by side, to logits.
        latent: the number of latent variables.
        rows: the number of records in a chunk.
        condition: the column on which the decoder is conditioned; None for none.
        prior: the logits of that column's values.
    """

    features: Features
    decoder: Callable[[Tensor], Tensor]
    latent: int
    rows: int
    condition: str | None = None
    prior: Tensor = field(default_factory=lambda: torch.zeros(0))
    # The log evidence of the conditions asked for so far.
    _evidence: dict[frozenset[tuple[str, CodeSet | int]], float] = field(default_factory=dict)

    @property
    def condition_at(self) -> slice:
        """Where the features of the condition are."""
        return self.features.at(self.condition)

    @use_one_thread()
    def sample(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        """Draw z from the prior, or from the posterior under conditions, and a record from each."""
        parts = range(0, max(1, n), self.rows)
        return join_codes([self._draw(min(self.rows, n - start), rng, where) for start in parts])

    @use_one_thread()
    def log_evidence(self, where: Where) -> float:
        """Return the logarithm of the probability of the conditions."""
        key = frozenset(where.items())
        if key not in self._evidence:
            fit = self._score_candidates(_FEWEST_CANDIDATES, 0, where)
            self._evidence[key] = float(fit.logsumexp(dim=0)) - math.log(_FEWEST_CANDIDATES)
        return self._evidence[key]

    @use_one_thread()
    @torch.no_grad()
    def log_density(self, records: Records) -> npt.NDArray[np.float64]:
        """Return an estimate of the log-density of each record: its mean likelihood over draws from the prior."""
        logits = self.logits(self.draw_inputs(_DRAWS, np.random.default_rng(0), {}))
        examples = self.features.to_examples(records)
        found = [np.zeros(0)]
        for start in range(0, len(records), _COMPARED):
            x = examples.take_vectors(np.arange(start, min(start + _COMPARED, len(records))))
            fit = self.features.compare_all(logits, x)
            found.append((fit.logsumexp(dim=1) - math.log(_DRAWS)).double().numpy())
        return np.concatenate(found)

    def draw_inputs(self, n: int, rng: np.random.Generator, where: Where) -> Inputs:
        """Draw latent variables from the prior, and a condition for each."""
        z = rng.standard_normal((n, self.latent), np.float32)
        if self.condition is None:
            return z
        cells = rng.choice(len(self.prior), n, p=self._compute_condition_logits(where).softmax(dim=0).numpy())
        given = np.zeros((n, len(self.prior)), np.float32)
        given[np.arange(n), cells] = 1.0
        return np.concatenate([z, given], axis=1)

    def _compute_condition_logits(self, where: Where) -> Tensor:
        """Return the log-probabilities of the values of the condition, restricted to those that `where` allows."""
        chances = self.prior.double().log_softmax(dim=0)
        if self.condition is None or self.condition not in where:
            return chances
        return chances + self.features.log_shares(self.condition, where)

    @torch.no_grad()
    def logits(self, inputs: Inputs) -> Tensor:
        """Return the logits of every feature, with the condition fixed."""
        given = torch.from_numpy(inputs)
        logits = self.decoder(given).nan_to_num(0.0).clamp(-LARGEST_LOGIT, LARGEST_LOGIT)
        return replace_features(logits, (given[:, self.latent :] - 1) * LARGEST_LOGIT, self.condition_at)

    def draw_logits(self, rng: np.random.Generator, where: Where) -> Tensor:
        """Return the logits of a few thousand draws from the prior."""
        return self.logits(self.draw_inputs(min(_MANY, max(_FEW, self.rows)), rng, where))

    def _draw(self, n: int, rng: np.random.Generator, where: Where) -> Codes:
        inputs = self._resample(n, rng, where) if where and n else self.draw_inputs(n, rng, {})
        return self.features.sample(self.logits(inputs), rng, where)

    def _resample(self, n: int, rng: np.random.Generator, where: Where) -> Inputs:
        """Resample z from many candidates, in proportion to the likelihood of the conditions."""
        if where.keys() == {self.condition}:  # which is given to the decoder
            return self.draw_inputs(n, rng, where)
        count, seed = max(_FEWEST_CANDIDATES, _CANDIDATES * n), int(rng.integers(2**62))
        weights = self._score_candidates(count, seed, where).softmax(dim=0).numpy()
        chosen = rng.choice(count, n, p=weights / weights.sum())
        found = np.empty((n, self.latent + len(self.prior)), np.float32)
        for start, inputs in self._draw_candidates(count, seed, where):
            here = (start <= chosen) & (chosen < start + len(inputs))
            found[here] = inputs[chosen[here] - start]
        return found

    def _score_candidates(self, count: int, seed: int, where: Where) -> Tensor:
        """Return the log-likelihood of the conditions for each candidate."""
        rest = {name: codes for name, codes in where.items() if name != self.condition}
        fit = torch.cat(
            [
                self.features.log_likelihood(self.logits(inputs), rest)
                for _, inputs in self._draw_candidates(count, seed, where)
            ]
        ).double()
        if len(rest) < len(where):
            fit += float(self._compute_condition_logits(where).logsumexp(dim=0))
        return fit

    def _draw_candidates(self, count: int, seed: int, where: Where) -> Iterator[tuple[int, Inputs]]:
        """Yield chunks of candidates, the same for the same seed, each with the number of its first."""
        rng = np.random.default_rng(seed)
        for start in range(0, count, self.rows):
            yield start, self.draw_inputs(min(self.rows, count - start), rng, where)


def replace_features(logits: Tensor, values: Tensor, at: slice) -> Tensor:
    """Return the logits with other values at some features."""
    return torch.cat([logits[..., : at.start], values, logits[..., at.stop :]], dim=-1)
