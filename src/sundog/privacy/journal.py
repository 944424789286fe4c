"""An append-only file that several processes may write, and that a crash cannot corrupt.

One JSON object a line. Each line carries the hash of the line before it and a digest of itself, so that a lost or
edited line is noticed, the last one too. `append` returns only after fsync, and callers append *before* they do
what the line records. A last line that lacks only its newline counts. A torn last line records something that never
happened, if a crash tore it: readers skip it (`torn` is then true), and the next writer replaces it.

Hashes without a key do not stop an owner who rewrites the whole file; a copy of the last of `heads` reveals it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import portalocker

from sundog.errors import LedgerError
from sundog.files import lock, sync_folder

Line = dict[str, Any]
_DIGEST = re.compile(rb', "digest": "([0-9a-f]{32})"\}\n\Z')


class Journal:
    """A file of chained JSON lines under a lock.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> journal = Journal.create(Path(folder.name) / "j", {"format": "example"})
    >>> with journal.lock():
    ...     journal.append({"n": 1})
    >>> [line["n"] for line in Journal(journal.path).read()[1:]]
    [1]
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = False  # whether the last line is cut short
        self._lines: list[Line] = []
        self._heads: list[str] = []  # the hash of each line, which covers all lines before it
        self._seen = b""  # every byte read and verified so far
        self._cut = b""  # the newline that the last line lacks in the file
        self._descriptor: int | None = None

    @classmethod
    def create(cls, path: Path, header: Line) -> Journal:
        """Create a journal; raise LedgerError if the file exists."""
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        try:
            with temporary.open("xb") as file:
                file.write(_render(header, ""))
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)  # unlike a rename, fails if the file exists
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
    def lock(self, *, shared: bool = False) -> Iterator[None]:
        """Lock the file against other processes, and read new lines.

        A `shared` lock is for reading: it lets other readers in, and works on a file that is read-only.
        """
        try:
            file = self.path.open("rb" if shared else "r+b", buffering=0)
        except FileNotFoundError:
            raise LedgerError(
                f"{self.path}: no such file; check the path, or make one with `sundog ledger {self.path} --epsilon …`"
            ) from None
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be opened ({error.strerror}); check its permissions") from None
        with file:
            try:
                lock(file, portalocker.LOCK_SH if shared else portalocker.LOCK_EX)
            except OSError as error:
                if not shared:  # reading works without locks
                    raise LedgerError(
                        f"{self.path}: cannot be locked ({error.strerror}); move it to a file system with file locks"
                    ) from None
            self._refresh(file.read())
            self._descriptor = None if shared else file.fileno()
            try:
                yield
            finally:
                self._descriptor = None

    def read(self) -> list[Line]:
        """Return every line so far, the header first."""
        with self.lock(shared=True):
            return list(self._lines)

    @property
    def lines(self) -> list[Line]:
        """The lines that were there when the lock was last held."""
        return self._lines

    @property
    def heads(self) -> list[str]:
        """The hash of each of these lines; the last one covers the whole file."""
        return self._heads

    def append(self, line: Line) -> None:
        """Append a line; call it inside `lock()`. The line is on disk when the call returns."""
        if self._descriptor is None:
            raise RuntimeError("append outside of lock()")
        raw = _render(line, self._chain)
        self._write(self._descriptor, self._cut + raw)
        self._cut, self.torn = b"", False
        self._take(line, raw)

    @property
    def _chain(self) -> str:
        return self._heads[-1] if self._heads else ""

    def _write(self, descriptor: int, raw: bytes) -> None:
        end = len(self._seen) - len(self._cut)
        try:
            os.ftruncate(descriptor, end)  # what a crash left of a line
            os.lseek(descriptor, end, os.SEEK_SET)
            written = 0
            while written < len(raw):
                written += os.write(descriptor, raw[written:])
            os.fsync(descriptor)
        except OSError as error:
            with suppress(OSError):  # what stays of the line is torn, or counts as spent
                os.ftruncate(descriptor, end)
            raise LedgerError(f"{self.path}: cannot be written ({error.strerror}); this charge was not made") from None

    def _refresh(self, content: bytes) -> None:
        if not (content + b"\n" if self._cut else content).startswith(self._seen):
            raise LedgerError(f"{self.path}: was changed by something else while it was open; restore a backup")
        new = content[len(self._seen) :]
        for raw in new[: new.rfind(b"\n") + 1].splitlines(keepends=True):
            self._accept(raw)
        if len(content) >= len(self._seen):
            self._take_tail(content[len(self._seen) :])

    def _take_tail(self, tail: bytes) -> None:
        """Accept the text after the last newline if it is JSON, as a whole line is; if not, the last line is torn."""
        self._cut, self.torn = b"", bool(tail) and not _is_json(tail)
        if tail and not self.torn:
            self._accept(tail + b"\n")
            self._cut = b"\n"
        if not self._lines:
            raise LedgerError(f"{self.path}: is not a sundog ledger; check the path")

    def _accept(self, raw: bytes) -> None:
        number = len(self._lines) + 1
        try:
            line = json.loads(raw)
            chain = line.pop("chain")
            line.pop("digest", None)
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise LedgerError(f"{self.path}: line {number} is damaged; restore the file from a backup") from None
        if chain != self._chain:
            raise LedgerError(f"{self.path}: line {number} does not follow from the lines before; restore a backup")
        if number == 1 and raw.endswith(b'"chain": ""}\n'):
            raise make_old_ledger_error(self.path)
        if not _is_intact(raw):
            raise LedgerError(
                f"{self.path}: line {number} was edited (its digest is wrong or missing); restore a backup"
            )
        self._take(line, raw)

    def _take(self, line: Line, raw: bytes) -> None:
        self._lines.append(line)
        self._seen += raw
        self._heads.append(_compute_hash(raw))


def make_old_ledger_error(path: Path) -> LedgerError:
    """Return the error for a file whose lines have no digests, or whose header has no id."""
    return LedgerError(
        f"{path}: made by a development version of sundog; start a new ledger and count what the old one spent"
    )


def _render(line: Line, chain: str) -> bytes:
    body = json.dumps({**line, "chain": chain}, ensure_ascii=False, allow_nan=False).encode()
    return body[:-1] + f', "digest": "{_compute_hash(body)}"}}\n'.encode()


def _is_intact(raw: bytes) -> bool:
    """Return whether the digest at the end of a line is that of the rest."""
    found = _DIGEST.search(raw)
    return found is not None and found[1].decode() == _compute_hash(raw[: found.start()] + b"}")


def _is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def _compute_hash(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:32]
