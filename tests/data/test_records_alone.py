"""A record is encoded alone: one more record, of any content and at any place, changes nothing about the others.

The property is tested for every container and every column type, and with five planted bugs that once broke it.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.data import containers as containers_of
from tests.data import one_more_record as material
from tests.data.containers import Container
from tests.data.one_more_record import Case

from sundog.data.columns import listed, scalar
from sundog.data.columns.batches import Batches
from sundog.data.columns.set import SetColumn
from sundog.data.reading import csv_file, read, tables
from sundog.data.schema import Schema
from sundog.errors import DataError


def find_violations(
    cases: Mapping[str, Case],
    containers: Mapping[str, Container],
    records: Iterable[Any],
    path: Path,
    every: int = 1,
) -> Iterator[str]:
    """Yield the ways in which one of the records, first, last or between, changes how the others are read.

    With `every` above 1 each record is tried only in some containers, and each container with some records.
    """
    tried = 0
    for number, record in enumerate(records):
        for name, case in cases.items():
            place = (number % 3) * len(case.records) // 2
            for turn, (kind, container) in enumerate(containers.items()):
                if (number + turn) % every and kind not in containers_of.ALWAYS:
                    continue
                fitting = case.bare if kind in containers_of.BARE else case
                try:
                    found = material.find_change_by_record(record, place, fitting, container, path)
                except LookupError:
                    continue
                tried += 1
                if found is not None:
                    yield f"{name} as {kind}, with {record!r} at {place}: {found}"
    assert tried, "no container held these records"


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(action="ignore"):  # by pandas, when containers are made
        yield


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", material.SCALARS)
def test_values_in_memory(name: str, every: int, tmp_path: Path) -> None:
    case = {name: material.SCALARS[name]}
    assert not list(find_violations(case, containers_of.IN_MEMORY, material.HOSTILE, tmp_path, every))


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", material.SCALARS)
def test_values_in_files(name: str, every: int, tmp_path: Path) -> None:
    case = {name: material.SCALARS[name]}
    assert not list(find_violations(case, containers_of.IN_FILES, material.FOR_FILES, tmp_path, every))


def test_sets(tmp_path: Path) -> None:
    assert not list(find_violations(material.SETS, containers_of.SET_CONTAINERS, material.HOSTILE_SETS, tmp_path))


def test_images_and_series(tmp_path: Path) -> None:
    assert not list(find_violations(material.GRIDS, containers_of.GRID_CONTAINERS, material.HOSTILE_GRIDS, tmp_path))


def test_numbers_that_numpy_would_spell_otherwise_are_no_ids() -> None:
    for ids in ([1.0, 1], [True, False]):
        with pytest.raises(DataError, match="is read as text; save it as text"):
            _read_owners({"x": np.array(ids), "k": [1, 2]})


def test_steps_of_a_series_are_no_text() -> None:
    schema = Schema.from_dict({"columns": {"load": {"type": "series", "length": 2, "min": 0, "max": 9}}})
    steps = {"load_0": np.array([np.float32(0.1), "1"]), "load_1": np.array([1, 2])}
    with pytest.raises(DataError, match="is an array of text; save it as numbers"):
        read.read(steps, schema)


PEOPLE = Schema.from_dict({"unit": "x", "cap": 9, "columns": {"k": {"type": "integer", "min": 0, "max": 9}}})


@pytest.mark.parametrize("ids", [[1, 1, 2], ["1", "1", "a"], [1.0, 2.0, 1.0], [True, False, True], ["1.0", " 1", "1"]])
def test_who_owns_which_record(ids: list[Any], tmp_path: Path) -> None:
    for containers, records in (
        (containers_of.IN_MEMORY, material.HOSTILE),
        (containers_of.IN_FILES, material.FOR_FILES),
    ):
        for number, record in enumerate(records):
            place = number % 4
            for turn, (kind, container) in enumerate(containers.items()):
                if (number + turn) % 8:
                    continue
                try:
                    alone = _read_owners(container(ids, tmp_path))
                    joined = container([*ids[:place], record, *ids[place:]], tmp_path)
                except Exception:  # noqa: S112 (this container does not hold these)
                    continue
                try:
                    rest = np.delete(_read_owners(joined), place)
                except DataError:
                    continue
                together = [np.equal.outer(owners, owners).tolist() for owners in (alone, rest)]
                assert together[0] == together[1], f"{ids} as {kind} with {record!r} at {place}"


def _read_owners(source: Any) -> Any:
    return read.encode(read.read(source, PEOPLE), PEOPLE).unit


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_anywhere(data: st.DataObject, tmp_path: Path) -> None:
    value = st.one_of(
        *(st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.fractions(), st.text(max_size=3)),
        *(
            st.datetimes(),
            st.dates(),
            st.datetimes(timezones=st.timezones()),
            st.binary(max_size=3),
            st.complex_numbers(),
        ),
        *(st.times(), st.timedeltas(), st.uuids(), st.sampled_from(material.HOSTILE)),
    )
    name = data.draw(st.sampled_from(sorted(material.SCALARS)))
    kind = data.draw(st.sampled_from(sorted(containers_of.IN_MEMORY)))
    record, place = data.draw(value), data.draw(st.integers(0, len(material.SCALARS[name].records)))
    try:
        found = material.find_change_by_record(
            record, place, material.SCALARS[name], containers_of.IN_MEMORY[kind], tmp_path
        )
    except LookupError:
        return
    assert found is None, f"{name} as {kind}"


GROUPS: dict[str, tuple[dict[str, Case], dict[str, Container], list[Any]]] = {
    "values": (material.SCALARS, {**containers_of.IN_MEMORY}, material.HOSTILE),
    "sets": (material.SETS, {**containers_of.SET_CONTAINERS}, material.HOSTILE_SETS),
    "grids": (material.GRIDS, {**containers_of.GRID_CONTAINERS}, material.HOSTILE_GRIDS),
}


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_order_of_any_values(data: st.DataObject, tmp_path: Path) -> None:
    cases, containers, hostile = GROUPS[data.draw(st.sampled_from(sorted(GROUPS)))]
    name, kind = data.draw(st.sampled_from(sorted(cases))), data.draw(st.sampled_from(sorted(containers)))
    case = cases[name].bare if kind in containers_of.BARE else cases[name]
    records = [*case.records, *data.draw(st.lists(st.sampled_from(hostile), max_size=2))]
    order = data.draw(st.permutations(range(len(records))))
    try:
        found = material.find_change_by_order(records, order, case, containers[kind], tmp_path)
    except LookupError:
        return
    assert found is None, f"{name} as {kind}: {records} in the order {order}"


def test_the_order_of_records_is_only_their_order() -> None:
    mixed = [1, "2", None, 2.5, True, Decimal("2.0"), datetime(2020, 1, 2), "x"]
    schema = Schema.from_dict({"columns": {"x": material.declare_values("1", "2", "2.5", "2020-01-02", other="o")}})
    codes = read.encode(read.read({"x": mixed}, schema), schema).codes["x"]
    turned = read.encode(read.read({"x": mixed[::-1]}, schema), schema).codes["x"]
    assert codes.tolist() == turned[::-1].tolist() == [0, 1, 5, 2, 0, 1, 3, 4]


# --- the same test on what was once there ----------------------------------------------------------------------------


def _convert_to_one_type(values: Any, *, where: str = "") -> Iterator[Any]:
    """Yield the values in the type that Arrow infers for the column, or as text if it infers none."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        yield from values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        return
    try:
        yield pa.array(list(values), from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError):
        yield pa.array([None if value is None or value != value else str(value) for value in values])


def _convert_sets_to_one_type(column: SetColumn, values: Any, where: str) -> Iterator[Any]:
    yield from _convert_to_one_type(values, where=where)


def _find_as_typed(column: Any, value: Any) -> int | None:
    found: int | None = column._code_of.get(str(value))
    return found


def _tally_as_typed(column: Any, values: Any, *, where: str) -> Counter[str]:
    whole = values.collect() if isinstance(values, Batches) else values
    return Counter(str(value) for value in whole.to_pylist() if value is not None)


def _skip_checks(file: Any, *_: Any) -> Any:
    return file


def _infer_types(patch: pytest.MonkeyPatch) -> None:
    for module in (scalar, tables):
        patch.setattr(module, "to_chunks", _convert_to_one_type)


def _infer_sets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SetColumn, "_iter_chunks", _convert_sets_to_one_type)


def _share_a_scale(patch: pytest.MonkeyPatch) -> None:
    _infer_types(patch)
    patch.setattr(listed, "to_python", lambda values: values.to_pylist())
    patch.setattr(listed.ListedColumn, "_find", _find_as_typed)


def _learn_spellings(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(listed.ListedColumn, "to_learning_input", _tally_as_typed)


def _trust_quotes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(csv_file, "check_lines", _skip_checks)


@pytest.mark.parametrize(
    ("mutate", "cases", "containers", "records"),
    [
        (_infer_sets, material.SETS, containers_of.SET_CONTAINERS, material.HOSTILE_SETS[:5]),
        (_share_a_scale, {"x": material.SCALARS["text, decimals"]}, containers_of.IN_MEMORY, material.NUMBERS),
        (_infer_types, {"x": material.SCALARS["datetime, local"]}, containers_of.IN_MEMORY, material.MOMENTS),
        (_infer_types, {"x": material.SCALARS["refined times"]}, containers_of.IN_MEMORY, material.MOMENTS),
        (_learn_spellings, {"x": material.SCALARS["learned numbers"]}, containers_of.IN_MEMORY, material.NUMBERS),
        (_learn_spellings, {"x": material.SCALARS["learned numbers"]}, containers_of.IN_FILES, material.NOTHINGS),
        (_trust_quotes, {"x": material.SCALARS["text, texts"]}, containers_of.IN_FILES, material.SPOILED),
    ],
    ids=[
        "sets of one type",
        "one scale",
        "one timezone",
        "bins of one type",
        "spelled by type",
        "spelled by type, files",
        "open quotes",
    ],
)
def test_what_was_broken_is_found(
    mutate: Any, cases: Any, containers: Any, records: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not list(find_violations(cases, containers, records, tmp_path))
    monkeypatch.setattr(material, "_KNOWN", {})
    mutate(monkeypatch)
    found = list(find_violations(cases, containers, records, tmp_path))
    assert found


def test_an_order_that_matters_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    case, lists = material.SCALARS["datetime, local"], containers_of.IN_MEMORY["lists"]
    records = [*case.records, material.MOMENTS[2]]  # an aware one, which Arrow takes the timezone of if it is the first
    order = [*range(len(records))][::-1]
    assert material.find_change_by_order(records, order, case, lists, tmp_path) is None
    _infer_types(monkeypatch)
    assert material.find_change_by_order(records, order, case, lists, tmp_path) is not None
