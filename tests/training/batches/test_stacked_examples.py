"""Examples of a stack: each where its model looks for it, and nothing in the places that are left free."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.in_memory import InMemory

from sundog.training.batches.stacked_examples import StackedExamples, choose_piece_size, rank_by_owner

Integers = npt.NDArray[np.int64]


def rows_of(padded: Any, model: int) -> list[float]:
    values: list[float] = padded.examples[model][padded.present[model]].tolist()
    return values


@settings(max_examples=60)
@given(st.integers(1, 6), st.lists(st.integers(0, 5), max_size=30), st.data())
def test_each_model_gets_its_own_examples_in_their_order(models: int, owners: list[int], data: st.DataObject) -> None:
    owner = np.array([number % models for number in owners], np.int64)
    index = np.array(sorted(data.draw(st.sets(st.integers(0, len(owner) - 1)))) if owners else [], np.int64)
    values = torch.arange(1.0, len(owner) + 1)
    batch = StackedExamples(InMemory(values), owner, models).take(index)
    for model in range(models):
        expected = [float(values[place]) for place in index if owner[place] == model]
        assert rows_of(batch, model) == expected
    assert batch.examples.shape == batch.present.shape
    assert not batch.examples[~batch.present].any()
    fullest = max(1, int(np.bincount(owner[index], minlength=models).max(initial=0)))
    assert batch.present.shape == (models, fullest)


def test_dicts_keep_their_dtypes_and_shapes() -> None:
    rows = {"places": torch.arange(12, dtype=torch.int32).view(4, 3), "levels": torch.rand(4, 2, 2)}
    examples = StackedExamples(InMemory(rows), np.array([2, 0, 2, 2]), 3)
    batch = examples.take(np.array([1, 2, 3]))
    assert len(examples) == 4
    assert batch.examples["places"].dtype == torch.int32
    assert batch.examples["levels"].shape == (3, 2, 2, 2)
    assert torch.equal(batch.examples["places"][2], rows["places"][2:])
    assert torch.equal(batch.examples["levels"][0, 0], rows["levels"][1])
    assert batch.present.tolist() == [[True, False], [False, False], [True, True]]


def test_an_empty_batch_has_a_place_for_each_model_and_nobody_in_it() -> None:
    batch = StackedExamples(InMemory(torch.ones(5, 3)), np.zeros(5, np.int64), 2).take(np.zeros(0, np.int64))
    assert batch.examples.shape == (2, 1, 3)
    assert not batch.present.any()


def test_no_examples_at_all() -> None:
    examples = StackedExamples(InMemory(torch.ones(0, 3)), np.zeros(0, np.int64), 4)
    assert len(examples) == 0
    assert not examples.take(np.zeros(0, np.int64)).present.any()


@pytest.mark.parametrize("models", [1, 2, 10, 100, 500])
def test_a_piece_that_is_all_one_models_leaves_few_places_free(models: int) -> None:
    for sizes in ([1e3] * models, [1e6] + [1e-3] * (models - 1), [0.0] * models):  # the first may be far off
        count = choose_piece_size(sizes)
        examples = StackedExamples(InMemory(torch.ones(count)), np.full(count, models - 1), models)
        assert 64 <= count <= 4096
        assert examples.take(np.arange(count)).present.numel() <= 2**16


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_models_that_are_as_full_as_they_are_said_to_be_leave_fewer_places_free(share: float) -> None:
    chances = np.array([share] + [(1 - share) / 49] * 49)
    count = choose_piece_size((1e5 * chances).tolist())
    owner = np.random.default_rng(0).choice(50, count, p=chances)
    examples = StackedExamples(InMemory(torch.ones(count)), owner, 50)
    assert count * 50 * share > 1000  # and pieces are not needlessly small
    assert examples.take(np.arange(count)).present.numel() <= 1.3 * 2**13


@pytest.mark.parametrize("models", [1, 3, 50])
def test_ranks_count_those_before(models: int) -> None:
    owners: Integers = np.random.default_rng(models).integers(0, models, 200)
    slow = [int((owners[:place] == owner).sum()) for place, owner in enumerate(owners)]
    assert rank_by_owner(owners, models).tolist() == slow
    assert rank_by_owner(owners[:0], models).tolist() == []
