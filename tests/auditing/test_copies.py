"""Copies of rare members in synthetic data are flagged, of records of any kind; the same data without them are not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.auditing.copied_records import COPIED, MAKERS, copy_rarest, make_material

from sundog.auditing.auditor import audit
from sundog.auditing.finding import Verdict
from sundog.auditing.nearest_records import RecordDistance

PROVEN = 1.5  # what sixty copies prove at least, with as many non-members as members


@pytest.mark.parametrize("kind", MAKERS)
def test_copies_of_rare_members_are_flagged_though_averages_see_nothing(kind: str) -> None:
    material = copy_rarest(make_material(kind))
    found = audit(material.synthetic, members=material.members, nonmembers=material.nonmembers, schema=material.schema)
    (finding,) = found.findings
    assert finding.verdict is Verdict.LEAKS
    assert finding.bound >= PROVEN
    assert finding.details["right"] == finding.details["guesses"] >= 0.9 * COPIED
    assert 0.45 < found.similarity.value < 0.55
    average = next(attack for attack in found.membership.attacks if attack.name == "density-ratio")
    assert average.measures["auc"].value < 0.56
    assert len(found.worst) == 100
    if kind == "table":
        rarest = {(row.income, row.age) for row in material.synthetic[:COPIED].itertuples()}
        worst = [(record.values["income"], record.values["age"]) for record in found.worst[:COPIED]]
        assert sum(each in rarest for each in worst) >= 0.9 * COPIED
        place = found.worst[0].row - 1
        assert material.members.iloc[place].income == found.worst[0].values["income"]


@pytest.mark.parametrize("kind", MAKERS)
def test_the_same_data_without_copies_is_not_flagged(kind: str) -> None:
    material = make_material(kind)
    found = audit(material.synthetic, members=material.members, nonmembers=material.nonmembers, schema=material.schema)
    assert found.findings[0].verdict is Verdict.SILENT
    assert found.findings[0].bound == 0
    controls = [attack.control for attack in found.membership.attacks]
    assert all(control is not None and control.bound.epsilon == 0 for control in controls)
    assert not found.is_violated


@pytest.mark.parametrize("kind", ["series", "images"])
def test_shifted_copies_are_found_where_components_find_none(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema, members, nonmembers, synthetic = copy_rarest(make_material(kind))
    synthetic[:COPIED] = np.roll(synthetic[:COPIED], 1, axis=1)
    bounds = []
    for _ in range(2):
        found = audit(synthetic, members=members, nonmembers=nonmembers, schema=schema, attack="rare-density-ratio")
        bounds.append(found.findings[0].bound)
        one_way = RecordDistance.find_nearest_both_ways
        monkeypatch.setattr(RecordDistance, "find_nearest_both_ways", lambda *given, ways=one_way: ways(*given)[:, :1])
    assert bounds[0] > 0.5
    assert bounds[1] < bounds[0] - 0.3
