"""Synthetic records beside real ones, encoded with one schema: the input of every part of an evaluation."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sundog.data.records import Records
from sundog.progress import Progress, silent


@dataclass(frozen=True)
class Comparison:
    """The records of one evaluation.

    Args:
        real: all real records except the held-out ones; fidelity is measured against these.
        synthetic: the records to evaluate.
        train: real records to train reference models on.
        test: other real records, to test on.
        target: the column to predict.
        seed: fixes every random draw of the evaluation.
        progress: is called with the current stage and the share done.
    """

    real: Records
    synthetic: Records
    train: Records
    test: Records
    target: str | None = None
    seed: int = 0
    progress: Progress = field(default=silent, compare=False)

    def make_rng(self, purpose: str) -> np.random.Generator:
        """Return the generator of one purpose."""
        return make_rng(self.seed, purpose)

    def draw_seed(self, purpose: str) -> int:
        """Return a seed for one purpose, for a library that has its own generator."""
        return draw_seed(self.make_rng(purpose))

    def build_ceiling(self) -> Comparison:
        """Return the same comparison with real records in place of synthetic ones, against other real records."""
        return replace(self, real=self.test, synthetic=self.train)

    def build_floor(self) -> Comparison:
        """Return the same comparison with independently shuffled real columns in place of synthetic records."""
        return replace(self, synthetic=shuffle_columns(self.train, self.make_rng("floor")))


def make_rng(seed: int, purpose: str) -> np.random.Generator:
    """Return a generator for one purpose, which depends on the seed and the purpose only."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, np.uint32))


def draw_seed(rng: np.random.Generator) -> int:
    """Draw a seed for a library that has its own generator."""
    return int(rng.integers(2**31))


def shuffle_columns(records: Records, rng: np.random.Generator) -> Records:
    """Return the records with the values of each column, and of each position of an array, shuffled independently.

    All one-way marginals are kept; all dependence between columns is lost.
    """
    return Records(records.schema, {name: _shuffle(codes, rng) for name, codes in records.codes.items()}, len(records))


def _shuffle(codes: Any, rng: np.random.Generator) -> Any:
    if sparse.issparse(codes):
        by_item = codes.tocsc()
        rows = [rng.choice(codes.shape[0], size, replace=False) for size in np.diff(by_item.indptr)]
        places = np.concatenate([np.empty(0, np.int64), *rows])
        dealt = sparse.csc_array((by_item.data, places, by_item.indptr), shape=codes.shape)
        dealt.sort_indices()
        return dealt.tocsr()
    return rng.permuted(codes, axis=0)


def split(
    records: Records, share: float, rng: np.random.Generator, owners: NDArray[np.int64] | None = None
) -> tuple[Records, Records]:
    """Split records at random into two parts.

    Args:
        records: the records to split.
        share: the share of records in the second part.
        rng: draws the parts.
        owners: the owner of each record; records of one owner stay together.
    """
    owners = np.arange(len(records)) if owners is None else owners
    shuffled = rng.permutation(np.unique(owners))
    second = np.isin(owners, shuffled[: round(share * len(shuffled))])
    return records.take(~second), records.take(second)


def subsample(records: Records, most: int, rng: np.random.Generator) -> Records:
    """Return all records, or a random subset of `most`."""
    return records if len(records) <= most else records.take(choose_rows(len(records), most, rng))


def choose_rows(count: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return all row numbers, or a random subset of `most` in ascending order."""
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))
