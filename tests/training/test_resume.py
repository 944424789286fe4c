"""A training that is stopped at any moment goes on: the same weights, the same charge, and nothing kept unpaid."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from tests.training.toy import DELTA, EPSILON, PLAN, Toy, everything, toy

from sundog.errors import BudgetExceededError, LedgerError, SundogError
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge, Pure
from sundog.privacy.ledger import Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource
from sundog.training.trainer import Trainer
from sundog.training.training_plan import TrainingPlan
from sundog.training.training_state import TrainingState, load_state, pack, save_state, unpack

BLOCK = 3


class Bench:
    """A ledger file and a checkpoint folder, in which one training after another can be started."""

    def __init__(self, folder: Path, *, seeded: bool = True) -> None:
        folder.mkdir(exist_ok=True)
        self.out, self.path, self.seeded = folder / "o.sundog", folder / "ledger", seeded
        if not self.path.exists():
            Ledger.create(self.path, epsilon=EPSILON, delta=DELTA)

    def run(self, prepare: Callable[[Trainer], None] | None = None, **options: Any) -> Toy:
        """One process, as it were: begins, or resumes what was left."""
        there = Checkpoint.locate_folder(self.out).exists()
        checkpoint = Checkpoint.resume(self.out, {}) if there else Checkpoint.begin(self.out, {})
        try:
            trained = toy(self.ledger(checkpoint.run), checkpoint=checkpoint, **{"block": BLOCK, **options})
            if prepare is not None:
                prepare(trained.trainer)
            trained.trainer.run()
        finally:
            checkpoint.release()
        return trained

    def ledger(self, run: str) -> Ledger:
        noise = NoiseSource.seeded(3) if self.seeded else None
        return Ledger.open(self.path, noise=noise).run(epsilon=EPSILON, delta=DELTA, name=run)

    def state(self) -> TrainingState | None:
        return load_state(Checkpoint(Checkpoint.locate_folder(self.out), ""), "training")

    @property
    def done(self) -> int:
        state = self.state()
        return 0 if state is None else state.done

    @property
    def paid(self) -> int:
        return sum(charge.count for charge in Ledger.open(self.path).charges)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    bench = Bench(tmp_path_factory.mktemp("uninterrupted"))
    result = everything(bench.run())
    assert (bench.done, bench.paid) == (PLAN.steps, PLAN.steps)
    return result


def stopping_after_save(count: int) -> Callable[[Trainer], None]:
    def prepare(trainer: Trainer) -> None:
        save, saved = trainer._save, 0

        def patched() -> None:
            nonlocal saved
            save()
            saved += 1
            if saved == count:
                raise KeyboardInterrupt

        trainer._save = patched  # type: ignore[method-assign]

    return prepare


def stopping_at(step: int) -> Callable[[int], None]:
    def after(number: int) -> None:
        if number == step:
            raise KeyboardInterrupt

    return after


# --- bit for bit ---


@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
def test_stopped_at_a_block_boundary_it_goes_on_bit_for_bit(
    blocks: int, uninterrupted: list[Any], tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stopping_after_save(blocks))
    assert bench.done == bench.paid == blocks * BLOCK
    assert everything(bench.run()) == uninterrupted
    assert merge_blocks(Ledger.open(bench.path).charges) == [PLAN.make_charge(PLAN.steps)]


@pytest.mark.parametrize("step", [0, 1, 4, 8, 11])
def test_stopped_inside_a_block_it_runs_what_was_paid_for_again(
    step: int, uninterrupted: list[Any], tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(after=stopping_at(step))
    assert bench.done == step // BLOCK * BLOCK
    assert bench.paid == bench.done + BLOCK
    assert everything(bench.run()) == uninterrupted
    assert merge_blocks(Ledger.open(bench.path).charges) == [PLAN.make_charge(PLAN.steps)]


@pytest.mark.parametrize("block", [1, 2, 5, 12])
def test_stopped_again_and_again_with_blocks_of_any_size(block: int, uninterrupted: list[Any], tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for step in (2, 5, 6, 6, 10):
        with pytest.raises(KeyboardInterrupt):
            bench.run(after=stopping_at(step), block=block)
        assert bench.done <= bench.paid <= bench.done + 12
        block = block % 4 + 1
    assert everything(bench.run()) == uninterrupted
    assert bench.paid == PLAN.steps


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_it_goes_on_too(tmp_path: Path) -> None:
    results = []
    for name, steps in (("whole", ()), ("parts", (2, 7))):
        bench = Bench(tmp_path / name)
        for step in steps:
            with pytest.raises(KeyboardInterrupt):
                bench.run(after=stopping_at(step), device="cuda")
        trained = bench.run(device="cuda")
        assert bench.paid == bench.done == PLAN.steps
        results.append([p.detach() for m in (trained.module, trained.generator) for p in m.parameters()])
    torch.testing.assert_close(*results)


def test_a_finished_training_is_not_run_again(uninterrupted: list[Any], tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run()
    taken: list[int] = []
    assert everything(bench.run(after=taken.append)) == uninterrupted
    assert taken == []
    assert bench.paid == PLAN.steps


def test_without_a_seed_the_drawn_one_is_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stopping_after_save(1), seed=None)
    state = bench.state()
    assert state is not None
    assert bench.run(seed=None).trainer.seed == state.seed


def test_two_trainings_of_one_fit_have_states_and_charges_of_their_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    other = TrainingPlan(PLAN.sample_rate, 5, PLAN.noise_multiplier, PLAN.expected_batch, purpose="another")
    bench.run()
    with pytest.raises(KeyboardInterrupt):
        bench.run(after=stopping_at(4), plan=other)
    bench.run()
    bench.run(plan=other)
    assert merge_blocks(Ledger.open(bench.path).charges) == [PLAN.make_charge(12), other.make_charge(5)]
    names = {path.name for path in Checkpoint.locate_folder(bench.out).iterdir()}
    assert names == {"fit.json", "training.safetensors", "another.safetensors"}


# --- Ctrl-C ---


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """A test run in the background is deaf to it."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals arrive in the main thread")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
@pytest.mark.parametrize("step", [0, 4, 11])
def test_ctrl_c_finishes_what_was_paid_for(step: int, uninterrupted: list[Any], tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    said: list[str] = []

    def after(number: int) -> None:
        if number == step:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        bench.run(after=after, progress=lambda text, _: said.append(text))
    assert bench.done == bench.paid == (step // BLOCK + 1) * BLOCK
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert everything(bench.run()) == uninterrupted
    assert bench.paid == PLAN.steps


@pytest.mark.usefixtures("hears_ctrl_c")
def test_a_second_ctrl_c_stops_at_once(uninterrupted: list[Any], tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def after(number: int) -> None:
        if number in (3, 4):
            signal.raise_signal(signal.SIGINT)
        assert number < 5

    with pytest.raises(KeyboardInterrupt):
        bench.run(after=after)
    assert (bench.done, bench.paid) == (3, 6)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert everything(bench.run()) == uninterrupted


@pytest.mark.usefixtures("hears_ctrl_c")
def test_a_handler_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    Bench(tmp_path).run(after=lambda number: signal.raise_signal(signal.SIGINT) if number == 4 else None)
    assert heard == [1]


def test_outside_the_main_thread_it_runs_too(tmp_path: Path, uninterrupted: list[Any]) -> None:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(everything(Bench(tmp_path).run())))
    thread.start()
    thread.join()
    assert results == [uninterrupted]


# --- ledgers and folders that do not belong together ---


def test_a_ledger_that_lacks_what_was_spent_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stopping_after_save(2))
    lines = bench.path.read_bytes().splitlines(keepends=True)
    bench.path.write_bytes(b"".join(lines[:-1]))
    before = bench.path.read_bytes()
    with pytest.raises(LedgerError, match="lacks what the interrupted fit spent") as caught:
        bench.run()
    assert "\n" not in str(caught.value)
    assert bench.path.read_bytes() == before


def test_an_older_copy_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Its steps were run and kept: the same charge cannot pay for another result."""
    bench = Bench(tmp_path)
    folder = Checkpoint.locate_folder(bench.out)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stopping_after_save(1))
    shutil.copytree(folder, tmp_path / "copy")
    with pytest.raises(KeyboardInterrupt):
        bench.run(stopping_after_save(2))
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "copy", folder)
    with pytest.raises(BudgetExceededError, match="measurements of the interrupted fit were lost") as caught:
        bench.run()
    assert "\n" not in str(caught.value)
    assert bench.paid == 3 * BLOCK


def test_what_other_runs_paid_is_not_taken_for_its_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    other = Ledger.open(bench.path).run(epsilon=EPSILON, delta=DELTA, name="other")
    other.spend(PLAN.make_charge(2))
    bench.run()
    assert bench.paid == PLAN.steps + 2


def test_a_training_in_a_ledger_that_was_opened_anew_is_no_resumption(tmp_path: Path) -> None:
    """Without the name of the run there is no telling who paid."""
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stopping_after_save(1))
    checkpoint = Checkpoint.resume(bench.out, {})
    with pytest.raises(LedgerError, match="lacks what"):
        toy(Ledger.open(bench.path), checkpoint=checkpoint).trainer.run()
    checkpoint.release()


def test_somebody_else_may_have_spent_what_was_left(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(after=stopping_at(4))
    Ledger.open(bench.path).spend(Charge(event=Pure(epsilon=2.68), purpose="somebody else"))
    taken: list[int] = []
    with pytest.raises(BudgetExceededError, match="refused: 'training'"):
        bench.run(after=taken.append)
    assert taken == []


def test_another_plan_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stopping_after_save(1))
    other = TrainingPlan(PLAN.sample_rate, PLAN.steps, 2.1, PLAN.expected_batch)
    with pytest.raises(SundogError, match="had another plan") as caught:
        bench.run(plan=other)
    assert "\n" not in str(caught.value)
    assert bench.paid == BLOCK


# --- the file ---


def test_any_optimiser_comes_back(tmp_path: Path) -> None:
    checkpoint = Checkpoint.begin(tmp_path / "o.sundog", {})
    for kind in (torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.LBFGS, torch.optim.ASGD):
        weights = torch.nn.Parameter(torch.randn(4, 3))
        optimizer: Any = kind([weights], lr=0.1)
        for _ in range(3):
            weights.grad = torch.randn(4, 3)
            optimizer.step(lambda weights=weights: weights.square().sum())
        save_state(checkpoint, "training", TrainingState({}, 3, 1, {"optimizer": optimizer.state_dict()}))
        state = load_state(checkpoint, "training")
        assert state is not None
        tensors: tuple[dict[str, Any], ...] = ({}, {})
        structures = [
            pack(value, kept)
            for value, kept in zip((optimizer.state_dict(), state.parts["optimizer"]), tensors, strict=True)
        ]
        assert structures[0] == structures[1]
        assert {n: t.tolist() for n, t in tensors[0].items()} == {n: t.tolist() for n, t in tensors[1].items()}
        again: Any = kind([weights], lr=0.5)
        again.load_state_dict(state.parts["optimizer"])
    checkpoint.remove()


def test_numbers_and_structures_come_back_as_they_were() -> None:
    value: dict[Any, Any] = {
        "a": [1, 2.5, (None, True)],
        7: {"x": (1e-300, float("inf"))},
        "t": torch.arange(3, dtype=torch.bfloat16),
    }
    tensors: dict[str, torch.Tensor] = {}
    again = unpack(json.loads(json.dumps(pack(value, tensors))), tensors)
    assert torch.equal(again.pop("t"), value.pop("t"))
    assert again == value
    with pytest.raises(TypeError, match="/f: a function cannot be saved"):
        pack({"f": harmed}, {})


def test_parameters_that_share_memory_are_kept(tmp_path: Path) -> None:
    checkpoint = Checkpoint.begin(tmp_path / "o.sundog", {})
    whole = torch.arange(10.0)
    save_state(checkpoint, "training", TrainingState({}, 1, 1, {"a": whole[:5], "b": whole[3:], "c": whole}))
    state = load_state(checkpoint, "training")
    assert state is not None
    assert state.parts["b"].tolist() == [3, 4, 5, 6, 7, 8, 9]
    checkpoint.remove()


def harmed(raw: bytes, harm: str) -> bytes:
    if harm == "bytes":
        return b"my shopping list"
    if harm == "empty":
        return b""
    if harm == "torn":
        return raw[: len(raw) // 2]
    tensors = safetensors.torch.load(raw)
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    state = json.loads(header["__metadata__"]["state"])
    if harm == "no metadata":
        return bytes(safetensors.torch.save(tensors))
    if harm == "no parts":
        state["parts"] = {"dict": []}
    elif harm == "tensor gone":
        tensors.pop("/module/0.weight")
    elif harm == "shape":
        tensors["/module/0.weight"] = tensors["/module/0.weight"][:, :1].contiguous()
    elif harm == "done":
        state["done"] = "3"
    elif harm == "version":
        state["version"] = 99
    elif harm == "kind":
        state["parts"] = {"code": "print()"}
    elif harm == "deep":
        return bytes(safetensors.torch.save(tensors, {"state": '{"tuple":[' * 100_000}))
    return bytes(safetensors.torch.save(tensors, {"state": json.dumps(state)}))


HARMS = [
    "bytes",
    "empty",
    "torn",
    "no metadata",
    "no parts",
    "tensor gone",
    "shape",
    "done",
    "version",
    "kind",
    "deep",
]


def test_a_damaged_state_is_one_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stopping_after_save(1))
    path = Checkpoint.locate_folder(bench.out) / "training.safetensors"
    raw = path.read_bytes()
    for harm in HARMS:
        path.write_bytes(harmed(raw, harm))
        with pytest.raises(SundogError, match=r"training\.safetensors: cannot be read; delete the folder") as caught:
            bench.run()
        assert "\n" not in str(caught.value)
        assert bench.paid == BLOCK
    path.write_bytes(raw)
    bench.run()


def test_half_written_states_are_removed(tmp_path: Path) -> None:
    """They hold results of steps that are run again: two results of one charge may not lie around."""
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stopping_after_save(1))
    left = Checkpoint.locate_folder(bench.out) / ".training.safetensors.0123abcd.partial"
    left.write_bytes(b"what a killed process was writing")
    bench.run()
    assert not left.exists()


def test_the_state_holds_no_example_and_no_batch(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run()
    raw = (Checkpoint.locate_folder(bench.out) / "training.safetensors").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    state = json.loads(header["__metadata__"]["state"])
    assert set(state) == {"version", "plan", "done", "seed", "parts"}
    assert {name for name, _ in state["parts"]["dict"]} == {"module", "optimizer", "bounds", "average", "kept"}


# --- killed ---

# One process imports everything once, and forks a child for each life of the training. What children share is the
# folder; the parent looks at it after each death.
_LIVES = """
import json, os, random, signal, sys, time
from pathlib import Path
import scipy.special, randomgen, torch._dynamo  # or every child would import them again
import tests.training.test_resume as t
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


def lives(tmp_path: Path, mode: str, count: int, steps: int) -> int:
    command = [sys.executable, "-c", _LIVES, str(tmp_path), mode, str(count), str(steps)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}  # CUDA must not be initialised before a fork
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, cwd=root, env=environment)
    error = tmp_path / "error.txt"
    assert done.returncode == 0, done.stderr + (error.read_text() if error.exists() else "")
    return int(done.stdout)


needs_fork = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs fork and /proc")


@needs_fork
def test_kill_nine_at_eight_moments(tmp_path: Path) -> None:
    assert lives(tmp_path, "random", 8, 100) == 8


@needs_fork
@pytest.mark.slow
def test_kill_nine_at_fifty_moments(tmp_path: Path) -> None:
    assert lives(tmp_path, "random", 50, 600) == 50


@needs_fork
def test_killed_before_every_operation_on_a_file(tmp_path: Path) -> None:
    assert lives(tmp_path, "every", 0, 6) > 15
