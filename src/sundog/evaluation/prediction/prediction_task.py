"""A prediction task: one column to predict from all other scalar columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sundog.data.columns import Column
from sundog.data.records import Records
from sundog.data.validation_errors import suggest
from sundog.errors import DataError
from sundog.evaluation.comparison import Comparison, subsample
from sundog.evaluation.prediction.design_matrix import (
    Floats,
    Integers,
    encode_one_hot,
    encode_ordinal,
    is_null,
    scale_to_range,
)
from sundog.evaluation.prediction.learners import zero_empty_columns

FEWEST = 20  # records to train on, and to test on
MOST = 50_000  # records to train on
FEW_VALUES = 20  # a number with at most this many values is predicted as a class
MOST_CLASSES = 50


@dataclass(frozen=True)
class PredictionTask:
    """Predict `target` from `features`: train on the synthetic `train`, test on the real `test`."""

    target: str
    features: list[str]
    train: Records
    test: Records
    classes: Integers  # the codes of the target that occur; none where it is a quantity
    notes: tuple[str, ...]

    @property
    def is_quantity(self) -> bool:
        """Whether a number is predicted instead of a class."""
        return not len(self.classes)

    @cached_property
    def learned(self) -> Any:
        """The target of the training records: positions in `classes`, or quantities from 0 to 1."""
        return self._encode_target(self.train)

    @cached_property
    def truth(self) -> Any:
        """The target of the test records."""
        return self._encode_target(self.test)

    @cached_property
    def for_trees(self) -> tuple[Floats, Floats]:
        """Training and test features for trees, one column per feature."""
        return zero_empty_columns(encode_ordinal(self.train, self.features), encode_ordinal(self.test, self.features))

    @cached_property
    def for_lines(self) -> tuple[Any, Any]:
        """Training and test features for linear models, sparse, one column per number and category."""
        return encode_one_hot(self.train, self.features), encode_one_hot(self.test, self.features)

    def _encode_target(self, records: Records) -> Any:
        codes = records.codes[self.target]
        if self.is_quantity:
            return scale_to_range(records.schema.columns[self.target], codes)
        return np.searchsorted(self.classes, codes)


def define_task(comparison: Comparison) -> PredictionTask:
    """Return the task of predicting the target; raise a DataError where it cannot be predicted.

    A missing value of the target is a class like any other; records without a value of a quantity are left out.
    """
    target, features = _choose_columns(comparison)
    quantity = is_quantity(comparison.real.schema.columns[target])
    synthetic = _select_usable(comparison.synthetic, "synthetic", target, quantity)
    real = _check_varied(_select_usable(comparison.train, "real", target, quantity), "real", target)
    held_out = _check_varied(_select_usable(comparison.test, "held-out", target, quantity), "held-out", target)
    train = subsample(synthetic, MOST, comparison.make_rng("records to learn from"))
    notes = []
    left_out = len(comparison.synthetic) - len(synthetic) + len(comparison.test) - len(held_out)
    if left_out:
        notes.append(f"{left_out:,} records without a value of {target} were left out.")
    if len(train) < len(synthetic):
        notes.append(f"Models were trained on {len(train):,} of {len(synthetic):,} records, chosen at random.")
    classes = np.empty(0, np.int64) if quantity else _list_classes([synthetic, real, held_out], target)
    return PredictionTask(target, features, train, held_out, classes, tuple(notes))


def _choose_columns(comparison: Comparison) -> tuple[str, list[str]]:
    """Return the target and the columns to predict it from."""
    target, columns = comparison.target, comparison.real.schema.columns
    scalars = list(comparison.real.schema.scalars)
    if target is None:
        raise DataError("no target is given; name the column to predict")
    if target not in columns:
        raise DataError(f"target: there is no column {target!r}; {suggest(target, scalars)}")
    if target not in scalars:
        raise DataError(
            f"column {target!r} of type {columns[target].type} cannot be a target; name a column of single values"
        )
    if len(scalars) == 1:
        raise DataError(f"column {target!r} is the only one with one value per record; leave out the target")
    return target, [name for name in scalars if name != target]


def is_quantity(column: Column) -> bool:
    """Return whether a target is predicted as a number instead of a class."""
    return column.is_numeric and column.lattice_size > FEW_VALUES


def _select_usable(records: Records, kind: str, target: str, quantity: bool) -> Records:
    if quantity:
        records = records.take(~is_null(records.schema.columns[target], records.codes[target]))
    if len(records) < FEWEST:
        having = f" with a value of column {target!r}" if quantity else ""
        raise DataError(f"{len(records)} {kind} records{having} are too few to predict from; give at least {FEWEST}")
    return records


def _check_varied(records: Records, kind: str, target: str) -> Records:
    if (records.codes[target] == records.codes[target][0]).all():
        raise DataError(f"column {target!r} has the same value in all {kind} records; name another target")
    return records


def _list_classes(kinds: Sequence[Records], target: str) -> Integers:
    classes = np.unique(np.concatenate([records.codes[target] for records in kinds])).astype(np.int64)
    if len(classes) > MOST_CLASSES:
        raise DataError(f"column {target!r} has {len(classes)} classes; name a target with at most {MOST_CLASSES}")
    return classes
