"""Public records as the start of a model of marginals: they help where they are alike, and do no harm where not."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from tests.contracts.material import random_records, schema_of

from sundog.data.records import Records
from sundog.errors import BrokenRulesError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.marginals.configuration import MarginalsConfiguration
from sundog.models.marginals.marginals import Marginals
from sundog.models.marginals.public_prior import fit_public_prior
from sundog.models.marginals.released import PUBLIC_RECORDS
from sundog.models.protocol import FitContext
from sundog.privacy.ledger import Budget, Ledger
from sundog.privacy.noise import NoiseSource

NAMES = "abcd"


def make_chain(n: int, *, shift: int = 1, seed: int = 0) -> Records:
    """Return records in which each column is most often the one before it, plus a shift."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 5, n)]
    for _ in NAMES[1:]:
        follows = rng.random(n) < 0.8
        columns.append(np.where(follows, (columns[-1] + shift) % 5, rng.integers(0, 5, n)))
    schema = schema_of({name: {"type": "integer", "min": 0, "max": 4} for name in NAMES})
    return Records(schema, {name: own.astype(np.uint8) for name, own in zip(NAMES, columns, strict=True)}, n)


def fit(private: Records, public: Records | None, *, epsilon: float) -> Marginals:
    configuration = MarginalsConfiguration(public=public is not None)
    plan = Marginals.plan(private.schema, Budget(epsilon, 1e-6), configuration, already=(), records=None)
    ledger = Ledger(epsilon=epsilon, delta=1e-6, noise=NoiseSource.seeded(1))
    return Marginals.fit(private, plan, ledger, FitContext(seed=0, public=public))


def measure_distance(real: Records, model: Marginals) -> float:
    """Return the mean total variation of all neighbours in the chain."""
    drawn = model.sample(50_000, np.random.default_rng(0), {})
    found = []
    for one, other in itertools.pairwise(NAMES):
        tables = [
            np.bincount(codes[one].astype(int) * 5 + codes[other], minlength=25) / len(codes[one])
            for codes in (real.codes, drawn)
        ]
        found.append(0.5 * np.abs(tables[0] - tables[1]).sum())
    return float(np.mean(found))


def test_pairs_of_public_records_are_kept_where_the_budget_is_small() -> None:
    private, public = make_chain(500), make_chain(2000, seed=1)
    distances = [measure_distance(private, fit(private, given, epsilon=0.1)) for given in (None, public)]
    assert distances[1] < 0.7 * distances[0]


def test_what_only_public_records_say_is_not_called_measured() -> None:
    model = fit(make_chain(500), make_chain(2000, seed=1), epsilon=0.1)
    assert [clique for clique in model.potentials if len(clique) == 2]
    assert model.list_measured() == []


def test_pairs_that_differ_from_public_records_are_measured() -> None:
    private, misleading = make_chain(20_000, shift=2), make_chain(2000, seed=1)
    model = fit(private, misleading, epsilon=2.0)
    assert {*model.list_measured()} >= {(0, 1), (1, 2), (2, 3)}
    assert measure_distance(private, model) < 0.02


def test_columns_without_relations_have_no_pairs() -> None:
    rng = np.random.default_rng(0)
    values = [rng.integers(0, 5, 3000) for _ in NAMES]
    found = fit_public_prior(values, [5] * 4, rules={}, cells=10_000, rng=rng)
    assert all(len(clique) == 1 for clique in found)


def test_potentials_are_those_of_the_public_records() -> None:
    public = make_chain(20_000)
    values = [public.codes[name] for name in NAMES]
    found = fit_public_prior(values, [5] * 4, rules={}, cells=10_000, rng=np.random.default_rng(0))
    assert {clique for clique in found if len(clique) == 2} >= {(0, 1), (1, 2), (2, 3)}
    odds = found[0, 1][0, 1] - found[0, 1][0, 3] - found[0, 1][3, 1] + found[0, 1][3, 3]
    assert odds == pytest.approx(math.log((0.84 / 0.04) * (0.04 / 0.04)), abs=0.5)


@pytest.mark.parametrize("clusters", [1, 2])
def test_the_certificate_says_so(clusters: int) -> None:
    private, public = make_chain(400), make_chain(300, seed=1)
    frames = [pd.DataFrame({name: each.codes[name].astype(int) for name in NAMES}) for each in (private, public)]
    synthesizer = Synthesizer("marginals", 1.0, 1e-6, clusters=clusters, public=frames[1])
    release = synthesizer.fit(frames[0], private.schema).release_
    assert PUBLIC_RECORDS in release.certificate.assumed_public
    assert release.verify() == []


def test_tables_without_single_values_ignore_public_records() -> None:
    schema = schema_of({"items": {"type": "set", "universe": ["a", "b"], "max_size": 2}})
    records = random_records(schema, 30)
    assert fit(records, records, epsilon=1.0).potentials == {}


def test_public_records_that_break_a_rule_are_refused() -> None:
    schema = schema_of({name: {"type": "integer", "min": 0, "max": 4} for name in "ab"}, rules=["a <= b"])
    private, public = pd.DataFrame({"a": [0, 1], "b": [2, 3]}), pd.DataFrame({"a": [0, 4, 1], "b": [2, 1, 3]})
    synthesizer = Synthesizer("marginals", 1.0, 1e-6, public=public)
    with pytest.raises(BrokenRulesError, match="1 of 3 rows breaks the rule `a <= b`, row 2"):
        synthesizer.fit(private, schema)
