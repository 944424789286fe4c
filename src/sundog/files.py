"""Files: written whole or not at all, locked, and never over a file that is still needed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

import portalocker

from sundog.errors import DataError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_LARGEST_TRIAL = 64 * 2**20  # bytes: some file systems reserve space only by writing it


@contextlib.contextmanager
def replace_file(path: Path, *, owner_only: bool = False) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends, and leaves no trace if it ends in an error.

    With `owner_only` nobody else can read it, from the first byte on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replace_file(Path(folder) / "a.txt") as file:
    ...         _ = file.write(b"whole")
    ...     (Path(folder) / "a.txt").read_bytes()
    b'whole'
    """
    temporary = _name_beside(path)
    file = open(temporary, "xb", opener=_open_for_owner if owner_only else None)  # noqa: SIM115
    try:
        yield file
        file.flush()
        os.fsync(file.fileno())
        file.close()
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):  # closing flushes, which fails again on a full disk
            file.close()
        temporary.unlink(missing_ok=True)
        raise


def _open_for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def sync_folder(folder: Path) -> None:
    """Write a new name in the folder to disk; systems that do not allow it keep the file whole anyway."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def lock(file: IO[bytes], flags: portalocker.LockFlags) -> None:
    """Lock an open file; raise BlockingIOError if another process holds it, OSError if locks are not supported."""
    try:
        portalocker.lock(file, flags)
    except portalocker.AlreadyLocked:
        raise BlockingIOError(errno.EAGAIN, "another process holds the lock") from None
    except portalocker.LockException as error:
        cause = error.args[0] if error.args else error
        reason = getattr(cause, "strerror", None) or str(cause) or "file locks are not supported here"
        raise OSError(errno.ENOLCK, reason) from None


def refuse_output(
    out: Path | None,
    inputs: Mapping[str, Any],
    *,
    replaces: Callable[[Path], bool] = lambda _: False,
    fix: str = "choose another name",
) -> None:
    """Raise before the work if a file cannot be written, or would replace an input or another file.

    Args:
        out: the file to be written; None if there is none.
        inputs: what the command reads, by role; values that are not paths are skipped.
        replaces: whether an existing file may be replaced.
        fix: what to do if it may not.
    """
    if out is None:
        return
    refuse_stdout(out, "file")
    refuse_folder(out)
    for role, given in inputs.items():
        if isinstance(given, str | os.PathLike) and is_same_file(out, given):
            raise DataError(f"{out}: is the {role} itself, which would be lost; choose another name")
    if os.path.lexists(out):
        if not out.is_file():
            raise DataError(f"{out}: is not a regular file; choose another name")
        if not replaces(out):
            raise DataError(f"{out}: exists already; {fix}")
    refuse_unwritable(out)


def refuse_stdout(out: Path, what: str) -> None:
    """Raise if the output is `-`, and would become a file or a folder of that name, which is hard to remove.

    >>> refuse_stdout(Path("-"), "folder")
    Traceback (most recent call last):
    sundog.errors.DataError: -: this is not written to stdout; name a folder
    """
    if str(out) == "-":
        raise DataError(f"-: this is not written to stdout; name a {what}")


def refuse_folder(out: Path) -> None:
    """Raise if a path is that of a folder, or its own folder does not exist."""
    if out.is_dir() or not out.parent.is_dir():
        what = "is a directory; name a file" if out.is_dir() else "its folder does not exist; create it first"
        raise DataError(f"{out}: {what}")


def refuse_full(folder: Path, size: int) -> None:
    """Raise if a folder has no room for `size` bytes, by the free space that the system reports and by a trial.

    >>> refuse_full(getfixture("tmp_path"), 2**60)
    Traceback (most recent call last):
    sundog.errors.DataError: ...: has no room for about 1,099,511,627,776 MB ...; nothing was spent, free space or ...
    """
    trial = _name_beside(folder / "room")
    try:
        if size > shutil.disk_usage(folder).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with trial.open("xb") as file:
            if hasattr(os, "posix_fallocate"):  # the only place where a quota is reported
                os.posix_fallocate(file.fileno(), 0, min(size, _LARGEST_TRIAL))
    except OSError as error:
        if error.errno in FULL:
            raise DataError(
                f"{folder}: has no room for about {max(1, size >> 20):,} MB ({error.strerror}); nothing was spent, "
                "free space or choose another place"
            ) from None
    finally:
        with contextlib.suppress(OSError):
            trial.unlink(missing_ok=True)


def find_os_error(error: BaseException) -> OSError | None:
    """Return the operating system's error behind an error, or None."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, OSError):
        found = found.__context__
    return found


def refuse_unwritable(path: Path) -> None:
    """Raise if no file can be created in the folder of `path`."""
    try:
        trial = _name_beside(path)
        trial.touch(exist_ok=False)
        trial.unlink()
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another place") from None


def is_same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two paths lead to the same file, through links or not, or would if it existed.

    >>> is_same_file("a.csv", "./a.csv"), is_same_file("a.csv", "b.csv")
    (True, False)
    """
    with contextlib.suppress(OSError, ValueError):
        if Path(one).samefile(other):
            return True
    return os.path.realpath(one) == os.path.realpath(other)


def _name_beside(path: Path) -> Path:
    """Return the path of a temporary file in the same folder."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
