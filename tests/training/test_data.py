"""Examples: the same rows from memory, mapped files and Arrow; and a thread that stays ahead and stops cleanly."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from sundog.errors import DataError
from sundog.training.batches.examples import ArrowColumns, Examples, InMemory, MemoryMapped, Places, leaves, mapped
from sundog.training.batches.poisson import Index
from sundog.training.batches.prefetch import Prefetch

ROWS = 500
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 3, 2)).astype(np.float32)
Y = RNG.integers(0, 9, ROWS)
INDICES = [np.array([3, 77, 78, 499]), np.arange(ROWS), np.array([], dtype=np.int64), np.array([400, 2, 2, 130])]


def table(*sizes: int) -> pa.Table:
    """X and Y, in chunks of these sizes and one of what is left."""
    starts = np.cumsum([0, *sizes])
    inner = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), 2)
    lists = pa.FixedSizeListArray.from_arrays(inner, 3)
    whole = pa.table({"x": lists, "y": Y})
    parts = [whole.slice(start, size) for start, size in zip(starts, sizes, strict=False)]
    return pa.concat_tables([*parts, whole.slice(int(starts[-1]))])


def saved(folder: Path, name: str, array: Any) -> Any:
    np.save(folder / name, array)
    return np.load(folder / name, mmap_mode="r")


def every_kind(folder: Path) -> dict[str, Examples]:
    with pa.OSFile(str(folder / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table().schema) as writer:
        writer.write_table(table(), max_chunksize=64)
    fortran = saved(folder, "f.npy", np.asfortranarray(X))
    return {
        "tensors": InMemory({"x": torch.from_numpy(X), "y": torch.from_numpy(Y)}),
        "arrays": InMemory({"x": X, "y": Y}),
        "mapped": MemoryMapped({"x": saved(folder, "x.npy", X), "y": saved(folder, "y.npy", Y)}),
        "mapped in another order": MemoryMapped({"x": fortran, "y": saved(folder, "b.npy", Y.astype(">i8"))}),
        "table": ArrowColumns(table()),
        "table in chunks": ArrowColumns(table(1, 0, 76, 300)),
        "arrow file": ArrowColumns.open(folder / "t.arrow", ["x", "y"]),
    }


def test_every_kind_gives_the_same_rows(tmp_path: Path) -> None:
    for kind, examples in every_kind(tmp_path).items():
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
    assert len(leaves(pair)) == 3
    assert mapped(len, pair) == (4, (4, 4))


def test_read_only_arrays_are_no_problem() -> None:
    array = X.copy()
    array.flags.writeable = False
    np.testing.assert_array_equal(InMemory(array).take(INDICES[0]).numpy(), X[INDICES[0]])


def test_parts_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match=r"different lengths: \[10, 500\]"):
        InMemory((X, Y[:10]))
    with pytest.raises(DataError, match="different lengths"):
        MemoryMapped({"x": X, "y": Y[:10]})


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (pa.array(["a", "b"]), "is string"),
        (pa.array([1, None]), "has empty values"),
        (pa.array([True, False]), "is bool"),
        (pa.array([[1, 2], [3]]), "is list"),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), "has empty values"),
        (pa.array([[1, None], [3, 4]], pa.list_(pa.int64(), 2)), "has empty values"),
    ],
)
def test_columns_that_are_no_numbers_are_refused(column: Any, problem: str) -> None:
    with pytest.raises(DataError, match=f"column 'c': {problem}"):
        ArrowColumns(pa.table({"c": column}))


def test_an_empty_table_has_empty_batches() -> None:
    examples = ArrowColumns(table().slice(0, 0))
    assert len(examples) == 0
    assert examples.take(np.array([], dtype=np.int64))["x"].shape == (0, 3, 2)


@pytest.mark.parametrize("kind", [MemoryMapped, ArrowColumns])
def test_what_cannot_be_mapped_is_one_line(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"my shopping list")
    for path in (tmp_path / "f", tmp_path / "missing"):
        with pytest.raises(DataError, match="that can be mapped") as caught:
            kind.open(path)
        assert "\n" not in str(caught.value)


def test_only_the_rows_that_are_asked_for_are_read(tmp_path: Path) -> None:
    """A mapped file of 1 GB, sparse on the disk: all of it would neither fit nor be quick."""
    rows = 2**18
    array = np.lib.format.open_memmap(tmp_path / "large.npy", mode="w+", dtype=np.float32, shape=(rows, 1024))
    array[rows - 1] = 7.0
    del array
    examples = MemoryMapped.open(tmp_path / "large.npy")
    started = time.process_time()
    batch = examples.take(np.array([0, rows // 2, rows - 1]))
    assert time.process_time() - started < 1
    assert batch.sum(dim=1).tolist() == [0.0, 0.0, 7.0 * 1024]


# --- the thread ---


def draw(step: int) -> Index:
    return np.arange(step, step + 5 * (step % 3))  # empty now and then


def test_prefetch_gives_the_pieces_of_each_step_in_order() -> None:
    with Prefetch(InMemory(Y), draw, range(3, 40), largest=4) as prefetch:
        for step in range(3, 40):
            pieces = list(prefetch.pieces())
            assert max(len(piece) for piece in pieces) <= 4
            assert len(pieces) == max(1, -(-len(draw(step)) // 4))
            np.testing.assert_array_equal(torch.cat(pieces).numpy(), Y[draw(step)])
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_prefetch_stays_ahead_but_not_far() -> None:
    taken = []

    class Slow(Places):
        def take(self, index: Index) -> Index:
            taken.append(len(index))
            return index

    with Prefetch(Slow(ROWS), lambda _: np.arange(3), range(100), largest=10, ahead=4) as prefetch:
        while len(taken) < 5:
            time.sleep(0.001)
        time.sleep(0.05)
        assert len(taken) == 5  # four wait, and one waits to
        list(prefetch.pieces())
        while len(taken) < 6:
            time.sleep(0.001)
        time.sleep(0.05)
        assert len(taken) == 6


@pytest.mark.parametrize("where", ["draw", "take"])
def test_an_error_in_the_thread_is_raised_by_the_caller(where: str) -> None:
    class Broken(Places):
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
            assert [len(piece) for piece in prefetch.pieces()] == [step]
        with pytest.raises(OSError, match="the disk is gone"):
            list(prefetch.pieces())
    assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_batches_reach_a_gpu_from_wherever_the_data_is(tmp_path: Path) -> None:
    on_device = {"x": torch.from_numpy(X).cuda(), "y": torch.from_numpy(Y).cuda()}
    kinds: list[Examples] = [
        InMemory(on_device),
        InMemory({"x": X, "y": Y}, "cuda:0"),
        MemoryMapped({"x": saved(tmp_path, "x.npy", X), "y": saved(tmp_path, "y.npy", Y)}, "cuda:0"),
        ArrowColumns(table(1, 76), device="cuda:0"),
    ]
    for examples in kinds:
        with Prefetch(examples, draw, range(300), largest=4) as prefetch:
            for step in range(300):
                pieces = list(prefetch.pieces())
                assert {piece["x"].device for piece in pieces} == {torch.device("cuda:0")}
                rows = torch.cat([piece["x"] for piece in pieces])
                np.testing.assert_array_equal(rows.cpu().numpy(), X[draw(step)])


def test_leaving_early_stops_the_thread() -> None:
    for taken in (0, 1, 5):
        with Prefetch(InMemory(Y), lambda _: np.arange(7), range(10**9), largest=3) as prefetch:
            for _ in range(taken):
                list(prefetch.pieces())
        assert not [thread for thread in threading.enumerate() if thread.name == "prefetch"]
