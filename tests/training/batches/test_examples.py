"""Examples: the rows that were asked for; and a thread that stays ahead and stops cleanly."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch
from tests.training.in_memory import InMemory

from sundog.errors import DataError
from sundog.training.batches.examples import Examples, Positions, list_leaves, map_leaves
from sundog.training.batches.poisson import Index
from sundog.training.batches.prefetch import Prefetch

ROWS = 500
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 3, 2)).astype(np.float32)
Y = RNG.integers(0, 9, ROWS)
INDICES = [np.array([3, 77, 78, 499]), np.arange(ROWS), np.array([], dtype=np.int64), np.array([400, 2, 2, 130])]


KINDS: dict[str, Examples] = {
    "tensors": InMemory({"x": torch.from_numpy(X.copy()), "y": torch.from_numpy(Y.copy())}),
    "arrays": InMemory({"x": X, "y": Y}),
}


def test_every_kind_gives_the_same_rows() -> None:
    for kind, examples in KINDS.items():
        assert len(examples) == ROWS, kind
        for index in INDICES:
            batch = examples.take(index)
            assert list(batch) == ["x", "y"], kind
            assert batch["x"].dtype == torch.float32
            assert batch["y"].dtype == torch.int64
            assert batch["x"].shape == (len(index), 3, 2)
            np.testing.assert_array_equal(batch["x"].numpy(), X[index], kind)
            np.testing.assert_array_equal(batch["y"].numpy(), Y[index], kind)
            batch["x"].add_(1)  # a batch is the caller's own
        np.testing.assert_array_equal(examples.take(np.arange(ROWS))["x"].numpy(), X, kind)


def test_structures_stay_as_they_are() -> None:
    alone = InMemory(X).take(INDICES[0])
    assert isinstance(alone, torch.Tensor)
    pair = InMemory((X, (Y, Y))).take(INDICES[0])
    assert [type(part) for part in pair] == [torch.Tensor, tuple]
    assert len(list_leaves(pair)) == 3
    assert map_leaves(len, pair) == (4, (4, 4))


def test_read_only_arrays_are_no_problem() -> None:
    array = X.copy()
    array.flags.writeable = False
    np.testing.assert_array_equal(InMemory(array).take(INDICES[0]).numpy(), X[INDICES[0]])


def test_parts_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match=r"different lengths: \[10, 500\]"):
        InMemory((X, Y[:10]))


# --- the thread ---


def draw(step: int) -> Index:
    return np.arange(step, step + 5 * (step % 3))  # empty now and then


def test_prefetch_gives_the_pieces_of_each_step_in_order() -> None:
    with Prefetch(InMemory(Y), draw, range(3, 40), largest=4) as prefetch:
        for step in range(3, 40):
            pieces = list(prefetch.take_pieces())
            assert max(len(piece) for piece in pieces) <= 4
            assert len(pieces) == max(1, -(-len(draw(step)) // 4))
            np.testing.assert_array_equal(torch.cat(pieces).numpy(), Y[draw(step)])
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_prefetch_stays_ahead_but_not_far() -> None:
    taken = []

    class Slow(Positions):
        def take(self, index: Index) -> Index:
            taken.append(len(index))
            return index

    with Prefetch(Slow(ROWS), lambda _: np.arange(3), range(100), largest=10, ahead=4) as prefetch:
        while len(taken) < 5:
            time.sleep(0.001)
        time.sleep(0.05)
        assert len(taken) == 5  # four wait, and one waits to
        list(prefetch.take_pieces())
        while len(taken) < 6:
            time.sleep(0.001)
        time.sleep(0.05)
        assert len(taken) == 6


@pytest.mark.parametrize("where", ["draw", "take"])
def test_an_error_in_the_thread_is_raised_by_the_caller(where: str) -> None:
    class Broken(Positions):
        def take(self, index: Index) -> Index:
            if where == "take" and len(index) == 2:
                raise OSError("the disk is gone")
            return index

    def broken(step: int) -> Index:
        if where == "draw" and step == 2:
            raise OSError("the disk is gone")
        return np.arange(step)

    with Prefetch(Broken(ROWS), broken, range(5), largest=10) as prefetch:
        for step in range(2):
            assert [len(piece) for piece in prefetch.take_pieces()] == [step]
        with pytest.raises(OSError, match="the disk is gone"):
            list(prefetch.take_pieces())
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_batches_reach_a_gpu_from_wherever_the_data_is() -> None:
    on_device = {"x": torch.from_numpy(X).cuda(), "y": torch.from_numpy(Y).cuda()}
    kinds: list[Examples] = [
        InMemory(on_device),
        InMemory({"x": X, "y": Y}, "cuda:0"),
    ]
    for examples in kinds:
        with Prefetch(examples, draw, range(300), largest=4) as prefetch:
            for step in range(300):
                pieces = list(prefetch.take_pieces())
                assert {piece["x"].device for piece in pieces} == {torch.device("cuda:0")}
                rows = torch.cat([piece["x"] for piece in pieces])
                np.testing.assert_array_equal(rows.cpu().numpy(), X[draw(step)])


def test_leaving_early_stops_the_thread() -> None:
    for taken in (0, 1, 5):
        with Prefetch(InMemory(Y), lambda _: np.arange(7), range(10**9), largest=3) as prefetch:
            for _ in range(taken):
                list(prefetch.take_pieces())
        assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]
