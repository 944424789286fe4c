"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when the block ends, and leaves no trace if it ends in an error.

    A private one is readable for its owner only, from the first byte on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as file:
    ...         _ = file.write(b"whole")
    ...     (Path(folder) / "a.txt").read_bytes()
    b'whole'
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    file = open(temporary, "xb", opener=_open_private if private else None)  # noqa: SIM115
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


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def sync_folder(folder: Path) -> None:
    """Makes a new name itself last; not every system allows it, and the file is whole without."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
