"""Marginals of three columns: measured where the table is narrow, and where no pair explains what they show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.contracts.material import schema_of

from sundog.data.records import Records
from sundog.models.marginals.configuration import MarginalsConfiguration
from sundog.models.marginals.marginals import Marginals
from sundog.models.marginals.marginals_plan import plan_marginals
from sundog.models.protocol import FitContext
from sundog.privacy.events import DiscreteGaussian, Pure
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource

BUDGET = Budget(2.0, 1e-6)
BIT = {"type": "integer", "min": 0, "max": 1}


def make_bits(count: int, *, parity: bool) -> Records:
    """Return bits of which the third is the parity of the first two, or equal to the first; all others are random."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (count, 4000)).astype(np.uint8)
    bits[2] = bits[0] ^ bits[1] if parity else bits[0]
    schema = schema_of({f"bit{place}": BIT for place in range(count)})
    return Records(schema, {f"bit{place}": own for place, own in enumerate(bits)}, 4000)


def fit(records: Records, order: int | None = None) -> tuple[Marginals, list[str]]:
    """Return the model, and what was said meanwhile."""
    configuration, said = MarginalsConfiguration(order=order), []
    plan = Marginals.plan(records.schema, BUDGET, configuration, already=(), records=None)
    ledger = Ledger(epsilon=BUDGET.epsilon, delta=BUDGET.delta, noise=NoiseSource.seeded(1))
    context = FitContext(seed=0, progress=lambda stage, _: said.append(stage))
    return Marginals.fit(records, plan, ledger, context), said


def measure_parity(model: Marginals) -> float:
    """Return the share of records whose third bit is the parity of the first two."""
    drawn = model.sample(2000, np.random.default_rng(0), {})
    return float(np.mean(drawn["bit2"] == drawn["bit0"] ^ drawn["bit1"]))


def test_parity_of_three_columns_is_learned_in_a_narrow_table() -> None:
    model, said = fit(make_bits(4, parity=True))
    assert (0, 1, 2) in model.potentials
    assert measure_parity(model) > 0.99
    assert "1 pairs or triples of columns were measured\n" in said


def test_in_a_wider_table_it_is_said_that_pairs_cannot_show_it() -> None:
    model, said = fit(make_bits(6, parity=True))
    assert measure_parity(model) == pytest.approx(0.5, abs=0.1)
    assert any(stage.startswith("no pair of columns stood out") and "such as parity" in stage for stage in said)


def test_triples_can_be_asked_for_in_a_wider_table() -> None:
    model, _ = fit(make_bits(6, parity=True), order=3)
    assert measure_parity(model) > 0.99


def test_a_triple_is_not_measured_for_what_a_pair_explains() -> None:
    model, _ = fit(make_bits(4, parity=False))
    assert [clique for clique in model.potentials if len(clique) > 1] == [(0, 2)]


def test_only_the_last_round_scores_triples_and_pays_for_each() -> None:
    schema = schema_of({f"bit{place}": BIT for place in range(5)})
    first, last = plan_marginals(schema, BUDGET, MarginalsConfiguration(), ()).rounds
    assert (first.order, last.order) == (2, 3)
    assert isinstance(first.choice.event, DiscreteGaussian)
    assert (first.choice.count, last.choice.count) == (10, 20)


def test_where_there_are_too_many_candidates_for_scores_there_are_no_triples() -> None:
    """The exponential mechanism has no noisy scores of pairs, by which triples are judged."""
    schema = schema_of({f"bit{place}": BIT for place in range(60)})
    last = plan_marginals(schema, BUDGET, MarginalsConfiguration(order=3), ()).rounds[-1]
    assert isinstance(last.choice.event, Pure) or last.choice.count <= math.comb(60, 2)
    assert last.order == 2
