"""The checkpoint of a fit: a folder that keeps results on disk, so that an interrupted fit can be resumed.

The folder is `OUT.sundog.partial`, beside the release `OUT.sundog`. `fit.json` has the request, `ledger.jsonl` the
charges (unless the fit uses a shared ledger), and each measurement or training has a file with its result. All of
it was measured with noise and paid for. Some, such as a GAN's critic, is not part of the release, so only the
owner can read the folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy.typing as npt
import portalocker
import safetensors
import safetensors.numpy

from sundog.errors import SundogError
from sundog.files import find_os_error, lock, replace_file

Tensors = dict[str, npt.NDArray[Any]]
_OWNER_ONLY = 0o700


class Checkpoint:
    """A locked folder with the results of one fit.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> checkpoint = Checkpoint.begin(Path(folder.name) / "a.sundog", {"epsilon": 1.0})
    >>> checkpoint.save_json("records", {"count": 100})
    >>> checkpoint.release()
    >>> checkpoint = Checkpoint.resume(Path(folder.name) / "a.sundog", {"epsilon": 1.0})
    >>> checkpoint.load_json("records")
    {'count': 100}
    >>> checkpoint.remove()
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path, run: str) -> None:
        self.folder = folder
        self.run = run
        self._lock: BinaryIO | None = None

    def lock(self) -> Self:
        """Keep other processes out until `release`: two fits into one release would spend twice."""
        try:
            self._lock = (self.folder / "fit.json").open("r+b")
            lock(self._lock, portalocker.LOCK_EX | portalocker.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise SundogError(f"{self.folder}: another fit is using this folder; wait for it to end") from None
        except OSError as error:
            self.release()
            raise SundogError(
                f"{self.folder}: cannot be locked ({error.strerror}); choose a folder that you may write to, on a file "
                "system with file locks"
            ) from None
        return self

    def release(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @staticmethod
    def locate_folder(release: Path) -> Path:
        """Return the path of the checkpoint of a release."""
        return release.with_name(release.name + ".partial")

    @classmethod
    def is_begun(cls, release: Path) -> bool:
        """Return whether there is a checkpoint of an interrupted fit."""
        return (cls.locate_folder(release) / "fit.json").exists()

    @classmethod
    def begin(cls, release: Path, request: dict[str, Any]) -> Checkpoint:
        """Create a checkpoint; raise if there is one already, because it says what was spent."""
        folder = cls.locate_folder(release)
        draft = cls(folder.with_name(f".{folder.name}.{secrets.token_hex(4)}"), secrets.token_hex(8))
        try:
            draft.folder.mkdir(_OWNER_ONLY)
            draft.save_json("fit", {"run": draft.run, "request": request})
            draft.folder.rename(folder)  # whole or not at all; fails if there is a folder that is not empty
        except BaseException as error:
            shutil.rmtree(draft.folder, ignore_errors=True)
            reason = find_os_error(error)
            if reason is None:
                raise
            if folder.exists():
                if cls.is_begun(release):
                    cls(folder, "").lock().release()
                raise SundogError(
                    f"{folder}: an earlier fit was interrupted here; add --resume to continue it, or delete "
                    "the folder (what it spent stays spent)"
                ) from None
            raise SundogError(
                f"{folder}: cannot be created ({reason.strerror}); nothing was spent, choose another place"
            ) from None
        return cls(folder, draft.run).lock()

    @classmethod
    def resume(cls, release: Path, request: dict[str, Any]) -> Checkpoint:
        """Open the checkpoint of an interrupted fit; raise if its request was different."""
        folder = cls.locate_folder(release)
        if not folder.exists():
            raise SundogError(f"{folder}: there is nothing to resume; run the same command without --resume")
        saved = cls(folder, "").load_json("fit", "run", "request")
        if saved is None:
            raise SundogError(f"{folder}: is not a checkpoint; delete it and run the same command without --resume")
        asked = json.loads(json.dumps(request))
        for key in asked:
            if saved["request"].get(key) != asked[key]:
                raise SundogError(
                    f"{folder}: the interrupted fit had another {key}; use the same settings, or delete the folder "
                    "(what it spent stays spent)"
                )
        checkpoint = cls(folder, saved["run"]).lock()
        with contextlib.suppress(OSError):  # the folder may belong to another user
            folder.chmod(_OWNER_ONLY)
        # A file that a crash left half-written has a result that will be measured again: one charge must not have two.
        for unfinished in folder.glob(".*.partial"):
            unfinished.unlink(missing_ok=True)
        return checkpoint

    @property
    def ledger_path(self) -> Path:
        """The path of the fit's own ledger, unused if it spends from a shared one."""
        return self.folder / "ledger.jsonl"

    def save_json(self, name: str, result: dict[str, Any]) -> None:
        """Keep a result as JSON."""
        self.save_bytes(f"{name}.json", json.dumps(result).encode())

    def load_json(self, name: str, *keys: str) -> dict[str, Any] | None:
        """Return a result that was kept as JSON, or None; raise if it lacks one of the keys."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            return None
        try:
            result: dict[str, Any] = json.loads(path.read_bytes())
            if isinstance(result, dict) and set(keys) <= set(result):
                return result
        except (OSError, ValueError, RecursionError):
            pass
        raise self.make_unreadable_error(path.name)

    def make_unreadable_error(self, file: str) -> SundogError:
        """Return the error for a file that cannot be read."""
        path = self.folder / file
        return SundogError(f"{path}: cannot be read; delete the folder and fit again (what it spent stays spent)")

    def save_bytes(self, file: str, content: bytes) -> None:
        """Write a file, whole or not at all; replace an earlier one."""
        try:
            with replace_file(self.folder / file) as whole:
                whole.write(content)
        except OSError as error:
            raise SundogError(
                f"{self.folder}: cannot be written ({error.strerror}); free space or check its permissions"
            ) from None

    def load_bytes(self, file: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        try:
            return (self.folder / file).read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            raise self.make_unreadable_error(file) from None

    def save_tensors(self, name: str, tensors: Tensors) -> None:
        """Keep arrays."""
        self.save_bytes(f"{name}.safetensors", safetensors.numpy.save(tensors))

    def load_tensors(self, name: str) -> Tensors | None:
        """Return arrays that were kept, or None."""
        file = f"{name}.safetensors"
        content = self.load_bytes(file)
        try:
            return None if content is None else dict(safetensors.numpy.load(content))
        except (ValueError, safetensors.SafetensorError):
            raise self.make_unreadable_error(file) from None

    def remove(self) -> None:
        """Remove the folder, once the release is saved or if nothing was spent."""
        doomed = self.folder.with_name(f".{self.folder.name}.{os.getpid()}")
        try:
            self.folder.replace(doomed)  # in one step, so that a crash leaves no half of a checkpoint
        except OSError:  # a full disk may have no room for a name either
            doomed = self.folder
        self.release()
        shutil.rmtree(doomed, ignore_errors=True)
