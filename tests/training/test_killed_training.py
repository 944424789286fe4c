"""A training that is killed at any moment goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# One process imports everything once, and forks a child for each life of the training. What children share is the
# folder; the parent looks at it after each death.
LIVES_PROGRAM = """
import json, os, random, signal, sys, time
from pathlib import Path
import scipy.special, randomgen, torch._dynamo  # or every child would import them again
import tests.training.bench as t
from sundog.training.training_plan import TrainingPlan

root, mode, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
plan = TrainingPlan(0.05, int(sys.argv[4]), 2.0 * int(sys.argv[4]) ** 0.5, 20.0)

def life(bench, at=None):
    child = os.fork()
    if child:
        return child
    try:
        if at is not None:
            die_before_operation(str(root), at)
        bench.run(plan=plan, block=random.randint(1, 9) if at is None else 3)
    except BaseException as error:
        (root / "error.txt").write_text(repr(error))
        os._exit(1)
    os._exit(0)

def die_before_operation(folder, at):
    seen = 0
    def count():
        nonlocal seen
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
    def hook(event, values):
        if event in ("open", "os.rename", "os.truncate", "os.remove", "os.mkdir"):
            place = values[0] if not isinstance(values[0], int) else os.readlink(f"/proc/self/fd/{values[0]}")
            if isinstance(place, (str, bytes, os.PathLike)) and os.fsdecode(place).startswith(folder):
                count()
    fsync = os.fsync
    def dying(descriptor):  # before it is on the disk, and after
        count()
        fsync(descriptor)
        count()
    os.fsync = dying
    sys.addaudithook(hook)

def check(bench):
    if t.Checkpoint.locate_folder(bench.out).exists():
        assert bench.done <= bench.paid <= plan.steps, (bench.done, bench.paid)

def finished(bench):
    assert (bench.done, bench.paid) == (plan.steps, plan.steps)
    steps = [s["step"] for _, s in bench.state().parts["optimizer"]["state"].items()]
    assert {int(step) for step in steps} == {plan.steps}

def killed_at_random():
    kills = trainings = 0
    bench = t.Bench(root / "0", seeded=False)
    while kills < count:
        child = life(bench)
        time.sleep(random.uniform(0, 0.25))
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, -9), code
        kills += code == -9
        check(bench)
        if bench.done == plan.steps:
            finished(bench)
            trainings += 1
            bench = t.Bench(root / str(trainings), seeded=False)
    assert os.waitstatus_to_exitcode(os.waitpid(life(bench), 0)[1]) == 0
    finished(bench)
    return kills

def killed_at_every_operation():
    for at in range(1, 10**6):
        bench = t.Bench(root / str(at), seeded=False)
        code = os.waitstatus_to_exitcode(os.waitpid(life(bench, at), 0)[1])
        check(bench)
        if code == 0:
            finished(bench)
            return at
        assert code == -9, code
        for again in (at % 7 + 2, None) if at % 3 == 0 else (None,):  # killed a second time, and then left alone
            code = os.waitstatus_to_exitcode(os.waitpid(life(bench, again), 0)[1])
            assert code in (0, -9), code
            check(bench)
        assert code == 0
        finished(bench)

print(killed_at_random() if mode == "random" else killed_at_every_operation())
"""


def run_lives(tmp_path: Path, mode: str, count: int, steps: int) -> int:
    command = [sys.executable, "-c", LIVES_PROGRAM, str(tmp_path), mode, str(count), str(steps)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}  # CUDA must not be initialised before a fork
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, cwd=root, env=environment)
    error = tmp_path / "error.txt"
    assert done.returncode == 0, done.stderr + (error.read_text() if error.exists() else "")
    return int(done.stdout)


needs_fork = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs fork and /proc")


@needs_fork
def test_kill_nine_at_eight_moments(tmp_path: Path) -> None:
    assert run_lives(tmp_path, "random", 8, 100) == 8


@needs_fork
@pytest.mark.slow
def test_kill_nine_at_fifty_moments(tmp_path: Path) -> None:
    assert run_lives(tmp_path, "random", 50, 600) == 50


@needs_fork
def test_killed_before_every_operation_on_a_file(tmp_path: Path) -> None:
    assert run_lives(tmp_path, "every", 0, 6) > 15
