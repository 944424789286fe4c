"""The critic in the curator's file is asked only if it is given, and about its own schema."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.auditing.copied_records import TABLE, make_table

from sundog.auditing.auditor import audit
from sundog.errors import ArgumentError, DataError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.gan.saved_critic import Critic
from sundog.release.curator_file import load_curator_file


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gan") / "table.sundog"
    settings = {"epochs": 1, "hidden": 8, "batch": 50}
    table = make_table(np.random.default_rng(0), 200)
    Synthesizer("gan", epsilon=5.0, delta=1e-5, seed=0, settings=settings).fit(table, TABLE, out=path)
    return path


def test_the_score_is_that_of_the_critic(released: Path) -> None:
    members, nonmembers = (make_table(np.random.default_rng(seed), 200) for seed in (0, 1))
    private = released.with_name(released.name + ".private")
    found = audit(released, members=members, nonmembers=nonmembers, private=private, attack="critic")
    (attack,) = found.membership.attacks
    assert attack.name == "critic"
    assert attack.scored == 400
    model, schema, state = load_curator_file(private)
    assert (model, list(schema.columns)) == ("gan", list(TABLE.columns))
    assert Critic(schema, state) is not None
    with pytest.raises(ArgumentError, match="attack 'critic' cannot be run: needs the private file of the fit"):
        audit(released, members=members, nonmembers=nonmembers, attack="critic")
    with pytest.raises(DataError, match="is not the curator's part of a release"):
        audit(released, members=members, nonmembers=nonmembers, private=released, attack="critic")
