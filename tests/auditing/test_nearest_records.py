"""Distances of records, against loops over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.auditing.copied_records import MAKERS, make_material

from sundog.auditing import nearest_records
from sundog.auditing.nearest_records import RecordDistance
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema


def make_records(kind: str, rows: int, seed: int) -> Records:
    material = make_material(kind, rows=rows, seed=seed)
    return encode(read(material.members, material.schema), material.schema)


def test_distances_of_scalars_are_those_of_a_loop() -> None:
    these, those = make_records("table", 30, 0), make_records("table", 40, 1)
    found = RecordDistance.fit(these.schema, those).find_nearest(these, those)
    columns = these.schema.scalars

    def compare(i: int, j: int) -> float:
        total = 0.0
        for name, column in columns.items():
            a, b = int(these.codes[name][i]), int(those.codes[name][j])
            total += ((a - b) / (column.lattice_size - 1)) ** 2 if column.is_numeric else 2.0 * (a != b)
        return float(total**0.5)

    expected = [min(compare(i, j) for j in range(40)) for i in range(30)]
    assert found == pytest.approx(expected, abs=2e-3)


def test_distances_of_sets_are_those_of_jaccard() -> None:
    these, those = make_records("sets", 20, 0), make_records("sets", 30, 1)
    found = RecordDistance.fit(these.schema, those).find_nearest(these, those)
    (ours, theirs) = (
        [set(each.codes["basket"][[row]].indices.tolist()) for row in range(len(each))] for each in (these, those)
    )
    expected = [min(1 - len(a & b) / max(1, len(a | b)) for b in theirs) for a in ours]
    assert found == pytest.approx(expected, abs=1e-5)


def test_two_empty_sets_are_equal() -> None:
    schema = Schema.from_dict({"columns": {"basket": {"type": "set", "universe": 3, "max_size": 2}}})
    empty = encode(read([[], []], schema), schema)
    assert RecordDistance.fit(schema, empty).find_nearest(empty, empty).tolist() == [0, 0]


@pytest.mark.parametrize("kind", MAKERS)
def test_a_copy_is_nearest_and_chunks_change_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    those = make_records(kind, 300, 0)
    these = those.take(np.arange(50))
    distance = RecordDistance.fit(those.schema, those)
    whole = distance.find_nearest_both_ways(these, those)
    assert whole.shape == (50, 2 if kind in ("series", "images") else 1)
    assert (distance.find_nearest(these, those) == whole[:, 0]).all()
    assert (whole < 2e-3).all()
    strangers = make_records(kind, 50, 1)
    apart = distance.find_nearest_both_ways(strangers, those)
    assert np.median(apart) > 5e-3
    monkeypatch.setattr(nearest_records, "_ROWS", 7)
    monkeypatch.setattr(nearest_records, "_OTHERS", 70)
    monkeypatch.setattr(nearest_records, "_HELD", 20)
    assert distance.find_nearest_both_ways(strangers, those) == pytest.approx(apart, abs=2e-3)


def test_a_shifted_series_is_nearer_than_another() -> None:
    hours = np.arange(40)
    peaks: Any = [np.exp(-((hours - at) ** 2) / 8) for at in (10, 11, 30)]
    schema = Schema.from_dict({"columns": {"x": {"type": "series", "length": 40, "min": 0, "max": 1}}})
    records = encode(read(np.array(peaks), schema), schema)
    known = records.take([1, 2])
    found = RecordDistance.fit(schema, records)
    assert found.find_nearest(records.take([0]), known.take([0])) < found.find_nearest(
        records.take([0]), known.take([1])
    )


def test_many_categories_are_projected() -> None:
    values = [str(number) for number in range(2000)]
    schema = Schema.from_dict({"columns": {"x": {"type": "categorical", "values": values}}})
    records = Records(schema, {"x": np.arange(100, dtype=np.uint16)}, 100)
    distance = RecordDistance.fit(schema, records)
    assert distance.find_nearest(records, records).max() < 0.01
    assert distance.find_nearest(records.take([0]), records.take(np.arange(1, 100)))[0] == pytest.approx(
        2**0.5, rel=0.2
    )
