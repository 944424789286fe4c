"""Parquet files: columns are read on demand, and single values a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sundog.data.columns.batches import Batches
from sundog.data.reading.source import AnyPath, PipedInput, Source, Values, explain_read_errors, refuse_directory
from sundog.data.reading.tables import check_unique
from sundog.errors import DataError

BATCH = 2**18  # records read at a time; never by the data


def open_parquet(path: AnyPath) -> Source:
    """Open a parquet file."""
    with explain_read_errors(path.name):
        refuse_directory(path)
        opened = _get_stamp(path)
        with pq.ParquetFile(_open_file(path)) as file:
            names, metadata = file.schema_arrow.names, file.metadata

    def load(names: list[str]) -> dict[str, Values]:
        if not names:
            return {}
        with explain_read_errors(path.name):
            table = pq.read_table(_open_file(path), columns=names, partitioning=None)
            table.validate(full=True)  # a damaged file may contain invalid offsets
        return {name: table[name] for name in names}

    def read_batches(name: str) -> Iterator[pa.ChunkedArray]:
        with explain_read_errors(path.name):
            if _get_stamp(path) != opened:
                raise DataError(f"{path.name}: has changed since it was opened; start again")
            with pq.ParquetFile(_open_file(path), metadata=metadata) as file:
                for batch in file.iter_batches(BATCH, columns=[name], use_threads=False):
                    batch.validate(full=True)
                    yield pa.chunked_array([batch[name]])

    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(check_unique(names, path.name), ())
    return Source(path.name, shapes, load, batch=lambda name: Batches(metadata.num_rows, lambda: read_batches(name)))


def _open_file(path: AnyPath) -> Any:
    return pa.BufferReader(path.content) if isinstance(path, PipedInput) else path


def _get_stamp(path: AnyPath) -> tuple[int, int] | None:
    """Return the size of a file and when it was last written; None for a pipe, which is in memory."""
    if isinstance(path, PipedInput):
        return None
    found = path.stat()
    return found.st_size, found.st_mtime_ns
