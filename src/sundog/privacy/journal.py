"""An append-only file that several processes may write, and that a crash cannot spoil.

One JSON object a line. Each line carries the hash of all before it, so that a lost or edited line is noticed. A line
counts once its newline is on the disk: `append` returns only after fsync, and whoever appends does so *before* the
thing that the line records. A torn last line is therefore a record of something that never happened, and the next
writer removes it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import portalocker

from sundog.errors import LedgerError
from sundog.files import sync_folder

Line = dict[str, Any]


class Journal:
    """A file of chained JSON lines under an exclusive lock.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> journal = Journal.create(Path(folder.name) / "j", {"format": "example"})
    >>> with journal.locked():
    ...     journal.append([{"n": 1}, {"n": 2}])
    >>> [line["n"] for line in Journal(journal.path).read()[1:]]
    [1, 2]
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[Line] = []
        self._chain = ""
        self._end = 0  # bytes read and verified so far
        self._descriptor: int | None = None

    @classmethod
    def create(cls, path: Path, header: Line) -> Journal:
        """Makes a new journal; an existing file is never touched."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("xb") as file:
                file.write(_render(header, ""))
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)  # unlike a rename, fails if somebody else was first
            sync_folder(path.parent)
        except FileExistsError:
            raise LedgerError(f"{path}: exists already; choose another name or use it as it is") from None
        except OSError as error:
            raise LedgerError(f"{path}: cannot be created ({error.strerror})") from None
        finally:
            temporary.unlink(missing_ok=True)
        return cls(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the file against every other process, and brings what was read up to date."""
        try:
            file = self.path.open("r+b", buffering=0)
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be opened ({error.strerror}); is the path right?") from None
        with file:
            portalocker.lock(file, portalocker.LOCK_EX)
            self._descriptor = file.fileno()
            try:
                self._refresh(self._descriptor)
                yield
            finally:
                self._descriptor = None

    def read(self) -> list[Line]:
        """Every line so far, the header first."""
        with self.locked():
            return list(self._lines)

    @property
    def lines(self) -> list[Line]:
        """What was known when the lock was last held."""
        return self._lines

    def append(self, lines: list[Line]) -> None:
        """Adds lines, all or none; call it inside `locked()`. They are on the disk when it returns."""
        if self._descriptor is None:
            raise RuntimeError("append outside of locked()")
        chain, data = self._chain, b""
        for line in lines:
            rendered = _render(line, chain)
            chain = _digest(rendered)
            data += rendered
        self._write(self._descriptor, data)
        self._lines += lines
        self._chain, self._end = chain, self._end + len(data)

    def _write(self, descriptor: int, data: bytes) -> None:
        try:
            os.lseek(descriptor, self._end, os.SEEK_SET)
            written = 0
            while written < len(data):
                written += os.write(descriptor, data[written:])
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, self._end)
            raise LedgerError(f"{self.path}: cannot be written ({error.strerror}); nothing was spent") from None

    def _refresh(self, descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        with os.fdopen(os.dup(descriptor), "rb") as file:
            file.seek(self._end)
            data = file.read()
        whole = data.rfind(b"\n") + 1
        for raw in data[:whole].splitlines(keepends=True):
            self._accept(raw)
        if whole < len(data):
            os.ftruncate(descriptor, self._end)

    def _accept(self, raw: bytes) -> None:
        number = len(self._lines) + 1
        try:
            line = json.loads(raw)
            chain = line.pop("chain")
        except (ValueError, KeyError, AttributeError, TypeError):
            raise LedgerError(f"{self.path}: line {number} is damaged; restore the file from a backup") from None
        if chain != self._chain:
            raise LedgerError(f"{self.path}: line {number} does not follow from the lines before; restore a backup")
        self._lines.append(line)
        self._chain = _digest(raw)
        self._end += len(raw)


def _render(line: Line, chain: str) -> bytes:
    return json.dumps({**line, "chain": chain}, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:32]
