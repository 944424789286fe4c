"""The examples a training draws from: in memory, in memory-mapped arrays, or in Arrow tables.

Each gives the rows that a step asks for, as tensors on the device that trains. Of what is mapped from a file only
those rows are read, so that data may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sundog.errors import DataError
from sundog.training.batches.poisson import Index

if TYPE_CHECKING:
    import pyarrow as pa

Batch = Any  # a tensor, or a dict or tuple of them
Array = npt.NDArray[Any]
Device = torch.device | str | None


class Examples(Protocol):
    """Rows by their places."""

    @property
    def device(self) -> torch.device:
        """Where batches are."""

    def __len__(self) -> int: ...

    def take(self, index: Index) -> Batch:
        """The rows at these places; is called from a thread of its own, and from one only."""


class Places:
    """No rows but their places, for a step that has the data itself.

    Args:
        length: how many examples there are.
    """

    device = torch.device("cpu")

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def take(self, index: Index) -> Index:
        """The same."""
        return index


class InMemory:
    """Tensors or arrays, alone or in dicts and tuples; those on a GPU are indexed there.

    >>> examples = InMemory({"x": torch.arange(10.0), "y": np.arange(10)})
    >>> {name: values.tolist() for name, values in examples.take(np.array([2, 5])).items()}
    {'x': [2.0, 5.0], 'y': [2, 5]}

    Args:
        data: the examples along the first dimension.
        device: where batches are wanted; by default where the data is.
    """

    def __init__(self, data: Any, device: Device = None) -> None:
        self._data = mapped(_as_tensor, data)
        tensors = leaves(self._data)
        self._length = _common_length(tensors)
        self.device = tensors[0].device if device is None else torch.device(device)

    def __len__(self) -> int:
        return self._length

    def take(self, index: Index) -> Batch:
        """Selects the rows where the data is, then sends them to the device."""
        places = torch.from_numpy(index)
        return mapped(lambda values: _sent(self._rows(values, places), self.device), self._data)

    def _rows(self, values: Tensor, places: Tensor) -> Tensor:
        if values.device.type != "cpu":
            return values.index_select(0, places.to(values.device, non_blocking=True))
        out = _empty((len(places), *values.shape[1:]), values.dtype, self.device)
        return torch.index_select(values, 0, places, out=out)


class MemoryMapped:
    """Arrays that are larger than memory: what `numpy.load(path, mmap_mode="r")` gives, alone or in dicts and tuples.

    Args:
        data: the examples along the first dimension.
        device: where batches are wanted.
    """

    def __init__(self, data: Any, device: Device = None) -> None:
        self._columns = mapped(lambda array: _Chunks([array]), data)
        self._length = _common_length(leaves(self._columns))
        self.device = torch.device("cpu" if device is None else device)

    @classmethod
    def open(cls, path: str | Path, device: Device = None) -> MemoryMapped:
        """Maps one .npy file."""
        try:
            return cls(np.load(path, mmap_mode="r", allow_pickle=False), device)
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: is not an array that can be mapped ({error})") from None

    def __len__(self) -> int:
        return self._length

    def take(self, index: Index) -> Batch:
        """Reads the rows and sends them to the device."""
        return mapped(lambda column: _sent(column.rows(index, self.device), self.device), self._columns)


class ArrowColumns:
    """Columns of an Arrow table: numbers, and lists of a fixed size of them. A batch is a dict of tensors.

    Args:
        table: in memory or mapped from a file.
        columns: which ones; all by default.
        device: where batches are wanted.
    """

    def __init__(self, table: pa.Table, columns: Sequence[str] | None = None, device: Device = None) -> None:
        names = table.column_names if columns is None else list(columns)
        self._columns = {name: _Chunks(_views(name, table.column(name))) for name in names}
        self._length: int = table.num_rows
        self.device = torch.device("cpu" if device is None else device)

    @classmethod
    def open(cls, path: str | Path, columns: Sequence[str] | None = None, device: Device = None) -> ArrowColumns:
        """Maps an Arrow (IPC or Feather) file; only the rows that are drawn are read, unless it is compressed."""
        import pyarrow as pa

        try:
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        except (OSError, pa.ArrowInvalid) as error:
            problem = str(error).splitlines()[0]
            raise DataError(f"{path}: is not an Arrow file that can be mapped ({problem})") from None
        return cls(table, columns, device)

    def __len__(self) -> int:
        return self._length

    def take(self, index: Index) -> Batch:
        """Reads the rows and sends them to the device."""
        return {name: _sent(column.rows(index, self.device), self.device) for name, column in self._columns.items()}


class _Chunks:
    """One column in one or several pieces of memory."""

    def __init__(self, chunks: Sequence[Array]) -> None:
        self.chunks = list(chunks)
        self.starts = np.cumsum([0, *(len(chunk) for chunk in chunks)])
        self.dtype = self.chunks[0].dtype.newbyteorder("=")

    def __len__(self) -> int:
        return int(self.starts[-1])

    def rows(self, index: Index, device: torch.device) -> Tensor:
        shape = (len(index), *self.chunks[0].shape[1:])
        out = _empty(shape, torch.from_numpy(np.empty(0, self.dtype)).dtype, device)
        into = out.numpy()
        if len(self.chunks) == 1:
            _gather(self.chunks[0], index, into)
            return out
        chunk_of = np.searchsorted(self.starts, index, side="right") - 1
        for number in np.unique(chunk_of):
            here = chunk_of == number
            into[here] = self.chunks[number][index[here] - self.starts[number]]
        return out


def _gather(array: Array, index: Index, out: Array) -> None:
    if array.flags.c_contiguous and array.dtype.isnative:
        np.take(array, index, axis=0, out=out, mode="clip")  # lets other threads run, and needs no second copy
    else:
        out[...] = array[index]  # `take` would read all of the array to bring it into order


def _views(name: str, column: Any) -> list[Array]:
    """A column's chunks as arrays, without copying."""
    chunks = [_view(name, chunk) for chunk in column.chunks if len(chunk)]
    return chunks or [_view(name, column.slice(0, 0).combine_chunks())]


def _view(name: str, chunk: Any) -> Array:
    import pyarrow as pa

    shape: list[int] = []
    rows = len(chunk)
    while pa.types.is_fixed_size_list(chunk.type):
        _refuse_nulls(name, chunk)
        shape.append(chunk.type.list_size)
        chunk = chunk.flatten()
    if not (pa.types.is_integer(chunk.type) or pa.types.is_floating(chunk.type)):
        raise DataError(f"column {name!r}: is {chunk.type}; train on numbers or lists of a fixed size of them")
    _refuse_nulls(name, chunk)
    return np.asarray(chunk.to_numpy(zero_copy_only=True)).reshape(rows, *shape)


def _refuse_nulls(name: str, chunk: Any) -> None:
    if chunk.null_count:
        raise DataError(f"column {name!r}: has empty values; encode them before training")


def mapped(function: Callable[[Any], Any], data: Any) -> Any:
    """The same structure of dicts and tuples with every leaf replaced."""
    if isinstance(data, Mapping):
        return {key: mapped(function, value) for key, value in data.items()}
    if isinstance(data, tuple | list):
        return tuple(mapped(function, value) for value in data)
    return function(data)


def leaves(data: Any) -> list[Any]:
    """Everything in a structure of dicts and tuples."""
    found: list[Any] = []
    mapped(found.append, data)
    return found


def _common_length(parts: Sequence[Any]) -> int:
    lengths = {len(part) for part in parts}
    if len(lengths) != 1:
        raise DataError(f"the parts of the examples have different lengths: {sorted(lengths)}")
    return lengths.pop()


def _as_tensor(values: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values
    array = np.asarray(values)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """On the host, where a GPU can fetch it while others work."""
    return torch.empty(shape, dtype=dtype, pin_memory=device.type == "cuda")


def _sent(values: Tensor, device: torch.device) -> Tensor:
    return values if values.device == device else values.to(device, non_blocking=True)
