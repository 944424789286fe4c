"""A fit that is killed at any moment leaves a valid ledger, a complete release or none, and can be resumed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.cli.calling import Sundog

from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.release.release import Release

PROGRAM = Path(sys.executable).with_name("sundog")
LEARNED: dict[str, dict[str, Any]] = {"n": {"type": "integer", "learn": True}, "b": {"type": "boolean"}}
PLAIN = ("--model", "independent")  # the quickest
FIT = ("fit", "data.csv", "--schema", "s.yaml", "--epsilon", "2", "-o", "o.sundog", *PLAIN)
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

pytestmark = pytest.mark.usefixtures("remembered_answers")


def prepare(folder: Path, *, records: int = 3000) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame({"n": np.arange(records) % 10, "b": np.arange(records) % 2 == 0})
    frame.to_csv(folder / "data.csv", index=False)
    Schema.from_dict({"columns": LEARNED}).save(folder / "s.yaml")
    return folder


def find_ledger(folder: Path) -> Path:
    own = folder / "o.sundog.partial" / "ledger.jsonl"
    return own if own.exists() else folder / "all.ledger"


def check_what_was_left(folder: Path) -> None:
    """Check that the ledger opens, and that an existing release is complete and was charged by exactly one run."""
    runs: dict[str, list[Charge]] = {}
    if find_ledger(folder).exists():
        ledger = Ledger.open(find_ledger(folder))
        assert ledger.compute_spent() <= 2.0
        for entry in ledger.entries:
            runs.setdefault(entry.run, []).extend(entry.charges)
    if (folder / "o.sundog").exists():
        release = Release.load(folder / "o.sundog")
        assert release.verify() == []
        if runs:
            assert release.certificate.charges in runs.values()
            # another run may have been charged for a count, but stops when it finds the release
            assert sum(any("marginal" in charge.purpose for charge in run) for run in runs.values()) == 1


# --- killed before each operation on a file ---

# One process imports everything once. Each of its children is killed before its k-th operation on a file in its
# folder, and another child then resumes from what was left.
_KILLER = """
import json, os, shutil, signal, sys
import sundog.fit.fitting, sundog.fit.synthesizer, sundog.models.independent.independent
import sundog.privacy.noise, sundog.release.release
from sundog.cli.main import _run

root, every, arguments = sys.argv[1], int(sys.argv[2]), sys.argv[3:]

# The accountant takes most of the time, and gives the same results in every child.
from tests.remembered import remember_answers
remember_answers()

EVENTS = {"open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}

def forked(folder, arguments, killed_at=None):
    child = os.fork()
    if not child:
        os.chdir(folder)
        sys.stdout = open(os.devnull, "w")
        os.dup2(os.open("stderr.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        seen = 0
        def hook(event, values):
            nonlocal seen
            if event in EVENTS and isinstance(values[0], (str, bytes, int, os.PathLike)):
                place = values[0] if not isinstance(values[0], int) else os.readlink(f"/proc/self/fd/{values[0]}")
                place = os.path.abspath(os.fsdecode(place))
                if place.startswith(folder) and not place.endswith((".csv", ".yaml", ".txt")):
                    seen += 1
                    if seen == killed_at:
                        os.kill(os.getpid(), signal.SIGKILL)
        if killed_at is not None:
            sys.addaudithook(hook)
        code = _run(arguments)
        sys.stderr.flush()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def copied(name):
    folder = os.path.join(root, name)
    os.mkdir(folder)
    for file in ("data.csv", "s.yaml"):
        shutil.copy(os.path.join(root, file), folder)
    return folder

# Run once in this process, so that the children inherit all imports.
os.chdir(copied("warm"))
_run([*arguments, "--json"])

outcomes = []
for k in range(1, 200, every):
    folder = copied(f"killed{k}")
    code = forked(folder, arguments, killed_at=k)
    if code == 0:
        break
    left = os.path.join(root, f"left{k}")
    shutil.copytree(folder, left)
    partial, release = (os.path.exists(os.path.join(folder, name)) for name in ("o.sundog.partial", "o.sundog"))
    if partial or not release:  # otherwise it was killed after everything was done
        again = forked(folder, [*arguments, *["--resume"] * partial])
        said = open(os.path.join(folder, "stderr.txt")).read().splitlines()
    else:
        again, said = 0, []
    outcomes.append({"k": k, "killed": code, "left": left, "folder": folder, "again": again, "said": said})
json.dump(outcomes, open(os.path.join(root, "outcomes.json"), "w"))
"""


def kill_before_operations(root: Path, every: int, *arguments: str) -> list[dict[str, Any]]:
    """Return what killed fits left behind, and how the fits that resumed from it ended."""
    command = [sys.executable, "-c", _KILLER, str(root), str(every), *arguments]
    here = Path(__file__).parents[2]  # the folder of `tests`
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=ONE_THREAD, timeout=1500, cwd=here)
    found: list[dict[str, Any]] = json.loads((root / "outcomes.json").read_text())
    return found


@pytest.mark.parametrize(
    ("ledger", "every"),
    [
        ((), 1),
        (("--ledger", "all.ledger"), 3),
        pytest.param(("--ledger", "all.ledger"), 1, marks=pytest.mark.slow),
    ],
    ids=["own ledger", "shared ledger, every third", "shared ledger"],
)
def test_a_fit_killed_before_any_operation_on_a_file_can_be_resumed(
    ledger: tuple[str, ...], every: int, tmp_path: Path
) -> None:
    root = prepare(tmp_path)
    outcomes = kill_before_operations(root, every, *FIT, *ledger)
    assert len(outcomes) > 25 / every
    assert {outcome["killed"] for outcome in outcomes} == {-signal.SIGKILL}
    for outcome in outcomes:
        check_what_was_left(Path(outcome["left"]))
    for outcome in outcomes:
        _check_that_no_charge_is_lost(outcome)
    for outcome in outcomes:
        _check_that_it_was_resumed(outcome)


def _check_that_no_charge_is_lost(outcome: dict[str, Any]) -> None:
    left, folder = Path(outcome["left"]), Path(outcome["folder"])
    if not find_ledger(left).exists():
        return
    before = list(Ledger.open(find_ledger(left)).charges)
    after: list[Any] = []
    if find_ledger(folder).exists():
        after = list(Ledger.open(find_ledger(folder)).charges)
    elif outcome["again"] == 0:
        after = Release.load(folder / "o.sundog").certificate.charges
    assert after[: len(before)] == before, outcome


def _check_that_it_was_resumed(outcome: dict[str, Any]) -> None:
    """Check that it finished, or said why not in one line, without advice that cannot work."""
    complaints = [line for line in outcome["said"] if line.startswith("sundog: ")]
    assert not any("Traceback" in line for line in outcome["said"]), outcome
    if outcome["again"] == 0:
        assert complaints == []
        assert (Path(outcome["folder"]) / "o.sundog").exists()
        check_what_was_left(Path(outcome["folder"]))
    else:
        assert outcome["again"] == 2, outcome
        assert len(complaints) == 1, outcome
        assert "there is nothing to resume" not in complaints[0], outcome


# --- killed at a random moment, by another process ---


def _kill_at(folder: Path, moment: float) -> str:
    prepare(folder)
    process = subprocess.Popen(
        [str(PROGRAM), *FIT, "--ledger", "all.ledger"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ONE_THREAD,
    )
    time.sleep(moment)
    process.kill()
    process.wait()
    return "finished" if process.returncode == 0 else "killed"


def _check_and_resume(folder: Path, sundog: Sundog, monkeypatch: pytest.MonkeyPatch) -> None:
    check_what_was_left(folder)
    before = _list_charges(folder / "all.ledger")
    monkeypatch.chdir(folder)
    resume = ["--resume"] if (folder / "o.sundog.partial").exists() else []
    called = sundog(*FIT, "--ledger", "all.ledger", *resume)
    if called.code != 0:
        assert called.code == 2, called
        assert len([line for line in called.err.splitlines() if line.startswith("sundog: ")]) == 1, called
    assert _list_charges(folder / "all.ledger")[: len(before)] == before
    check_what_was_left(folder)


def _list_charges(ledger: Path) -> list[Any]:
    """Return the charges in a ledger; none if the fit was killed before the ledger existed."""
    return list(Ledger.open(ledger).charges) if ledger.exists() else []


def _kill_many(count: int, folder: Path, sundog: Sundog, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [2.0 * (i + random.random()) / count for i in range(count)]
    folders = [folder / str(i) for i in range(count)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(_kill_at, folders, moments))
    for killed in folders:
        _check_and_resume(killed, sundog, monkeypatch)


def test_a_fit_killed_at_six_random_moments_can_be_resumed(
    sundog: Sundog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kill_many(6, tmp_path, sundog, monkeypatch)


@pytest.mark.slow
def test_a_fit_killed_at_a_hundred_random_moments_can_be_resumed(
    sundog: Sundog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kill_many(100, tmp_path, sundog, monkeypatch)


# --- Ctrl-C ---


def _has_open(process: subprocess.Popen[str], path: Path) -> bool:
    """Return whether the process has the file open, and so is reading it."""
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            if link.readlink() == path:
                return True
        except OSError:
            continue
    return False


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("large"), records=2_000_000)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to see what a process is doing")
@pytest.mark.parametrize("stage", ["reading", "after reading"])
def test_ctrl_c_is_one_line_and_leaves_no_half_file(stage: str, large: Path, tmp_path: Path, sundog: Sundog) -> None:
    folder = tmp_path / "here"
    shutil.copytree(large, folder)
    process = subprocess.Popen(
        [str(PROGRAM), *FIT],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ONE_THREAD,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  shells ignore SIGINT in background jobs
    )
    try:
        said = ""
        if stage == "reading":
            while not _has_open(process, folder / "data.csv"):
                assert process.poll() is None
                time.sleep(0.002)
        else:
            assert process.stderr is not None
            said = process.stderr.readline()  # one line after each stage
            assert said.startswith("reading: ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    complaints = [line for line in (said + err).splitlines() if line.startswith("sundog: ")]
    assert len(complaints) == 1, err
    assert complaints[0].startswith("sundog: interrupted")
    assert "Traceback" not in err
    assert not (folder / "o.sundog").exists()
    names = {path.name for path in folder.iterdir()}
    assert names in ({"data.csv", "s.yaml"}, {"data.csv", "s.yaml", "o.sundog.partial"})
    if "o.sundog.partial" in names:
        assert Ledger.open(folder / "o.sundog.partial" / "ledger.jsonl").charges != ()
    check_what_was_left(folder)


def test_ctrl_c_while_sampling_leaves_no_half_file(made: Path, tmp_path: Path) -> None:
    release = Release.load(made / "people.sundog")
    out = tmp_path / "a.csv"

    def stop(stage: str, done: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release.write(out, 1000, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_an_error_while_writing_the_release_is_one_line(
    sundog: Sundog, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    called = sundog("fit", "people.csv", "--schema", "people.yaml", "--epsilon", "1", "-o", "o.sundog", *PLAIN)
    assert called.code == 2
    assert len([line for line in called.err.splitlines() if line.startswith("sundog: ")]) == 1
    assert "No space left on device" in called.err
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert not Path("o.sundog").exists()
    with pytest.raises(SundogError):
        Release.load("o.sundog")
