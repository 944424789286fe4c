"""Noise sources: never repeated by a fork, a copy or a pickle; seeded ones say so."""

import copy
import os
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from sundog.privacy.events import Charge, Pure
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import SECURE, SEEDED, NoiseSource

DRAWS: dict[str, Callable[[NoiseSource], Any]] = {
    "gaussian": lambda source: source.gaussian(8),
    "uniform": lambda source: source.uniform(8),
    "permutation": lambda source: source.permutation(200),
    "coin": lambda source: source.coin(np.full(200, -0.7)),
    "discrete_laplace": lambda source: source.discrete_laplace(epsilon=0.001, size=20),
    "discrete_gaussian": lambda source: source.discrete_gaussian(sigma=1000.0, size=20),
}
every_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


def in_forked_child(work: Callable[[], bytes]) -> bytes:
    """What a forked child makes of `work`; the child does nothing else."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writer, work())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        data = file.read()
    assert os.waitpid(child, 0)[1] == 0
    return data


@every_draw
def test_a_forked_child_draws_noise_of_its_own(draw: Callable[[NoiseSource], Any]) -> None:
    source = NoiseSource()
    draw(source)
    children = [in_forked_child(lambda: np.asarray(draw(source)).tobytes()) for _ in range(2)]
    mine = np.asarray(draw(source)).tobytes()
    assert len({mine, *children}) == 3
    assert len(mine) == len(children[0]) > 0


def test_a_grandchild_draws_noise_of_its_own() -> None:
    source = NoiseSource()

    def child() -> bytes:
        inherited = in_forked_child(lambda: source.gaussian(8).tobytes())
        return inherited + source.gaussian(8).tobytes()

    data = in_forked_child(child)
    parts = {data[:64], data[64:], source.gaussian(8).tobytes()}
    assert len(parts) == 3


def test_a_ledgers_noise_is_fork_safe_inside_a_run() -> None:
    run = Ledger(epsilon=1.0, delta=1e-5).run(epsilon=0.5, delta=1e-5)
    run.noise.gaussian(1)
    child = in_forked_child(lambda: run.noise.gaussian(8).tobytes())
    assert child != run.noise.gaussian(8).tobytes()


@pytest.mark.parametrize(
    "copier", [copy.copy, copy.deepcopy, *(lambda x, p=p: pickle.dumps(x, p) for p in range(pickle.HIGHEST_PROTOCOL))]
)
@pytest.mark.parametrize("source", [NoiseSource(), NoiseSource.seeded(3)], ids=["secure", "seeded"])
def test_a_source_is_never_copied(copier: Callable[[Any], Any], source: NoiseSource) -> None:
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        copier(source)


def test_a_ledger_is_never_copied_deeply_or_pickled() -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    for copier in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copier(ledger)
        with pytest.raises(TypeError):
            copier([ledger.run(epsilon=0.5, delta=1e-5)])


def test_a_shallow_copy_of_a_ledger_spends_from_the_same_budget() -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    twin = copy.copy(ledger)
    twin.spend(Charge(event=Pure(epsilon=0.6), purpose="x"))
    assert len(ledger.entries) == 1
    assert twin.noise is ledger.noise


@every_draw
def test_two_sources_and_two_draws_differ(draw: Callable[[NoiseSource], Any]) -> None:
    one, other = NoiseSource(), NoiseSource()
    draws = [np.asarray(draw(source)).tobytes() for source in (one, one, other, other)]
    assert len(set(draws)) == 4


@every_draw
def test_a_seed_repeats(draw: Callable[[NoiseSource], Any]) -> None:
    one, other, third = NoiseSource.seeded(7), NoiseSource.seeded(7), NoiseSource.seeded(8)
    first = np.asarray(draw(one))
    np.testing.assert_array_equal(first, draw(other))
    assert np.asarray(draw(third)).tobytes() != first.tobytes()


def test_a_generator_of_the_host_gets_more_than_a_seed_that_can_be_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 32 bits of a seed: with nothing but that, who tries them all knows what was drawn."""
    monkeypatch.setattr(NoiseSource, "draw_seed", lambda _: 5)
    states = []
    for source in (NoiseSource(), NoiseSource(), NoiseSource.seeded(1), NoiseSource.seeded(1)):
        generator = torch.Generator()
        source.seed_(generator)
        states.append(torch.rand(1000, generator=generator).numpy())
        assert stats.kstest(states[-1], "uniform").pvalue > 1e-7
    assert len({state.tobytes() for state in states}) == 3
    np.testing.assert_array_equal(states[2], states[3])


def test_a_state_that_is_kept_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sundog.privacy.noise._TWISTER", slice(16, 16 + 624 * 8))
    with pytest.raises(RuntimeError, match="keeps the state of its generator elsewhere"):
        NoiseSource().seed_(torch.Generator())


def test_a_source_says_what_it_is() -> None:
    assert (NoiseSource().private, NoiseSource().description) == (True, SECURE)
    assert (NoiseSource.seeded(0).private, NoiseSource.seeded(0).description) == (False, SEEDED)
    assert "NOT PRIVATE" in SEEDED


def test_threads_never_see_the_same_noise() -> None:
    source = NoiseSource()
    drawn: list[float] = []
    lock = threading.Lock()

    def work() -> None:
        for _ in range(50):
            values = source.gaussian(40).tolist()
            with lock:
                drawn.extend(values)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == len(drawn) == 8000


@pytest.mark.parametrize("shape", [0, 1, 7, (0,), (3, 4), (2, 0, 5), ()])
def test_shapes(shape: Any) -> None:
    source = NoiseSource()
    expected = (shape,) if isinstance(shape, int) else shape
    for values in (
        source.discrete_laplace(epsilon=0.5, size=shape),
        source.discrete_gaussian(sigma=2.0, size=shape),
    ):
        assert values.shape == expected
        assert values.dtype == np.int64
    assert source.gaussian(shape).shape == source.uniform(shape).shape == expected
    assert source.coin(np.zeros(expected)).shape == expected


def test_certain_and_impossible_coins() -> None:
    source = NoiseSource()
    assert source.coin(np.zeros(10_000)).all()
    assert not source.coin(np.full(10_000, -np.inf)).any()
    assert not source.coin(np.full(10_000, -800.0)).any()
