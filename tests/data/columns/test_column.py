"""A column type is one class: no code outside `data/columns` tests for the class of a column."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import sparse

import sundog
from sundog.data import columns
from sundog.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    ContinuousColumn,
    DatetimeColumn,
    Form,
    ImageColumn,
    IntegerColumn,
    OrdinalColumn,
    ScalarColumn,
    Scale,
    SeriesColumn,
    SetColumn,
    list_column_types,
    register_column_type,
)
from sundog.data.columns.arrow import Mask
from sundog.data.columns.containers import to_python, unwrap_one
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.data.validation_errors import format_value
from sundog.errors import DataError, SchemaError

SOURCE = Path(sundog.__file__).parent
ALLOWED = 0  # isinstance tests on columns outside data/columns


# --- tests for the type of a column ---


def list_column_classes() -> set[str]:
    """Return the names of all column classes, abstract ones included."""
    found: set[type] = set()
    for kind in list_column_types().values():
        found |= {each for each in kind.__mro__ if issubclass(each, Column)}
    return {kind.__name__ for kind in found}


def find_questions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that test for the class of a column, or compare the name of its type."""
    names = list_column_classes()
    for node in ast.walk(tree):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_call and node.func.id in ("isinstance", "issubclass") and _mentions(node.args[1], names):  # type: ignore[attr-defined]
            yield node
        if isinstance(node, ast.MatchClass) and _mentions(node.cls, names):
            yield node
        if isinstance(node, ast.Compare) and any(map(_is_type_name, [node.left, *node.comparators])):
            yield node


def _mentions(node: ast.AST, names: set[str]) -> bool:
    own = {part.id if isinstance(part, ast.Name) else part.attr for part in ast.walk(node) if _is_name(part)}  # type: ignore[attr-defined]
    return bool(own & names)


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute)


def _is_type_name(node: ast.AST) -> bool:
    """Return whether a node is the name of a column type, such as "image"."""
    return isinstance(node, ast.Constant) and node.value in list_column_types()


def list_modules_outside() -> list[Path]:
    """Return the modules that may not test for types; drafting names types in declarations."""
    apart = [SOURCE / "data" / "columns", SOURCE / "data" / "drafting"]
    return [path for path in sorted(SOURCE.rglob("*.py")) if not any(path.is_relative_to(folder) for folder in apart)]


def test_nothing_outside_asks_for_the_class_of_a_column() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"  # type: ignore[attr-defined]
        for path in list_modules_outside()
        for node in find_questions(ast.parse(path.read_text()))
    ]
    assert len(found) <= ALLOWED, found


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(column, SetColumn)",
        "isinstance(column, ImageColumn | SeriesColumn)",
        "isinstance(column, (columns.OrderedColumn, str))",
        "issubclass(kind, ScalarColumn)",
        "column.type == 'image'",
        "match column:\n    case IntegerColumn(min=low):\n        pass",
    ],
)
def test_such_questions_are_found(code: str) -> None:
    assert len(list(find_questions(ast.parse(code)))) == 1


def test_every_type_says_what_it_is_like() -> None:
    for name, kind in list_column_types().items():
        assert kind.model_fields["type"].default == name
        assert isinstance(kind.form, Form)
        assert (kind.scale is not None) == (kind.form is Form.SCALAR)


# --- a type in one class ---


class GradeColumn(ScalarColumn):
    """A school grade, from A down to the declared worst one."""

    scale: ClassVar[Literal[Scale.ORDINAL]] = Scale.ORDINAL

    type: Literal["grade"] = "grade"
    worst: str = "F"

    @property
    def lattice_size(self) -> int:
        return ord(self.worst) - ord("A") + 1

    @property
    def declared_texts(self) -> Sequence[Any]:
        return [chr(ord("A") + code) for code in range(self.lattice_size)]

    def find_first_code_above(self, spellings: Sequence[Any], *, or_equal: bool) -> int:
        return self.find_code(*spellings) + int(not or_equal)

    def _encode_array(self, values: Any) -> tuple[NDArray[Any], Mask]:
        codes = np.array([self._find(value) for value in to_python(values)], np.int64)
        return codes, codes < 0

    def _find(self, value: Any) -> int:
        return self.declared_texts.index(value) if value in self.declared_texts else -1

    def _decode_array(self, codes: NDArray[Any], null: Mask | None) -> Any:
        return pa.array(list(self.declared_texts)).take(pa.array(codes.astype(np.int64), mask=null))

    def _explain_refusal(self, one: Any) -> str:
        return f"{format_value(unwrap_one(one))} is not a grade from A to {self.worst}; fix the row"


@pytest.fixture
def grades(monkeypatch: pytest.MonkeyPatch) -> Schema:
    monkeypatch.setattr(columns, "_REGISTERED", {})
    register_column_type(GradeColumn)
    hours = {"type": "integer", "min": 0, "max": 9}
    declared = {"grade": {"type": "grade", "worst": "D", "nullable": True}, "hours": hours}
    return Schema.from_dict({"columns": declared, "nulls": ["", "NA"]})


def make_people(count: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    hours = rng.integers(0, 10, count)
    found = ["DCBA"[min(3, hour // 3)] for hour in hours]
    return {"grade": [None if place % 10 == 0 else each for place, each in enumerate(found)], "hours": hours.tolist()}


@pytest.mark.usefixtures("fast_reports")
def test_a_type_of_ones_own_goes_all_the_way(grades: Schema, tmp_path: Path) -> None:
    data, out = make_people(600), tmp_path / "grades.sundog"
    fitted = sundog.Synthesizer("independent", epsilon=5.0, delta=1e-6, seed=0).fit(data, grades)
    fitted.release_.save(out)
    release = sundog.Release.load(out)
    assert release.schema == grades
    frame = release.sample(400, seed=1)
    assert set(frame["grade"].dropna()) == {"A", "B", "C", "D"}
    assert 0.02 < frame["grade"].isna().mean() < 0.2
    assert set(release.sample(50, seed=1, where="grade<=B")["grade"]) == {"A", "B"}
    path = tmp_path / "made.csv"
    release.write(path, 300, seed=2)
    again = read(path, grades)
    assert len(encode(again, grades)) == 300
    for made in (release, path):
        schema = None if made is release else grades
        report = sundog.evaluate(made, real=data, target="grade", schema=schema, rows=300)
        assert report.measures["fidelity.tvd_1way"].value < 0.2
        assert "utility" in report.to_dict()


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "npz", "csv.gz"])
def test_it_is_written_to_every_format_and_read_again(grades: Schema, suffix: str, tmp_path: Path) -> None:
    release = sundog.Synthesizer("independent", epsilon=5.0, delta=1e-6, seed=0).fit(make_people(200), grades).release_
    path = tmp_path / f"made.{suffix}"
    release.write(path, 100, seed=0)
    found = encode(read(path, grades), grades)
    (expected,) = release.batches(100, seed=0)
    for name in grades.columns:
        assert found.codes[name].tolist() == expected.codes[name].tolist()


def test_what_it_refuses_is_said_as_elsewhere(grades: Schema) -> None:
    with pytest.raises(DataError, match=r"column 'grade': row 1: 'E' is not a grade from A to D; fix the row"):
        encode(read({"grade": ["E"], "hours": [1]}, grades), grades)
    with pytest.raises(SchemaError, match=r"column 'g': unknown key 'worts'; did you mean 'worst'\?"):
        Schema.from_dict({"columns": {"g": {"type": "grade", "worts": "D"}}})
    with pytest.raises(SchemaError, match=r"unknown type 'grad'; did you mean 'grade'\?"):
        Schema.from_dict({"columns": {"g": {"type": "grad"}}})


def test_names_of_types_are_not_taken_twice() -> None:
    class Taken(GradeColumn):
        type: Literal["set"] = "set"  # type: ignore[assignment]

    with pytest.raises(ValueError, match="needs a new name"):
        register_column_type(Taken)


# --- the interface of all types ---

PROMISES: list[Column] = [
    CategoricalColumn(values=("a", "b, c", "NA")),
    OrdinalColumn(values=("low", "high"), nullable=True),
    BooleanColumn(true="yes", false="no", nullable=True),
    IntegerColumn(min=-3, max=400, step=7, special=(4,), nullable=True),
    ContinuousColumn(min=0, max=1, resolution=0.001, edges=(0.2, 0.7)),
    DatetimeColumn(min="2020-01-01", max="2021-01-01", timezone="Europe/Berlin", nullable=True),
    ImageColumn(shape=(2, 3), levels=8),
    SeriesColumn(length=4, min=0, max=9, nullable=True),
    SetColumn(universe=("tea", "whole milk", "bread"), max_size=2),
    GradeColumn(worst="D", nullable=True),
]


def draw_codes(column: Column, count: int) -> Any:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, column.size, (count, *column.shape)).astype(column.dtype)
    return sparse.csr_array(codes * (codes.cumsum(axis=1) <= 2)) if column.form is Form.SET else codes


def test_all_types_are_tried() -> None:
    assert {column.type for column in PROMISES} == {*list_column_types(), "grade"}


@pytest.mark.parametrize("column", PROMISES, ids=lambda column: column.type)
class TestPromises:
    def test_what_is_written_as_values_has_the_same_codes(self, column: Column) -> None:
        codes = draw_codes(column, 50)
        for written in (column.to_values(codes), column.to_arrow(codes)):
            again = column.encode(written, where="x")
            assert (again != codes).sum() == 0

    def test_what_is_written_as_text_has_the_same_codes(self, column: Column) -> None:
        if column.text_problem:
            with pytest.raises(DataError, match="do not fit"):
                column.to_text(draw_codes(column, 5))
            return
        codes, texts = draw_codes(column, 50), column.to_text(draw_codes(column, 50))
        assert len(texts) == len(column.name_table_columns("x"))
        parts = dict(zip(column.name_table_columns("x"), texts, strict=True))
        schema = Schema.model_construct(columns={"x": column})
        again = column.encode(read(pa.table(parts), schema).columns["x"], where="x")
        assert (again != codes).sum() == 0

    def test_bins_and_features_are_counted_without_making_them(self, column: Column) -> None:
        starts = column.list_bin_starts()
        assert starts[0] == 0
        assert starts == sorted(set(starts))
        assert column.bin_count == len(starts) + column.nullable
        least, most = column.squared_norms
        assert 0 <= least <= most <= column.feature_count
        assert column.largest_distance <= 2 * column.feature_count

    def test_no_records_have_the_shape_of_records(self, column: Column) -> None:
        assert column.make_empty_codes().shape == (0, *column.shape)
        assert column.to_json(column.make_empty_codes()) == []

    def test_json_holds_a_value_for_each_record(self, column: Column) -> None:
        found = column.to_json(draw_codes(column, 20))
        assert len(found) == 20
        json.dumps(found, allow_nan=False)

    def test_relaxing_twice_is_relaxing_once(self, column: Column) -> None:
        assert column.relax().relax() == column.relax()
