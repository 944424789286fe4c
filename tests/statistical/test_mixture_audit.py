"""An audit of parallel composition: what k disjoint parts tell of a record together, for the charge of one.

A record is there or not. Each part is measured, and somebody who sees all of it guesses: the statistic is how far the
part of the record, and every other part that it could change, moved in its direction. `Game` and the bounds are those
of the audit of a single training; the claim is what the ledger was charged.

Parallel composition needs three things, and each is broken once: a record must be in one part; which one, for every
record, must not depend on who else is there; and every part must have the whole noise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
import torch
from tests.statistical.test_training_audit import DELTA, LIKELY, SURE, Game, Outcome, epsilon_of_guesses
from tests.training.in_memory import InMemory
from torch import Tensor, nn

from sundog.errors import BudgetExceededError
from sundog.privacy.ledger import Ledger
from sundog.privacy.ledger_views import Disjoint
from sundog.privacy.mechanisms import gaussian_group_sums, gaussian_sum
from sundog.privacy.noise import NoiseSource
from sundog.training.batches.stacked_examples import StackedExamples
from sundog.training.clipping import Fixed
from sundog.training.groups import group_all
from sundog.training.stacked_modules import StackedLinear, stack
from sundog.training.step import PrivateStep

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Owner = Callable[[Floats], Integers]
Measure = Callable[[Floats, Owner, Ledger], Floats]

GAME = Game(noise_multiplier=0.5, sample_rate=1.0, steps=1)
SIGMA = GAME.noise_multiplier
PARTS = 4
RUNS = 3000
RECORD = np.array([30.0, 0.0, 0.0])  # far longer than the clip norm, and what nobody else is like
OTHERS = np.array([[-0.2, 0.5, 0.1], [0.0, 2.0, 0.0], [-4.0, 0.0, 3.0], [-0.1, 0.0, 0.7], [-1.0, 1.0, -1.0]])
WITH = np.concatenate([RECORD[None], OTHERS])


def as_claimed(noise: NoiseSource) -> Ledger:
    """A ledger that takes one measurement and would refuse a second."""
    return Ledger(epsilon=1.001 * GAME.claimed(), delta=DELTA, noise=noise)


def by_the_record(rows: Floats) -> Integers:
    """By nothing but the record itself."""
    return np.asarray(np.floor(7 * np.abs(rows).sum(axis=1)).astype(np.int64) % PARTS)


def by_rank(rows: Floats) -> Integers:
    """Parts of equal size, by order of the first column: one record more pushes others into the next part."""
    order = np.argsort(np.argsort(-rows[:, 0], kind="stable"))
    return np.asarray(order * PARTS // len(rows))


# --- three ways to measure all parts ---


def in_turn(rows: Floats, owner: Owner, ledger: Ledger) -> Floats:
    """Each part by itself, with a ledger that pays once."""
    parts, owners = Disjoint.split(ledger, PARTS), owner(rows)
    return np.array(
        [
            gaussian_sum(rows[owners == number], clip_norm=1.0, noise_multiplier=SIGMA, ledger=part, purpose="part")
            for number, part in enumerate(parts)
        ]
    )


def at_once(rows: Floats, owner: Owner, ledger: Ledger) -> Floats:
    """Counts and sums of all parts under one Gaussian, as a clustering has them; in units of its noise."""
    counts, sums = gaussian_group_sums(
        [(owner(rows), rows)],
        groups=PARTS,
        width=3,
        clip_norm=1.0,
        noise_multiplier=SIGMA,
        ledger=ledger,
        purpose="part",
    )
    weight = 3**-0.25
    return np.asarray(np.column_stack([sums, weight * counts]) / np.sqrt(1 + weight**2))


class Stacked:
    """One step of training on all parts at once; the gradient of a record is the record itself."""

    def __init__(self, noise: list[float] | None = None) -> None:
        layers = [nn.Linear(3, 1, bias=False) for _ in range(PARTS)]
        self.noise = None if noise is None else torch.tensor(noise)
        module = stack(layers)
        assert isinstance(module, StackedLinear)
        self.module = module
        self.batch = torch.full((PARTS,), 2.0)
        self.step = PrivateStep(
            module=module,
            private_loss=lambda batch: module(batch)[..., 0],
            groups=group_all(module),
            policy=Fixed(torch.ones(1)),
            optimizer=torch.optim.SGD(module.parameters(), lr=1.0),
            noise=NoiseSource(),
            noise_multiplier=SIGMA,
            expected_batch=self.batch,
        )

    def __call__(self, rows: Floats, owner: Owner, ledger: Ledger) -> Floats:
        ledger.spend(*GAME.plan(SIGMA))
        examples = StackedExamples(InMemory(torch.from_numpy(rows).float()), owner(rows), PARTS)
        nn.init.zeros_(self.module.weight)
        if self.noise is not None:
            self._weaken(self.noise)
        self.step([examples.take(np.arange(len(rows)))])
        found: Tensor = -self.module.weight.detach()[:, 0] * self.batch[:, None]
        return np.asarray(found.double().numpy())

    def _weaken(self, factors: Tensor) -> None:
        """Scales the noise of each part in the next step."""
        draw = NoiseSource.standard_normal_

        class Weak(NoiseSource):
            def standard_normal_(self, out: Tensor) -> Tensor:
                return draw(self, out).view(PARTS, -1).mul_(factors[:, None]).flatten()

        self.step.noise = Weak()


# --- the game ---


@cache
def direction(measure: Measure, owner: Owner) -> tuple[Floats, Floats]:
    """What the record changes in the answers, and the answers without it; both exact."""
    return tuple(_exact(measure, owner, rows) for rows in (WITH, OTHERS))  # type: ignore[return-value]


def _exact(measure: Measure, owner: Owner, rows: Floats) -> Floats:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    clipped, owners = rows / np.maximum(1, norms), owner(rows)
    if measure is at_once:
        weight = 3**-0.25
        clipped = np.column_stack([clipped, np.full(len(rows), weight)]) / np.sqrt(1 + weight**2)
    return np.array([clipped[owners == number].sum(axis=0) for number in range(PARTS)])


def play(measure: Measure, owner: Owner = by_the_record, runs: int = RUNS) -> Outcome:
    """Many runs, half of them with the record; the guess is by the likelihoods of all parts together."""
    there, absent = direction(measure, owner)
    moved = there - absent
    present = np.random.default_rng(0).random(runs) < 0.5
    noise = NoiseSource()
    answers = np.array([measure(WITH if here else OTHERS, owner, as_claimed(noise)) for here in present])
    ratios = np.tensordot(answers - (there + absent) / 2, moved, axes=([1, 2], [0, 1])) / SIGMA**2
    return Outcome(present, ratios)


def test_the_claim_allows_one_charge_and_no_second() -> None:
    ledger = as_claimed(NoiseSource())
    in_turn(WITH, by_the_record, ledger)
    assert len(ledger.charges) == 1
    for again in (in_turn, at_once, Stacked()):
        with pytest.raises(BudgetExceededError):
            again(WITH, by_the_record, ledger)


@pytest.mark.parametrize("measure", [in_turn, at_once, Stacked()], ids=["in turn", "at once", "a step of a stack"])
def test_all_parts_together_lose_what_one_of_them_may_and_no_more(measure: Measure) -> None:
    outcome = play(measure)
    assert epsilon_of_guesses(GAME, outcome, SURE) <= GAME.claimed()
    assert epsilon_of_guesses(GAME, outcome, LIKELY) >= 0.8 * GAME.claimed()


@pytest.mark.parametrize("measure", [in_turn, Stacked()], ids=["in turn", "a step of a stack"])
def test_owners_that_depend_on_the_others_lose_more(measure: Measure) -> None:
    """One record more moves others from part to part, and each of them tells."""
    assert epsilon_of_guesses(GAME, play(measure, by_rank, 800), SURE) > GAME.claimed()


def test_half_the_noise_in_one_part_loses_more() -> None:
    its_own = int(by_the_record(RECORD[None])[0])
    factors = [0.5 if number == its_own else 1.0 for number in range(PARTS)]
    assert epsilon_of_guesses(GAME, play(Stacked(factors), runs=800), SURE) > GAME.claimed()


def test_half_the_noise_where_the_record_is_not_tells_nothing() -> None:
    """The audit looks at the part of the record, and does not accuse for anything else."""
    its_own = int(by_the_record(RECORD[None])[0])
    factors = [1.0 if number == its_own else 0.5 for number in range(PARTS)]
    assert epsilon_of_guesses(GAME, play(Stacked(factors), runs=800), SURE) <= GAME.claimed()


def test_a_record_in_two_parts_that_is_paid_for_once_loses_more() -> None:
    """What a person with several records would do to a mixture, and why it is refused."""

    def both(rows: Floats, owner: Owner, ledger: Ledger) -> Floats:
        parts, owners = Disjoint.split(ledger, PARTS), owner(rows)
        members = [(owners == number) | (owners == (number + 1) % PARTS) for number in range(PARTS)]
        return np.array(
            [
                gaussian_sum(rows[member], clip_norm=1.0, noise_multiplier=SIGMA, ledger=part, purpose="part")
                for member, part in zip(members, parts, strict=True)
            ]
        )

    there, absent = (
        np.array([sums[number] + sums[(number + 1) % PARTS] for number in range(PARTS)])
        for sums in direction(in_turn, by_the_record)
    )
    present = np.random.default_rng(0).random(6000) < 0.5  # so many that the bound is about 14, ten deviations above
    noise = NoiseSource()
    answers = np.array([both(WITH if here else OTHERS, by_the_record, as_claimed(noise)) for here in present])
    ratios = np.tensordot(answers - (there + absent) / 2, there - absent, axes=([1, 2], [0, 1])) / SIGMA**2
    assert epsilon_of_guesses(GAME, Outcome(present, ratios), SURE) > GAME.claimed()
