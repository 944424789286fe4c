"""What an interrupted fit leaves behind, so that it can go on and what was spent stays spent.

A folder beside the release to be, `OUT.sundog.partial`: `fit.json` says what was asked for, `ledger.jsonl` what was
spent (unless the fit was given a ledger of its own), and each finished stage its result. Results are measured with
noise and paid for; nothing else about the data is kept. A model that trains keeps its state there too, while it does.
Some of it, such as a GAN's critic, no release will have: the folder is for the owner's eyes only.
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
from sundog.files import lock, os_error_of, replacing

Tensors = dict[str, npt.NDArray[Any]]
_OWNER_ONLY = 0o700


class Checkpoint:
    """The stages of one fit that are done.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> checkpoint = Checkpoint.begin(Path(folder.name) / "a.sundog", {"epsilon": 1.0})
    >>> checkpoint.save("records", {"count": 100})
    >>> checkpoint.release()
    >>> checkpoint = Checkpoint.resume(Path(folder.name) / "a.sundog", {"epsilon": 1.0})
    >>> checkpoint.load("records")
    {'count': 100}
    >>> checkpoint.done()
    >>> folder.cleanup()
    """

    def __init__(self, folder: Path, run: str) -> None:
        self.folder = folder
        self.run = run
        self._lock: BinaryIO | None = None

    def held(self) -> Self:
        """Keeps every other process out until `release`; two fits into one release would spend twice."""
        try:
            self._lock = (self.folder / "fit.json").open("r+b")
            lock(self._lock, portalocker.LOCK_EX | portalocker.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise SundogError(f"{self.folder}: another fit is at work here; wait for it to end") from None
        except OSError as error:
            self.release()
            raise SundogError(
                f"{self.folder}: cannot be locked ({error.strerror}); choose a folder that you may write to, on a file "
                "system with file locks"
            ) from None
        return self

    def release(self) -> None:
        """Lets others in."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @staticmethod
    def folder_for(release: Path) -> Path:
        """Where the checkpoint of a release is."""
        return release.with_name(release.name + ".partial")

    @classmethod
    def is_begun(cls, release: Path) -> bool:
        """Whether a fit was interrupted there: only `resume` goes on."""
        return (cls.folder_for(release) / "fit.json").exists()

    @classmethod
    def begin(cls, release: Path, request: dict[str, Any]) -> Checkpoint:
        """Starts a new one; an old one is never overwritten, because it holds what was spent."""
        folder = cls.folder_for(release)
        draft = cls(folder.with_name(f".{folder.name}.{secrets.token_hex(4)}"), secrets.token_hex(8))
        try:
            draft.folder.mkdir(_OWNER_ONLY)
            draft.save("fit", {"run": draft.run, "request": request})
            draft.folder.rename(folder)  # whole or not at all; fails if there is one with anything in it
        except BaseException as error:
            shutil.rmtree(draft.folder, ignore_errors=True)
            reason = os_error_of(error)
            if reason is None:
                raise
            if folder.exists():
                if cls.is_begun(release):
                    cls(folder, "").held().release()
                raise SundogError(
                    f"{folder}: an earlier fit was interrupted here; add --resume to go on with it, or delete "
                    "the folder (what it spent stays spent)"
                ) from None
            raise SundogError(
                f"{folder}: cannot be created ({reason.strerror}); nothing was spent, choose another place"
            ) from None
        return cls(folder, draft.run).held()

    @classmethod
    def resume(cls, release: Path, request: dict[str, Any]) -> Checkpoint:
        """Goes on with an interrupted fit, if it was asked for the same things."""
        folder = cls.folder_for(release)
        if not folder.exists():
            raise SundogError(f"{folder}: there is nothing to resume; run the same command without --resume")
        saved = cls(folder, "").load("fit", "run", "request")
        if saved is None:
            raise SundogError(f"{folder}: is not a checkpoint; delete it and run the same command without --resume")
        asked = json.loads(json.dumps(request))
        for key in asked:
            if saved["request"].get(key) != asked[key]:
                raise SundogError(
                    f"{folder}: the interrupted fit had another {key}; use the same settings, or delete the folder "
                    "(what it spent stays spent)"
                )
        checkpoint = cls(folder, saved["run"]).held()
        with contextlib.suppress(OSError):  # it may be another's, who opened it to this user
            folder.chmod(_OWNER_ONLY)
        # What a crash left half-written is the result of steps that will be run again: two results of one charge.
        for unfinished in folder.glob(".*.partial"):
            unfinished.unlink(missing_ok=True)
        return checkpoint

    @property
    def ledger_path(self) -> Path:
        """The ledger of this fit, when it was given none."""
        return self.folder / "ledger.jsonl"

    def save(self, stage: str, result: dict[str, Any]) -> None:
        """Keeps the result of a stage."""
        self.save_bytes(f"{stage}.json", json.dumps(result).encode())

    def load(self, stage: str, *keys: str) -> dict[str, Any] | None:
        """The result of a stage, which has these keys, or None when it was not finished."""
        path = self.folder / f"{stage}.json"
        if not path.exists():
            return None
        try:
            result: dict[str, Any] = json.loads(path.read_bytes())
            if isinstance(result, dict) and set(keys) <= set(result):
                return result
        except (OSError, ValueError, RecursionError):
            pass
        raise self.damaged(path.name)

    def damaged(self, file: str) -> SundogError:
        """What to say of a file that is not what was kept."""
        path = self.folder / file
        return SundogError(f"{path}: cannot be read; delete the folder and fit again (what it spent stays spent)")

    def save_bytes(self, file: str, content: bytes) -> None:
        """Keeps a file of a stage that is still at work, in the place of an earlier one."""
        try:
            with replacing(self.folder / file) as whole:
                whole.write(content)
        except OSError as error:
            raise SundogError(f"{self.folder}: cannot be written ({error.strerror})") from None

    def load_bytes(self, file: str) -> bytes | None:
        """The content of such a file, or None where there is none yet."""
        try:
            return (self.folder / file).read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            raise self.damaged(file) from None

    def save_tensors(self, stage: str, tensors: Tensors) -> None:
        """Keeps the arrays of a stage; call it before `save`, which says that the stage is finished."""
        self.save_bytes(f"{stage}.safetensors", safetensors.numpy.save(tensors))

    def load_tensors(self, stage: str) -> Tensors | None:
        """The arrays of a stage, or None where none were kept."""
        file = f"{stage}.safetensors"
        content = self.load_bytes(file)
        try:
            return None if content is None else dict(safetensors.numpy.load(content))
        except (ValueError, safetensors.SafetensorError):
            raise self.damaged(file) from None

    def done(self) -> None:
        """Removes it: the release is there."""
        doomed = self.folder.with_name(f".{self.folder.name}.{os.getpid()}")
        try:
            self.folder.replace(doomed)  # at once, so that a crash in between leaves no half of a checkpoint
        except OSError:  # a full disk may have no room for a name either
            doomed = self.folder
        self.release()
        shutil.rmtree(doomed, ignore_errors=True)
