"""A disk that fills up at every single write: a fit says so, goes on when there is space, charges nothing twice."""

from __future__ import annotations

import builtins
import errno
import io
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sundog.data.schema import Schema
from sundog.errors import DataError, SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.release.release import Release

DATA = {"n": np.arange(3000) % 10, "b": np.arange(3000) % 2 == 0}
LEARNED = Schema.from_dict({"columns": {"n": {"type": "integer", "learn": True}, "b": {"type": "boolean"}}})
DECLARED = Schema.from_dict({"columns": {"n": {"type": "integer", "min": 0, "max": 9}, "b": {"type": "boolean"}}})
QUICK = {"epochs": 0.1, "hidden": 4}
CREATING = ("link", "mkdir", "rename", "replace", "write", "fsync", "posix_fallocate")

pytestmark = pytest.mark.usefixtures("no_fsync", "remembered_answers")


class Disk:
    """Has no space for its k-th operation that needs some, and for those after it if it stays full."""

    def __init__(self, full_at: int, *, stays_full: bool) -> None:
        self.full_at, self.stays_full, self.count = full_at, stays_full, 0

    def use(self) -> None:
        self.count += 1
        if self.count == self.full_at or (self.stays_full and self.count > self.full_at):
            raise OSError(errno.ENOSPC, "No space left on device")

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """In the place of the real one, for every way in which files are written here."""
        with pytest.MonkeyPatch.context() as patch:
            for name in CREATING:
                patch.setattr(os, name, self._before(getattr(os, name)))
            patch.setattr(os, "open", self._opening(os.open))
            patch.setattr(Path, "open", self._opened(Path.open))
            patch.setattr(builtins, "open", self._opened(open))
            yield

    def _before(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def limited(*arguments: Any, **options: Any) -> Any:
            self.use()
            return call(*arguments, **options)

        return limited

    def _opening(self, call: Callable[..., int]) -> Callable[..., int]:
        def limited(path: Any, flags: int, *rest: Any, **options: Any) -> int:
            if flags & os.O_CREAT:
                self.use()
            return call(path, flags, *rest, **options)

        return limited

    def _opened(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def limited(path: Any, mode: str = "r", *rest: Any, opener: Any = None, **options: Any) -> Any:
            if mode not in ("xb", "wb"):
                return call(path, mode, *rest, **options)
            self.use()
            return io.BufferedWriter(_Raw(self, path, mode, opener))

        return limited


class _Raw(io.FileIO):
    def __init__(self, disk: Disk, path: Path, mode: str, opener: Any) -> None:
        self.disk = disk
        super().__init__(path, mode, opener=opener)

    def write(self, data: Any) -> int:
        self.disk.use()
        return super().write(data)


def fit(folder: Path, model: str, schema: Schema, *, shared: bool, resume: bool = False, **options: Any) -> Release:
    synthesizer = Synthesizer(model, 2.0, ledger=folder / "all.ledger" if shared else None, seed=1, **options)
    return synthesizer.fit(DATA, schema, out=folder / "o.sundog", resume=resume).release_


def prepare(folder: Path, *, shared: bool) -> Path:
    folder.mkdir()
    if shared:
        Ledger.create(folder / "all.ledger", epsilon=2.0, delta=1e-5)
    return folder


def check_every_write(tmp_path: Path, *, every: int = 1, stays_full: bool, shared: bool, **asked: Any) -> None:
    undisturbed = fit(prepare(tmp_path / "undisturbed", shared=shared), shared=shared, **asked).certificate.charges
    outcomes = set()
    for number in itertools.count(1, every):
        folder, disk = prepare(tmp_path / str(number), shared=shared), Disk(number, stays_full=stays_full)
        outcomes.add(_run_on(disk, folder, undisturbed, shared=shared, **asked))
        if disk.count < number:
            break
    assert number > 25
    assert outcomes == {"fitted", "nothing was spent", "went on"}


def _run_on(disk: Disk, folder: Path, undisturbed: list[Charge], *, shared: bool, **asked: Any) -> str:
    outcome = "fitted"
    try:
        with disk.mounted():
            fit(folder, shared=shared, **asked)
    except SundogError as error:
        message = str(error)
        assert "No space left on device" in message
        assert "\n" not in message
        resume = Checkpoint.locate_folder(folder / "o.sundog").exists()
        outcome = "went on" if resume else "nothing was spent"
        assert ("--resume" in message) == resume, message
        if not resume:
            assert [path.name for path in folder.iterdir()] == ["all.ledger"] * shared, message
            assert not shared or Ledger.open(folder / "all.ledger").charges == ()
        fit(folder, shared=shared, resume=resume, **asked)
    release = Release.load(folder / "o.sundog")
    assert release.verify() == []
    assert _list_purposes(release.certificate.charges) == _list_purposes(undisturbed)
    left = {path.name for path in folder.iterdir()} - {"o.sundog.private"}  # the critic of a GAN
    assert left == {"o.sundog", *["all.ledger"] * shared}
    if shared:
        assert _count_steps(Ledger.open(folder / "all.ledger").charges) == _count_steps(undisturbed)
    return outcome


def _list_purposes(charges: Any) -> list[str]:
    """What was measured, but for bins: if there are any to refine follows from the learned range, and so from noise."""
    return [charge.purpose for charge in charges if charge.purpose != "bins of n"]


def _count_steps(charges: Any) -> dict[str, int]:
    """How often each thing was measured in all; a training is paid for in blocks."""
    counts = dict.fromkeys(_list_purposes(charges), 0)
    for charge in charges:
        if charge.purpose in counts:
            counts[charge.purpose] += charge.count
    return counts


@pytest.mark.parametrize("stays_full", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("shared", [False, True], ids=["own ledger", "shared ledger"])
def test_a_disk_that_is_full_at_any_write(stays_full: bool, shared: bool, tmp_path: Path) -> None:
    check_every_write(tmp_path, model="independent", schema=LEARNED, stays_full=stays_full, shared=shared)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("rbm", {"settings": QUICK}),
        ("vae", {"settings": QUICK}),
        ("gan", {"settings": {"epochs": 0.1, "hidden": 4, "latent": 2}}),
        ("rbm", {"settings": QUICK, "clusters": 2}),
        ("independent", {"clusters": 2}),
    ],
    ids=["rbm", "vae", "gan", "mixture", "mixture of independent"],
)
def test_a_disk_that_is_full_in_a_training(model: str, options: dict[str, Any], tmp_path: Path) -> None:
    check_every_write(tmp_path, every=7, model=model, schema=DECLARED, stays_full=True, shared=True, **options)


def test_a_folder_without_room_is_refused_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = prepare(tmp_path / "here", shared=True)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=2**19))
    with pytest.raises(DataError, match=r"here: has no room for about 1 MB .* nothing was spent"):
        fit(folder, "independent", DECLARED, shared=True)
    assert Ledger.open(folder / "all.ledger").charges == ()
    assert [path.name for path in folder.iterdir()] == ["all.ledger"]
