"""Pairs that single out a rare candidate, against loops over all pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from tests.auditing.copied_records import make_material

from sundog.auditing.attacks import singling_out
from sundog.auditing.attacks.singling_out import SinglingOut
from sundog.auditing.rarity import find_rarest
from sundog.auditing.threat_model import Knowledge, ThreatModel
from sundog.data.reading.read import encode, read
from sundog.data.records import Records, concatenate
from sundog.data.schema import Schema

Floats = npt.NDArray[np.float64]


def make_parts(kind: str, rows: int) -> tuple[Records, Records]:
    """Return candidates, and synthetic records that hold some of them."""
    material = make_material(kind, rows=rows)
    candidates, others = (encode(read(each, material.schema), material.schema) for each in material[1:3])
    return candidates, concatenate([candidates.take(np.arange(5)), others.take(np.arange(5, rows))])


def score(candidates: Records, synthetic: Records) -> Floats:
    return SinglingOut().score(ThreatModel({Knowledge.SYNTHETIC: synthetic}), candidates, np.random.default_rng(0))


def list_pairs(records: Records) -> list[set[object]]:
    """Return the pairs of values, or of items, of each record."""
    if records.schema.scalars:
        names = list(records.schema.scalars)
        rows = zip(*(records.codes[name].tolist() for name in names), strict=True)
        return [set(combinations(zip(names, row, strict=True), 2)) for row in rows]
    sets = records.codes["basket"].tocsr()
    return [set(combinations(sorted(sets[[row]].indices.tolist()), 2)) for row in range(len(records))]


@pytest.mark.parametrize("kind", ["table", "sets"])
def test_scores_count_pairs_that_only_one_candidate_has_and_the_release_shows(kind: str) -> None:
    candidates, synthetic = make_parts(kind, 80)
    ours, theirs = list_pairs(candidates), set().union(*list_pairs(synthetic))
    expected = [
        sum(pair in theirs and sum(pair in other for other in ours) == 1 for pair in ours[place])
        for place in find_rarest(candidates)
    ]
    found = score(candidates, synthetic)
    assert found[find_rarest(candidates)].tolist() == expected
    assert sum(expected) > 5
    assert np.isnan(found).sum() == 64


def test_of_many_items_the_least_common_are_paired(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates, synthetic = make_parts("sets", 80)
    whole = score(candidates, synthetic)
    monkeypatch.setattr(singling_out, "_MOST_ITEMS", 40)
    fewer = score(candidates, synthetic)
    rare = ~np.isnan(whole)
    assert (fewer[rare] <= whole[rare]).all()
    assert fewer[rare].sum() > 0


def test_there_is_nothing_to_pair_in_images_or_one_column() -> None:
    declared: dict[str, dict[str, object]] = {"x": {"type": "boolean"}, "y": {"type": "image", "shape": [2, 2]}}
    schema, obstacle = Schema.from_dict({"columns": declared}), "there are no two columns of single values, and no sets"
    assert SinglingOut().find_obstacle(ThreatModel(), schema) == obstacle
    more = Schema.from_dict({"columns": {**declared, "z": {"type": "set", "universe": 3, "max_size": 2}}})
    assert SinglingOut().find_obstacle(ThreatModel(), more) is None
