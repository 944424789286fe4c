"""Distances of records, against loops over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.auditing.copied_records import MAKERS, make_material

from sundog.auditing import array_components, nearest_records
from sundog.auditing.array_components import scale_levels
from sundog.auditing.nearest_records import RecordDistance
from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema

SET = {"type": "set", "universe": 60, "max_size": 5}


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


def test_components_are_learned_from_all_kinds_that_follow_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_components, "_LEARNED_FROM", 4)
    schema = Schema.from_dict({"columns": {"x": {"type": "boolean"}}})
    records = Records(schema, {"x": np.repeat([0, 1], [9, 5])}, 14)
    assert array_components.thin_out(records).codes["x"].tolist() == [0, 0, 0, 1]
    assert len(array_components.thin_out(records.take([0]))) == 1
    for places in ([0], [3], [9], [5, 6]):
        parts = [Records(schema, {"x": part}, len(part)) for part in np.split(np.arange(14), places)]
        assert array_components.thin_out(*parts).codes["x"].tolist() == [0, 4, 8, 12]


def test_many_categories_are_projected() -> None:
    values = [str(number) for number in range(2000)]
    schema = Schema.from_dict({"columns": {"x": {"type": "categorical", "values": values}}})
    records = Records(schema, {"x": np.arange(100, dtype=np.uint16)}, 100)
    distance = RecordDistance.fit(schema, records)
    assert distance.find_nearest(records, records).max() < 0.01
    assert distance.find_nearest(records.take([0]), records.take(np.arange(1, 100)))[0] == pytest.approx(
        2**0.5, rel=0.2
    )


def measure_all_pairs(kind: str, these: Records, those: Records) -> Any:
    """Return the distances between arrays by loops: over shifts of images, and over alignments of series."""
    name = "image" if kind == "images" else "load"
    ours, theirs = (scale_levels(name, records).astype(np.float64) for records in (these, those))
    scale = theirs.var(axis=0).sum() ** 0.5
    found = np.full((len(these), len(those)), np.inf)
    for i, j in np.ndindex(found.shape):
        if kind == "series":
            found[i, j] = align(ours[i], theirs[j], window=2)
        else:
            padded = np.pad(ours[i], 2, mode="edge")
            views = [padded[y : y + 8, x : x + 8] for y in range(5) for x in range(5)]
            found[i, j] = min(((view - theirs[j]) ** 2).sum() for view in views)
    return np.sqrt(found) / scale


def align(one: Any, other: Any, window: int) -> float:
    """Return the least sum of squares over alignments that shift no value by more than `window` places."""
    costs = np.full((len(one) + 1, len(other) + 1), np.inf)
    costs[0, 0] = 0
    for i, j in np.ndindex(len(one), len(other)):
        if abs(i - j) <= window:
            before = min(costs[i, j], costs[i, j + 1], costs[i + 1, j])
            costs[i + 1, j + 1] = (one[i] - other[j]) ** 2 + before
    return float(costs[-1, -1])


@pytest.mark.parametrize("kind", ["series", "images"])
def test_the_nearest_are_aligned_as_loops_align_them(kind: str) -> None:
    """There are no more records than are aligned, so that none is left out."""
    those = make_records(kind, 16, 0)
    these = make_records(kind, 6, 1)
    found = RecordDistance.fit(those.schema, those).find_nearest_both_ways(these, those)[:, 1]
    assert found == pytest.approx(measure_all_pairs(kind, these, those).min(axis=1), abs=2e-3)


@pytest.mark.parametrize("kind", ["series", "images"])
def test_shifted_copies_are_nearer_when_aligned(kind: str) -> None:
    those = make_records(kind, 300, 0)
    (name,) = those.schema.columns
    copies = those.take(np.arange(40))
    shifted = Records(those.schema, {name: np.roll(copies.codes[name], 1, axis=1)}, 40)
    distance = RecordDistance.fit(those.schema, those)
    strangers = make_records(kind, 40, 1)
    found, usual = (np.median(distance.find_nearest_both_ways(each, those), axis=0) for each in (shifted, strangers))
    assert found[0] > usual[0]  # by components, a shifted copy is no nearer than a stranger
    assert found[1] < 0.6 * usual[1]


def test_other_columns_count_when_arrays_are_aligned() -> None:
    """A shifted copy with another label is as far as the label makes it."""
    images = make_records("images", 50, 0)
    schema = Schema.from_dict(
        {"columns": {**images.schema.to_dict()["columns"], "label": {"type": "boolean"}, "items": SET}}
    )
    items = sparse.csr_array(np.eye(50, 60, dtype=np.uint8))
    codes = {"image": images.codes["image"], "label": np.zeros(50, np.uint8), "items": items}
    records = Records(schema, codes, 50)
    other = Records(schema, {**codes, "label": np.ones(50, np.uint8)}, 50)
    distance = RecordDistance.fit(schema, records)
    assert distance.find_nearest_both_ways(records, records).max() < 2e-3
    assert distance.find_nearest_both_ways(records, other).min() == pytest.approx(2**0.5, abs=0.3)
