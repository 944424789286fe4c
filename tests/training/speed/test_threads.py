"""How many threads compute, and when it pays to compile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.training.toy import DELTA, EPSILON, make_toy

from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.rbm.network import RbmNetwork
from sundog.privacy.ledger import Ledger
from sundog.training import trainer as module
from sundog.training.speed.threads import ThreadChoice, count_allowed_threads, use_one_thread
from sundog.training.step import PrivateStep


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def run(choice: ThreadChoice, blocks: int, seconds: dict[int, float], *, used: float = 0.1) -> list[int]:
    """The threads of so many blocks of ten steps, where a step takes so long with one thread or with several."""
    counts = []
    for _ in range(blocks):
        counts.append(choice.count)
        choice.learn(steps=10, seconds=10 * seconds[choice.count], used=10 * used)
    return counts


def test_short_steps_stay_on_one_thread_however_slow_the_clock() -> None:
    assert set(run(ThreadChoice(8), 100, {1: 5.0}, used=0.001)) == {1}
    assert set(run(ThreadChoice(1), 100, {1: 5.0})) == {1}


def test_threads_are_kept_if_they_are_faster_and_only_then() -> None:
    choice = ThreadChoice(4)
    assert choice.limit(80) == 80
    assert run(choice, 3, {1: 0.1}) == [1, 1, 1]
    assert choice.is_trial
    assert choice.limit(80) == 10
    assert run(choice, 10, {1: 0.1, 4: 0.04}) == [4] * 10
    slow = ThreadChoice(4)
    assert run(slow, 40, {1: 0.1, 4: 3.0}).count(4) == 2  # tried once, and once again later


def test_other_load_reduces_the_threads_at_once() -> None:
    choice = ThreadChoice(2)
    run(choice, 8, {1: 0.1, 2: 0.06})
    assert choice.count == 2
    counts = run(choice, 20, {1: 0.15, 2: 4.0})
    assert counts[0] == 2
    assert counts[1:] == [1] * 19


def test_one_thread_leaves_things_as_they_were(two_threads: None) -> None:
    with use_one_thread():
        with use_one_thread():
            assert torch.get_num_threads() == 1
        assert (torch.get_num_threads(), count_allowed_threads()) == (1, 2)
    assert (torch.get_num_threads(), count_allowed_threads()) == (2, 2)
    with pytest.raises(KeyError), use_one_thread():
        raise KeyError
    assert torch.get_num_threads() == 2


def test_small_fits_and_samples_never_wait_for_a_second_thread(
    two_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[int] = set()
    for name in ("loss", "update_buffers", "has_small_logits"):
        plain: Any = getattr(RbmNetwork, name)

        def counted(*given: Any, plain: Any = plain) -> Any:
            seen.add(torch.get_num_threads())
            return plain(*given)

        monkeypatch.setattr(RbmNetwork, name, counted)
    schema = Schema.from_dict({"columns": {"a": {"type": "integer", "min": 0, "max": 4}, "b": {"type": "boolean"}}})
    data = pd.DataFrame({"a": np.arange(300) % 5, "b": np.arange(300) % 2 == 0})
    release = Synthesizer("rbm", epsilon=1.0, delta=1e-6, settings={"epochs": 1}).fit(data, schema).release_
    release.sample(100, seed=1)
    assert seen == {1}
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(("seconds", "pays"), [(0.001, False), (1e4, True)], ids=["short", "long"])
def test_a_step_is_compiled_where_that_saves_more_than_it_takes(
    seconds: float, pays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by how many steps there are: a thousand short ones are done before a compiler is."""
    compiled: list[int] = []
    monkeypatch.setattr(module, "is_worth_compiling", lambda _: True)
    monkeypatch.setattr(module, "_MEASURED_STEPS", 3)
    made = make_toy(Ledger(epsilon=EPSILON, delta=DELTA), largest_piece=1000, block=2)
    monkeypatch.setattr(PrivateStep, "compile", lambda *_: compiled.append(made.trainer.done))
    made.trainer.after = lambda _: setattr(made.trainer.step, "seconds", seconds * made.trainer.step.taken)
    monkeypatch.setattr(PrivateStep, "take_compiled", lambda self, piece: self.take([piece]))
    made.trainer.run()
    assert bool(compiled) is pays
    assert made.trainer.step.speed.compiled is pays
    assert made.trainer.done == made.trainer.plan.steps
    if pays:
        assert compiled[0] == 4  # between two blocks, once it is known how long a step takes


def test_a_compiler_that_fails_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise SundogError("the step could not be compiled (no space); check the C++ compiler")

    monkeypatch.setattr(module, "is_worth_compiling", lambda _: True)
    monkeypatch.setattr(module, "_MEASURED_STEPS", 1)
    monkeypatch.setattr(module, "_COMPILE_SECONDS", -1.0)
    monkeypatch.setattr(PrivateStep, "compile", fail)
    made = make_toy(Ledger(epsilon=EPSILON, delta=DELTA), largest_piece=1000, block=2)
    with pytest.warns(UserWarning, match="training continues without compiling: the step could not be compiled"):
        made.trainer.run()
    assert made.trainer.done == made.trainer.plan.steps
