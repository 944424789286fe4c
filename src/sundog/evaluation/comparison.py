"""Synthetic records beside real ones, all of them in codes of one schema: what every part of an evaluation looks at."""

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
        real: all real records there are, but for those that were held out: what fidelity is measured against.
        synthetic: the records on trial.
        train: the real records that a model may learn from, to see how good it could be.
        test: other real records, to test on.
        target: the column that people want to predict.
        seed: fixes every draw of the evaluation.
        progress: is told what happens.
    """

    real: Records
    synthetic: Records
    train: Records
    test: Records
    target: str | None = None
    seed: int = 0
    progress: Progress = field(default=silent, compare=False)

    def rng(self, purpose: str) -> np.random.Generator:
        """Random numbers for one purpose, the same in every run and whatever else is drawn."""
        digest = hashlib.sha256(f"{self.seed}/{purpose}".encode()).digest()
        return np.random.default_rng(np.frombuffer(digest, np.uint32))

    def ceiling(self) -> Comparison:
        """The same with real records in place of synthetic ones, against other real records: as good as it gets."""
        return replace(self, real=self.test, synthetic=self.train)

    def floor(self) -> Comparison:
        """The same with columns that know nothing of each other: what no release should be worse than."""
        return replace(self, synthetic=shuffle_columns(self.train, self.rng("floor")))


def shuffle_columns(records: Records, rng: np.random.Generator) -> Records:
    """The records with every value dealt to another record, each column and each place in it by itself.

    All one-way marginals stay, and everything between them goes.
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
    """The records in two parts at random; the second has this share of them.

    Args:
        records: what to split.
        share: of the second part.
        rng: who goes where.
        owners: whose record each one is; all of an owner's stay together.
    """
    owners = np.arange(len(records)) if owners is None else owners
    everybody = rng.permutation(np.unique(owners))
    second = np.isin(owners, everybody[: round(share * len(everybody))])
    return records.take(~second), records.take(second)


def subsample(records: Records, most: int, rng: np.random.Generator) -> Records:
    """All records, or so many of them at random."""
    if len(records) <= most:
        return records
    return records.take(np.sort(rng.choice(len(records), most, replace=False)))
