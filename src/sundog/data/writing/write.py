"""Write records to csv, JSON lines, parquet, npz or a picture, in parts; a file is complete or absent."""

from __future__ import annotations

import errno
import json
import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow.parquet as pq

from sundog.data.reading.source import take_first_line
from sundog.data.records import Records, concatenate, stack_codes
from sundog.data.schema import Schema
from sundog.data.writing.contact_sheet import ENOUGH, draw, refuse_many, refuse_picture
from sundog.data.writing.csv_text import Speller, choose_null_spelling
from sundog.data.writing.frames import to_frame, to_table
from sundog.errors import DataError
from sundog.files import replace_file

__all__ = ["Stream", "Writer", "choose_count", "open_writer", "to_frame", "to_table"]

GROUP = 1 << 17  # rows of a parquet row group


@dataclass(frozen=True)
class Stream:
    """An open stream to write records to, such as stdout."""

    file: BinaryIO
    format: str = "csv"

    @property
    def name(self) -> str:
        """The name of a file of that format."""
        return f"stdout.{self.format}"


class _Forward:
    """A write-only stream that counts its bytes: a pipe cannot tell its position."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.place, self.closed = file, 0, False

    def write(self, data: Any) -> int:
        written = len(memoryview(data).cast("B"))
        self.file.write(data)
        self.place += written
        return written

    def tell(self) -> int:
        return self.place

    def flush(self) -> None:
        self.file.flush()

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


class Writer(ABC):
    """Appends records to a file."""

    def __init__(self, file: BinaryIO, schema: Schema, name: str) -> None:
        self.file, self.schema, self.name = file, schema, name

    def write(self, records: Records) -> None:
        """Append records."""
        with _explain_write_errors(self.name):
            self._write(records)

    @abstractmethod
    def _write(self, records: Records) -> None: ...

    @abstractmethod
    def finish(self) -> None:
        """Write the end of the file."""

    def abandon(self) -> None:  # noqa: B027 - most formats hold no resources
        """Release resources after an error."""


@contextmanager
def _open_stream(stream: Stream, schema: Schema) -> Iterator[Writer]:
    """Open a writer for a stream; bytes that were written cannot be taken back."""
    with _explain_write_errors(stream.name):
        writer = _choose_writer(Path(stream.name))(cast(BinaryIO, _Forward(stream.file)), schema, stream.name)
        yield writer
        writer.finish()
        stream.file.flush()


@contextmanager
def open_writer(path: str | os.PathLike[str] | Stream, schema: Schema) -> Iterator[Writer]:
    r"""Open a writer for a file, which appears when the block ends; after an error, it does not appear.

    >>> from sundog.data.reading.read import encode, read
    >>> schema = Schema.from_dict({"columns": {"age": {"type": "integer", "min": 0, "max": 99}}})
    >>> path = getfixture("tmp_path") / "out.csv"
    >>> with open_writer(path, schema) as writer:
    ...     writer.write(encode(read({"age": [31, 47]}, schema), schema))
    >>> path.read_text()
    'age\n31\n47\n'
    """
    if isinstance(path, Stream):
        with _open_stream(path, schema) as writer:
            yield writer
        return
    target = Path(path)
    kind = _choose_writer(target)
    if target.is_dir():
        raise DataError(f"{target.name}: is a directory; name a file")
    if not target.parent.is_dir():
        raise DataError(f"{target}: its folder does not exist; create it first")
    opened = None
    with ExitStack() as stack:  # so that only the writer's errors are explained, not those of the block
        try:
            with _explain_write_errors(target.name):
                opened = kind(stack.enter_context(replace_file(target)), schema, target.name)
            yield opened
            with _explain_write_errors(target.name):
                opened.finish()
        except BaseException:
            if opened is not None:
                opened.abandon()
            raise
        with _explain_write_errors(target.name):
            stack.close()


def choose_count(path: str | os.PathLike[str] | Stream, asked: int | None, usual: int | None) -> int | None:
    """Return the number of records to write: as asked for, or the usual number; a picture has fewer.

    >>> choose_count("digits.npz", None, 60_000), choose_count("digits.png", None, 60_000)
    (60000, 100)
    >>> choose_count("digits.png", 7, 60_000)
    7
    """
    named = Path(path.name if isinstance(path, Stream) else path)
    if _choose_writer(named) is not PictureWriter:
        return usual if asked is None else asked
    refuse_many(asked or 0, named.name)
    return ENOUGH if asked is None else asked


def _choose_writer(path: Path) -> type[Writer]:
    name = path.name.lower()
    for suffix, kind in WRITERS.items():
        if name.endswith(suffix):
            return kind
    raise DataError(f"{path.name}: has an unknown format; end the name in {', '.join(WRITERS)}")


@contextmanager
def _explain_write_errors(name: str) -> Iterator[None]:
    """Turn the OSError of a full disk or a forbidden folder into a DataError that names the file."""
    try:
        yield
    except BrokenPipeError:  # the reader has closed the pipe
        raise
    except PermissionError:
        raise DataError(f"{name}: cannot be written without permission; check the folder's permissions") from None
    except OSError as error:
        reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else take_first_line(error)
        raise DataError(
            f"{name}: cannot be written ({reason}); nothing was kept, free space or choose another folder"
        ) from None


@contextmanager
def _name_file(name: str) -> Iterator[None]:
    """Add the name of the file to errors about a column."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


class CsvWriter(Writer):
    """Writes csv lines, with values as the schema spells them."""

    def __init__(self, file: BinaryIO, schema: Schema, name: str) -> None:
        super().__init__(file, schema, name)
        delimiter = "\t" if ".tsv" in name.lower() else schema.delimiter
        with _name_file(name):
            self.speller = Speller(schema, delimiter)
        self._put(self.speller.spell_header())

    def _write(self, records: Records) -> None:
        for lines in self.speller.spell_lines(records):
            self._put(lines)

    def _put(self, data: Any) -> None:
        self.file.write(data)

    def finish(self) -> None:
        """Do nothing: all is written."""


class GzipCsvWriter(CsvWriter):
    """Writes gzip-compressed csv, without a time stamp, so that the same records give the same bytes."""

    def __init__(self, file: BinaryIO, schema: Schema, name: str) -> None:
        self.packer = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        super().__init__(file, schema, name)

    def _put(self, data: Any) -> None:
        self.file.write(self.packer.compress(data))

    def finish(self) -> None:
        """Write the rest of the compressed data."""
        self.file.write(self.packer.flush())


class JsonLinesWriter(Writer):
    """Writes one JSON object a line; sets, series and images are lists."""

    def _write(self, records: Records) -> None:
        columns = [column.to_json(records.codes[name]) for name, column in self.schema.columns.items()]
        names = list(self.schema.columns)
        for row in zip(*columns, strict=True):
            record = dict(zip(names, row, strict=True))
            self.file.write(json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n")

    def finish(self) -> None:
        """Do nothing: all is written."""


class ParquetWriter(Writer):
    """Writes typed columns; sets are lists of items, images and series lists of fixed length."""

    def __init__(self, file: BinaryIO, schema: Schema, name: str) -> None:
        super().__init__(file, schema, name)
        self.parquet = pq.ParquetWriter(file, to_table(_make_empty(schema)).schema)

    def _write(self, records: Records) -> None:
        for start in range(0, len(records), GROUP):
            self.parquet.write_table(to_table(records.take(slice(start, start + GROUP))))

    def finish(self) -> None:
        """Write the footer."""
        self.parquet.close()

    def abandon(self) -> None:
        """Close the library's writer now, before garbage collection does."""
        with suppress(Exception):
            self.parquet.close()


class NpzWriter(Writer):
    """Writes one array a column; the codes, which are small, are kept in memory until the end."""

    def __init__(self, file: BinaryIO, schema: Schema, name: str) -> None:
        super().__init__(file, schema, name)
        with _name_file(name):
            self.nulls = {
                key: choose_null_spelling(key, column, schema.nulls) for key, column in schema.columns.items()
            }
        self.parts: dict[str, list[Any]] = {column: [codes] for column, codes in _make_empty(schema).codes.items()}

    def _write(self, records: Records) -> None:
        for column, codes in records.codes.items():
            self.parts[column].append(codes)

    def finish(self) -> None:
        """Write the arrays of all columns."""
        several = [column.archive_parts for column in self.schema.columns.values() if column.archive_parts]
        # The parts of a single such column have no prefix, unless a column has the name of a part.
        plain = len(several) == 1 and not {*several[0]} & {*self.schema.columns}
        with zipfile.ZipFile(self.file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, column in self.schema.columns.items():
                parts = self.parts.pop(name)
                codes = stack_codes(parts)
                for key, array in column.to_arrays(codes, self.nulls[name]).items():
                    member = name if not key else key if plain else f"{name}_{key}"
                    with archive.open(f"{member}.npy", "w", force_zip64=True) as stream:
                        np.lib.format.write_array(stream, array, allow_pickle=False)


class PictureWriter(Writer):
    """Draws a limited number of images and series."""

    def __init__(self, file: BinaryIO, schema: Schema, name: str) -> None:
        super().__init__(file, schema, name)
        refuse_picture(schema, name)
        self.parts = [_make_empty(schema)]

    def _write(self, records: Records) -> None:
        self.parts.append(records)
        refuse_many(sum(map(len, self.parts)), self.name)

    def finish(self) -> None:
        """Draw the picture."""
        draw(concatenate(self.parts), self.file)


def _make_empty(schema: Schema) -> Records:
    """Return zero records of the schema."""
    return Records(schema, {name: column.make_empty_codes() for name, column in schema.columns.items()}, 0)


WRITERS: dict[str, type[Writer]] = {
    ".csv": CsvWriter,
    ".tsv": CsvWriter,
    ".csv.gz": GzipCsvWriter,
    ".tsv.gz": GzipCsvWriter,
    ".jsonl": JsonLinesWriter,
    ".ndjson": JsonLinesWriter,
    ".parquet": ParquetWriter,
    ".npz": NpzWriter,
    ".png": PictureWriter,
}
