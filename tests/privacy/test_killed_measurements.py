"""A whole fit is killed at every operation; planted bugs must be found."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from _pytest.outcomes import Failed
from tests.privacy.measurements import BLOCK, NORM, TRAINING, Killed

from sundog.errors import BudgetExceededError, LedgerError, SundogError
from sundog.privacy import measure_once as module
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.ledger_views import Prepaid
from sundog.privacy.measure_once import Arrays

# --- a whole fit: a stage, arrays, a training in blocks; killed at every moment ---

COUNT = Charge(event=Pure(epsilon=0.02), purpose="count")

PAIR = (NORM, Charge(event=Pure(epsilon=0.03), purpose="means"))
WHOLE = [COUNT, *PAIR, BLOCK, BLOCK, BLOCK]


class Fit:
    """A small fit on disk, and all that anybody has seen of its measurements."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.out, self.path = folder / "o.sundog", folder / "ledger"
        self.drawn = 0
        self.seen: dict[str, set[int]] = {}  # results by measurement that were kept, or returned
        Ledger.create(self.path, epsilon=1.0, delta=1e-5)

    @property
    def folder(self) -> Path:
        return Checkpoint.locate_folder(self.out)

    @property
    def charges(self) -> list[Charge]:
        return list(Ledger.open(self.path).charges)

    def live(self) -> None:
        """One process: begins, or goes on with what is on the disk."""
        checkpoint = Checkpoint.resume(self.out, {}) if self.folder.exists() else Checkpoint.begin(self.out, {})
        try:
            ledger = Ledger.open(self.path).run(epsilon=1.0, delta=1e-5, name=checkpoint.run)
            stage = module.measure_stage("count", lambda paying: {"id": self.count(paying)}, ledger, checkpoint, paid=0)
            self.note("count", stage.result["id"])
            means = module.measure_once("means", PAIR, self.means, ledger, checkpoint)
            self.note("means", means["id"][0])
            self.train(ledger, checkpoint)
        finally:
            checkpoint.release()
            self.look()

    def count(self, ledger: Ledger) -> int:
        ledger.spend(COUNT)
        return self.draw("count", [COUNT])

    def means(self, ledger: Ledger) -> Arrays:
        for charge in PAIR:
            ledger.spend(charge)
        return {"id": np.array([self.draw("means", PAIR)])}

    def train(self, ledger: Ledger, checkpoint: Checkpoint) -> None:
        kept = checkpoint.load_json("training") or {"ids": []}
        ids = list(kept["ids"])
        paid = module.count_paid_steps(TRAINING, 2 * len(ids), ledger, checkpoint)
        while len(ids) < 3:
            if paid == 2 * len(ids):
                ledger.spend(BLOCK)
                paid += 2
            ids.append(self.draw(f"block {len(ids)}", [BLOCK] * (len(ids) + 1)))
            checkpoint.save_json("training", {"ids": ids})
            self.note(f"block {len(ids) - 1}", ids[-1])

    def draw(self, name: str, charges: Sequence[Charge]) -> int:
        """Measures private data: the charges must be on the disk by then."""
        on_disk = self.charges
        assert all(on_disk.count(charge) >= charges.count(charge) for charge in charges), f"{name} is not paid for"
        self.drawn += 1
        return self.drawn

    def note(self, name: str, result: int) -> None:
        self.seen.setdefault(name, set()).add(int(result))
        assert len(self.seen[name]) == 1, f"{name} has two results for one charge"

    def look(self) -> None:
        """Whatever lies on the disk, somebody may have seen."""
        for name in ("count", "training"):
            path = self.folder / f"{name}.json"
            found = json.loads(path.read_text()) if path.exists() else {}
            if "result" in found:
                self.note(name, found["result"]["id"])
            for number, result in enumerate(found.get("ids", [])):
                self.note(f"block {number}", result)
        path = self.folder / "means.safetensors"
        if path.exists():
            self.note("means", safetensors.numpy.load_file(path)["id"][0])


def kill_at(patch: pytest.MonkeyPatch, at: int) -> None:
    """Makes the process die at its operation number `at`: before or after a line of the ledger or a kept file."""
    seen = itertools.count()

    def mortal(act: Callable[..., None]) -> Callable[..., None]:
        def wrapped(*arguments: Any) -> None:
            if next(seen) == at:
                raise Killed
            act(*arguments)
            if next(seen) == at:
                raise Killed

        return wrapped

    patch.setattr(Ledger, "spend", mortal(Ledger.spend))
    patch.setattr(Checkpoint, "save_bytes", mortal(Checkpoint.save_bytes))


def is_killed(fit: Fit, at: int) -> bool:
    """Whether one life was killed at this operation."""
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, at)
        try:
            fit.live()
        except Killed:
            return True
    return False


def finish(fit: Fit) -> None:
    try:
        fit.live()
    except SundogError as error:
        raise AssertionError(f"the fit cannot go on: {error}") from None
    assert fit.charges == WHOLE, "something was charged twice, or not at all"


def kill_everywhere(folder: Path) -> int:
    """Kills a fit at each of its operations, once and twice; it must finish with each measurement paid for once."""
    for at in range(100):
        for again in (None, 3):
            fit = Fit(folder / f"{at}-{again}")
            if not is_killed(fit, at):
                return at
            if again is not None:
                is_killed(fit, again)
            finish(fit)
    raise AssertionError("the fit does not end")


def bring_back_older_folders(folder: Path) -> int:
    """Restores each checkpoint that a newer charge followed: what it lacks was kept somewhere, and must be refused."""
    refused = 0
    for at in range(100):
        fit = Fit(folder / f"{at}")
        if not is_killed(fit, at):
            return refused
        if not fit.folder.exists():
            continue
        charged = len(fit.charges)
        shutil.copytree(fit.folder, folder / f"{at}" / "copy")
        finish(fit)
        shutil.rmtree(fit.folder)
        shutil.copytree(folder / f"{at}" / "copy", fit.folder)
        if charged < len(WHOLE) - 1:
            before = fit.drawn
            with pytest.raises(BudgetExceededError, match="measurements of the interrupted fit were lost"):
                fit.live()
            assert fit.charges == WHOLE
            assert fit.drawn - before <= 1, "which no one is shown"
            refused += 1
    raise AssertionError("the fit does not end")


def lose_each_file(folder: Path) -> None:
    """Deletes a kept result that later ones were built on: it is not measured again."""
    for name in ("count.json", "means.safetensors", "training.json"):
        fit = Fit(folder / name)
        finish(fit)
        (fit.folder / name).unlink()
        with pytest.raises(BudgetExceededError, match="measurements of the interrupted fit were lost"):
            fit.live()
        assert fit.charges == WHOLE


def cut_the_ledger(folder: Path) -> None:
    """Takes the charges of kept results away: they are not used."""
    for lines in range(1, len(WHOLE) + 1):
        fit = Fit(folder / str(lines))
        finish(fit)
        whole = fit.path.read_bytes().splitlines(keepends=True)
        fit.path.write_bytes(b"".join(whole[:lines]))
        with pytest.raises(LedgerError, match="the ledger lacks what the interrupted fit spent"):
            fit.live()
        assert fit.charges == WHOLE[: lines - 1]


def test_killed_at_every_operation(tmp_path: Path) -> None:
    assert kill_everywhere(tmp_path) > 20


def test_older_folders_are_refused(tmp_path: Path) -> None:
    assert bring_back_older_folders(tmp_path) > 10


def test_lost_files_are_refused(tmp_path: Path) -> None:
    lose_each_file(tmp_path)


def test_a_ledger_without_the_charges_of_kept_results_is_refused(tmp_path: Path) -> None:
    cut_the_ledger(tmp_path)


# --- the checks above find what is wrong ---


def measure_before_charging(patch: pytest.MonkeyPatch) -> None:
    def means(fit: Fit, ledger: Ledger) -> Arrays:
        found = {"id": np.array([fit.draw("means", PAIR)])}
        for charge in PAIR:
            ledger.spend(charge)
        return found

    patch.setattr(Fit, "means", means)


def charge_blocks_late(patch: pytest.MonkeyPatch) -> None:
    def train(fit: Fit, ledger: Ledger, checkpoint: Checkpoint) -> None:
        for number in range(3):
            fit.draw(f"block {number}", [BLOCK] * (number + 1))
            ledger.spend(BLOCK)

    patch.setattr(Fit, "train", train)


def ignore_what_was_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Checkpoint, "load_tensors", lambda *_: None)


def ignore_kept_stages(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "load_stage", lambda *_: None)


def keep_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Checkpoint, "save_tensors", lambda *_: None)


def keep_no_stage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "keep_stage", lambda *_, **__: None)


def charge_again_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "Prepaid", lambda ledger, _: Prepaid(ledger, []))


def charge_lost_blocks_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "count_paid_steps", lambda _, kept, *__: kept)


def overlook_newer_charges(patch: pytest.MonkeyPatch) -> None:
    original, list_own_charges = module.measure_once, module.list_own_charges

    def measure(*arguments: Any) -> Arrays:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(
                module, "list_own_charges", lambda ledger: [each for each in list_own_charges(ledger) if each in PAIR]
            )
            return original(*arguments)

    patch.setattr(module, "measure_once", measure)


def overlook_unused_charges(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Prepaid, "unused", property(lambda _: []))


def overlook_newer_blocks(patch: pytest.MonkeyPatch) -> None:
    def paid(training: Charge, kept: int, ledger: Ledger, checkpoint: Checkpoint) -> int:
        return sum(charge.count for charge in module.list_own_charges(ledger) if module.is_part_of(charge, training))

    patch.setattr(module, "count_paid_steps", paid)


CHECKS: dict[str, Callable[[Path], object]] = {
    "kill": kill_everywhere,
    "older": bring_back_older_folders,
    "lose": lose_each_file,
    "cut": cut_the_ledger,
}

TWICE = "has two results for one charge"
OVERCHARGED = "something was charged twice"


@pytest.mark.parametrize(
    ("bug", "check", "finding"),
    [
        (measure_before_charging, "kill", "means is not paid for"),
        (charge_blocks_late, "kill", "block 0 is not paid for"),
        (ignore_what_was_kept, "kill", f"means {TWICE}"),
        (ignore_kept_stages, "kill", f"count {TWICE}"),
        (keep_nothing, "kill", "the fit cannot go on"),
        (keep_no_stage, "kill", "the fit cannot go on"),
        (charge_again_after_a_crash, "kill", OVERCHARGED),
        (charge_lost_blocks_again, "kill", OVERCHARGED),
        (overlook_newer_charges, "older", f"means {TWICE}"),
        (overlook_newer_charges, "lose", f"means {TWICE}"),
        (overlook_unused_charges, "older", f"count {TWICE}"),
        (overlook_unused_charges, "lose", f"count {TWICE}"),
        (overlook_newer_blocks, "older", f"block 0 {TWICE}"),
        (overlook_newer_blocks, "lose", f"block 0 {TWICE}"),
        (overlook_newer_blocks, "cut", "DID NOT RAISE"),
    ],
)
def test_a_planted_bug_is_found(
    bug: Callable[[pytest.MonkeyPatch], None],
    check: str,
    finding: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bug(monkeypatch)
    with pytest.raises((AssertionError, Failed), match=finding):
        CHECKS[check](tmp_path)
