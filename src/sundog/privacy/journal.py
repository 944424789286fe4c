"""An append-only file that several processes may write, and that a crash cannot spoil.

One JSON object a line. Each line carries the hash of the line before it, so that a lost or edited line is noticed. A
line counts once its newline is on the disk: `append` returns only after fsync, and whoever appends does so *before*
the thing that the line records. A torn last line is therefore a record of something that never happened: readers
pass over it, and the next writer writes over it.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    ...     journal.append({"n": 1})
    >>> [line["n"] for line in Journal(journal.path).read()[1:]]
    [1]
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[Line] = []
        self._chain = ""
        self._seen = b""  # every byte read and verified so far
        self._descriptor: int | None = None

    @classmethod
    def create(cls, path: Path, header: Line) -> Journal:
        """Makes a new journal; an existing file is never touched."""
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
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
            raise LedgerError(f"{path}: cannot be created ({error.strerror}); choose another place") from None
        finally:
            with suppress(OSError):
                temporary.unlink()
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
            self._refresh(file.read())
            self._descriptor = file.fileno()
            try:
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

    def append(self, line: Line) -> None:
        """Adds a line; call it inside `locked()`. It is on the disk when it returns."""
        if self._descriptor is None:
            raise RuntimeError("append outside of locked()")
        raw = _render(line, self._chain)
        self._write(self._descriptor, raw)
        self._take(line, raw)

    def _write(self, descriptor: int, raw: bytes) -> None:
        end = len(self._seen)
        try:
            os.ftruncate(descriptor, end)  # whatever a crash left of a line
            os.lseek(descriptor, end, os.SEEK_SET)
            written = 0
            while written < len(raw):
                written += os.write(descriptor, raw[written:])
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, end)
            raise LedgerError(f"{self.path}: cannot be written ({error.strerror}); nothing was spent") from None

    def _refresh(self, content: bytes) -> None:
        if not content.startswith(self._seen):
            raise LedgerError(f"{self.path}: was changed by something else while it was open; restore a backup")
        new = content[len(self._seen) :]
        whole = new[: new.rfind(b"\n") + 1]
        if not whole and not self._seen:
            raise LedgerError(f"{self.path}: is not a sundog ledger")
        for raw in whole.splitlines(keepends=True):
            self._accept(raw)

    def _accept(self, raw: bytes) -> None:
        number = len(self._lines) + 1
        try:
            line = json.loads(raw)
            chain = line.pop("chain")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise LedgerError(f"{self.path}: line {number} is damaged; restore the file from a backup") from None
        if chain != self._chain:
            raise LedgerError(f"{self.path}: line {number} does not follow from the lines before; restore a backup")
        self._take(line, raw)

    def _take(self, line: Line, raw: bytes) -> None:
        self._lines.append(line)
        self._seen += raw
        self._chain = hashlib.sha256(raw).hexdigest()[:32]


def _render(line: Line, chain: str) -> bytes:
    return json.dumps({**line, "chain": chain}, ensure_ascii=False, allow_nan=False).encode() + b"\n"
