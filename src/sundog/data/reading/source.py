"""The common interface of all sources: named values, loaded on demand.

A csv file, a DataFrame, an npz archive and an unnamed array look the same: names, the shape of one record under each
name, and a function that loads some of them. `column_matching.py` decides which name belongs to which column.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

import numpy as np
import pyarrow as pa
from scipy import sparse

from sundog.data.columns.batches import Batches
from sundog.errors import DataError

Values: TypeAlias = "pa.ChunkedArray | np.ndarray[Any, Any] | sparse.csr_array"
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PipedInput:
    r"""Bytes read from a pipe; the suffix of the name gives their format, and they can be opened repeatedly.

    >>> PipedInput("stdin.csv", b"a\n1\n").open().read()
    b'a\n1\n'
    """

    name: str
    content: bytes

    def open(self, mode: str = "rb") -> BinaryIO:  # noqa: ARG002  as paths have it
        """Open it for reading."""
        return io.BytesIO(self.content)

    def is_dir(self) -> bool:
        """Return False: standard input is not a directory."""
        return False

    def stat(self) -> None:
        """Do nothing: standard input exists."""


AnyPath: TypeAlias = "Path | PipedInput"

BARE = ""
"""The name of unnamed values: an ndarray, an idx file, a list of sets."""


@dataclass(frozen=True)
class Source:
    """Named values of one file or object.

    Args:
        name: of the file or the kind of object, for messages.
        shapes: the shape of one record under each name, () for a scalar.
        load: returns the values under some names.
        nulls: spellings of a missing value, for text formats.
        batch: returns the values under one name in batches, if the source can be read so.
    """

    name: str
    shapes: Mapping[str, Shape]
    load: Callable[[list[str]], dict[str, Values]]
    nulls: tuple[str, ...] = ()
    batch: Callable[[str], Batches] | None = None


def take_first_line(error: BaseException) -> str:
    r"""Return the first line of a library's message, to be quoted in a message of one line.

    >>> take_first_line(ValueError("bad\nvery bad"))
    'bad'
    """
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__


@contextmanager
def explain_read_errors(name: str) -> Iterator[None]:
    """Turn what libraries raise for an unreadable or damaged file into a DataError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{name or '.'}: is a directory; name a file in it") from None
    except PermissionError:
        raise DataError(f"{name}: cannot be read without permission; check its permissions") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except (MemoryError, pa.ArrowMemoryError):
        raise DataError(f"{name}: does not fit in memory; give fewer records or columns") from None
    except (zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, EOFError, struct.error) as error:
        raise DataError(f"{name}: is damaged or cut short ({take_first_line(error)}); copy it again") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{name}: cannot be read ({take_first_line(error)}); copy it again or check its format"
        ) from None


def refuse_directory(path: AnyPath) -> None:
    """Raise IsADirectoryError for a directory: some libraries would read all files in it."""
    if path.is_dir():
        raise IsADirectoryError(path)


def open_bytes(path: AnyPath) -> BinaryIO:
    """Open a file, decompressed if its content (not its name) is gzip."""
    refuse_directory(path)
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if isinstance(path, PipedInput):
        return cast(BinaryIO, gzip.open(path.open())) if packed else path.open()
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def check_memory(size: int, name: str) -> None:
    """Refuse an array that, by its header, is larger than this machine's memory, before decompressing it."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**36
    if size > memory:
        raise DataError(f"{name}: needs {size / 2**30:,.0f} GiB, more than this machine's memory; give fewer records")
