"""A stopped training goes on: the same weights, the same charge, and nothing kept unpaid."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.bench import BLOCK, Bench, stop_after_save
from tests.training.toy import DELTA, EPSILON, PLAN, collect_tensors, make_toy

from sundog.errors import BudgetExceededError, LedgerError, SundogError
from sundog.privacy.checkpoint import Checkpoint
from sundog.privacy.events import Charge, Pure
from sundog.privacy.ledger import Ledger, merge_blocks
from sundog.training.training_plan import TrainingPlan


@pytest.fixture(scope="module")
def whole_training(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    bench = Bench(tmp_path_factory.mktemp("whole_training"))
    result = collect_tensors(bench.run())
    assert (bench.done, bench.paid) == (PLAN.steps, PLAN.steps)
    return result


def stop_at(step: int) -> Callable[[int], None]:
    def after(number: int) -> None:
        if number == step:
            raise KeyboardInterrupt

    return after


# --- bit for bit ---


@pytest.mark.parametrize("blocks", [1, 2, 3, 4])
def test_stopped_at_a_block_boundary_it_goes_on_bit_for_bit(
    blocks: int, whole_training: list[Any], tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stop_after_save(blocks))
    assert bench.done == bench.paid == blocks * BLOCK
    assert collect_tensors(bench.run()) == whole_training
    assert merge_blocks(Ledger.open(bench.path).charges) == [PLAN.make_charge(PLAN.steps)]


@pytest.mark.parametrize("step", [0, 1, 4, 8, 11])
def test_stopped_inside_a_block_it_runs_what_was_paid_for_again(
    step: int, whole_training: list[Any], tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(after=stop_at(step))
    assert bench.done == step // BLOCK * BLOCK
    assert bench.paid == bench.done + BLOCK
    assert collect_tensors(bench.run()) == whole_training
    assert merge_blocks(Ledger.open(bench.path).charges) == [PLAN.make_charge(PLAN.steps)]


@pytest.mark.parametrize("block", [1, 2, 5, 12])
def test_stopped_again_and_again_with_blocks_of_any_size(block: int, whole_training: list[Any], tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for step in (2, 5, 6, 6, 10):
        with pytest.raises(KeyboardInterrupt):
            bench.run(after=stop_at(step), block=block)
        assert bench.done <= bench.paid <= bench.done + 12
        block = block % 4 + 1
    assert collect_tensors(bench.run()) == whole_training
    assert bench.paid == PLAN.steps


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_it_goes_on_too(tmp_path: Path) -> None:
    results = []
    for name, steps in (("whole", ()), ("parts", (2, 7))):
        bench = Bench(tmp_path / name)
        for step in steps:
            with pytest.raises(KeyboardInterrupt):
                bench.run(after=stop_at(step), device="cuda")
        trained = bench.run(device="cuda")
        assert bench.paid == bench.done == PLAN.steps
        results.append([p.detach() for m in (trained.module, trained.generator) for p in m.parameters()])
    torch.testing.assert_close(*results)


def test_a_finished_training_is_not_run_again(whole_training: list[Any], tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.run()
    taken: list[int] = []
    assert collect_tensors(bench.run(after=taken.append)) == whole_training
    assert taken == []
    assert bench.paid == PLAN.steps


def test_without_a_seed_the_drawn_one_is_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stop_after_save(1), seed=None)
    state = bench.state()
    assert state is not None
    assert bench.run(seed=None).trainer.seed == state.seed


def test_two_trainings_of_one_fit_have_states_and_charges_of_their_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    other = TrainingPlan(PLAN.sample_rate, 5, PLAN.noise_multiplier, PLAN.expected_batch, purpose="another")
    bench.run()
    with pytest.raises(KeyboardInterrupt):
        bench.run(after=stop_at(4), plan=other)
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
def test_ctrl_c_finishes_what_was_paid_for(step: int, whole_training: list[Any], tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    said: list[str] = []

    def after(number: int) -> None:
        if number == step:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        bench.run(after=after, progress=lambda text, _: said.append(text))
    assert bench.done == bench.paid == (step // BLOCK + 1) * BLOCK
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert collect_tensors(bench.run()) == whole_training
    assert bench.paid == PLAN.steps


@pytest.mark.usefixtures("hears_ctrl_c")
def test_a_second_ctrl_c_stops_at_once(whole_training: list[Any], tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    def after(number: int) -> None:
        if number in (3, 4):
            signal.raise_signal(signal.SIGINT)
        assert number < 5

    with pytest.raises(KeyboardInterrupt):
        bench.run(after=after)
    assert (bench.done, bench.paid) == (3, 6)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert collect_tensors(bench.run()) == whole_training


@pytest.mark.usefixtures("hears_ctrl_c")
def test_an_existing_handler_is_kept(tmp_path: Path) -> None:
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    Bench(tmp_path).run(after=lambda number: signal.raise_signal(signal.SIGINT) if number == 4 else None)
    assert heard == [1]


def test_outside_the_main_thread_it_runs_too(tmp_path: Path, whole_training: list[Any]) -> None:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(collect_tensors(Bench(tmp_path).run())))
    thread.start()
    thread.join()
    assert results == [whole_training]


# --- ledgers and folders that do not belong together ---


def test_a_ledger_that_lacks_what_was_spent_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stop_after_save(2))
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
        bench.run(stop_after_save(1))
    shutil.copytree(folder, tmp_path / "copy")
    with pytest.raises(KeyboardInterrupt):
        bench.run(stop_after_save(2))
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
        bench.run(stop_after_save(1))
    checkpoint = Checkpoint.resume(bench.out, {})
    with pytest.raises(LedgerError, match="lacks what"):
        make_toy(Ledger.open(bench.path), checkpoint=checkpoint).trainer.run()
    checkpoint.release()


def test_a_resumed_training_is_refused_if_the_rest_was_spent_by_others(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(after=stop_at(4))
    Ledger.open(bench.path).spend(Charge(event=Pure(epsilon=2.68), purpose="somebody else"))
    taken: list[int] = []
    with pytest.raises(BudgetExceededError, match="refused: 'training'"):
        bench.run(after=taken.append)
    assert taken == []


def test_another_plan_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        bench.run(stop_after_save(1))
    other = TrainingPlan(PLAN.sample_rate, PLAN.steps, 2.1, PLAN.expected_batch)
    with pytest.raises(SundogError, match="had another plan") as caught:
        bench.run(plan=other)
    assert "\n" not in str(caught.value)
    assert bench.paid == BLOCK
