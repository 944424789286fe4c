"""Arrays: npz archives, idx files (MNIST's format) and numpy arrays in memory; nothing is ever unpickled."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from sundog.data.columns.arrow import is_missing as absent
from sundog.data.columns.containers import split_kinds, unwrap_one
from sundog.data.columns.grids import refuse_masked
from sundog.data.columns.number_parsing import to_float64
from sundog.data.reading.source import (
    BARE,
    AnyPath,
    Shape,
    Source,
    Values,
    check_memory,
    explain_read_errors,
    open_bytes,
    refuse_directory,
    take_first_line,
)
from sundog.data.reading.tables import to_source_values
from sundog.data.validation_errors import format_value
from sundog.errors import DataError

Array = np.ndarray[Any, Any]

IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def open_npz(path: AnyPath, *, nulls: Sequence[str] = ("",)) -> Source:
    """Open an npz archive; only the headers of its arrays are read until one is loaded.

    >>> path = getfixture("tmp_path") / "a.npz"
    >>> np.savez(path, x=np.zeros((3, 28, 28), np.uint8), label=[1, 2, 3])
    >>> open_npz(path).shapes
    {'x': (28, 28), 'label': ()}
    """
    with _open_archive(path) as archive:
        members = [info.filename for info in archive.infolist() if info.filename.endswith(".npy")]
        shapes = {member[:-4]: _read_header(archive, member, path.name)[0][1:] for member in members}
    if not shapes:
        raise DataError(f"{path.name}: holds no arrays; save it with numpy.savez")
    return Source(path.name, shapes, lambda names: _load_npz(path, names), tuple(nulls))


def _load_npz(path: AnyPath, names: list[str]) -> dict[str, Values]:
    loaded: dict[str, Values] = {}
    with _open_archive(path) as archive:
        for name in names:
            where = f"{path.name}: array {name!r}"
            shape, dtype = _read_header(archive, f"{name}.npy", path.name)
            if dtype.hasobject:
                raise DataError(f"{where} holds pickled objects, which could run code; save it as numbers or text")
            check_memory(math.prod(shape) * dtype.itemsize, where)
            with archive.open(f"{name}.npy") as member, _explain_damage(where):
                loaded[name] = np.lib.format.read_array(member, allow_pickle=False)
    return loaded


@contextmanager
def _open_archive(path: AnyPath) -> Iterator[zipfile.ZipFile]:
    with explain_read_errors(path.name):
        refuse_directory(path)
        with path.open("rb") as file, _explain_damage(f"{path.name}: the archive"), zipfile.ZipFile(file) as archive:
            yield archive


def _read_header(archive: zipfile.ZipFile, member: str, file: str) -> tuple[Shape, np.dtype[Any]]:
    with archive.open(member) as stream, _explain_damage(f"{file}: array {member[:-4]!r}"):
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
        return shape, dtype


@contextmanager
def _explain_damage(where: str) -> Iterator[None]:
    try:
        yield
    except (
        ValueError,
        KeyError,
        OverflowError,
        NotImplementedError,
        RuntimeError,
    ) as error:  # invalid headers and zip files
        raise DataError(f"{where} is damaged ({take_first_line(error)}); save it again") from None


def open_idx(path: AnyPath) -> Source:
    """Open an idx file, plain or gzip: two zero bytes, the type, the number of dimensions, the dimensions, the values.

    >>> path = getfixture("tmp_path") / "labels.idx"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
    >>> open_idx(path).load([""])[""]
    array([7, 9], dtype=uint8)
    """
    with explain_read_errors(path.name), open_bytes(path) as file:
        magic = file.read(4)
        if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in IDX_TYPES or magic[3] == 0:
            raise DataError(f"{path.name}: is not an idx file (wrong magic number); give the file as it was published")
        shape = struct.unpack(f">{magic[3]}I", file.read(4 * magic[3]))
        dtype = np.dtype(IDX_TYPES[magic[2]])
        size = math.prod(shape) * dtype.itemsize
        check_memory(size, path.name)
        data = file.read(size + 1)
    if len(data) != size:
        problem = "is cut short" if len(data) < size else "is longer than its header says"
        raise DataError(f"{path.name}: {problem} ({size} bytes expected); copy it again")
    array = np.frombuffer(data, dtype).reshape(shape)
    return open_arrays({BARE: array.astype(dtype.newbyteorder("="), copy=False)}, path.name)


def open_arrays(arrays: Mapping[str, Any], name: str) -> Source:
    """Open named arrays, lists, Series or sparse matrices in memory.

    >>> open_arrays({"x": np.zeros((3, 4)), "y": [1, 2, 3]}, "dict").shapes
    {'x': (4,), 'y': ()}
    """
    values = {
        key: _to_source_values(value, f"{name}: column {key!r}" if key else name) for key, value in arrays.items()
    }
    shapes = {key: () if isinstance(value, pa.ChunkedArray) else value.shape[1:] for key, value in values.items()}
    return Source(name, shapes, lambda names: {key: values[key] for key in names})


def _to_source_values(values: Any, where: str) -> Values:
    if sparse.issparse(values):
        return sparse.csr_array(values)
    if isinstance(values, np.ndarray) and (values.ndim != 1 or values.dtype.kind != "O"):
        if values.ndim != 1:
            refuse_masked(values, where)
        return values
    return to_source_values(values, where)


def to_numbers(values: pa.ChunkedArray, where: str) -> Array:
    """Return numbers as float64, parsed if they are text; missing ones are NaN.

    >>> to_numbers(pa.chunked_array([["1.5", None]]), "x")
    array([1.5, nan])
    """
    parts, row = [np.empty(0)], 0
    for chunk in values.chunks:
        found = np.empty(len(chunk))
        for rows, part in split_kinds(chunk):
            plain = part.dictionary_decode() if isinstance(part, pa.DictionaryArray) else part
            numbers, bad = to_float64(plain)
            if bad.any():
                at = int(bad.argmax())
                place = row + int(np.arange(len(chunk))[rows][at]) + 1
                raise DataError(
                    f"{where}: row {place}: {format_value(unwrap_one(plain[at : at + 1]))} is not a number; fix it"
                )
            found[rows] = np.where(absent(plain), np.nan, numbers)
        parts.append(found)
        row += len(chunk)
    return np.concatenate(parts)
