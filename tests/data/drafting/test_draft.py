"""Drafts of schemas: guesses, warnings, and the reviewed schemas that are shipped."""

from __future__ import annotations

import re
import warnings
from datetime import date, time
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from sundog.data.drafting.draft import draft
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.data.writing.frames import to_frame
from sundog.data.writing.write import open_writer
from sundog.errors import DataError
from sundog.fit.synthesizer import Synthesizer

EXAMPLES = Path(__file__).parents[3] / "examples"


def draft_quietly(data: Any) -> Schema:
    with warnings.catch_warnings(action="ignore"):
        return draft(data)


def draft_columns(data: Any) -> dict[str, Any]:
    found = draft_quietly(data).to_dict()["columns"]
    assert isinstance(found, dict)
    return found


CSV = """\
age,zip,smokes,price,when,day,town,score,note
31,01234,Yes,1.50,2020-01-01 10:00,2020-01-01,Bern,1e-3,
47,99999,No,2.25,2020-01-01 11:30,2020-02-29,Genf,2,
NA,01234,Yes,,2020-01-01 12:00,2020-03-01,Bern,0.5,
"""


def test_guesses_from_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CSV)
    schema = draft_quietly(tmp_path / "t.csv")
    assert schema.to_dict() == {
        "sundog": 1,
        "reviewed": False,
        "nulls": ["", "NA"],
        "columns": {
            "age": {"type": "integer", "min": 31, "max": 47, "nullable": True},
            "zip": {"type": "categorical", "values": ["01234", "99999"]},
            "smokes": {"type": "boolean", "true": "Yes", "false": "No"},
            "price": {
                "type": "continuous",
                "format": "12.50",
                "min": 1.5,
                "max": 2.25,
                "resolution": 0.01,
                "nullable": True,
            },
            "when": {
                "type": "datetime",
                "min": "2020-01-01T10:00:00",
                "max": "2020-01-01T12:00:00",
                "resolution": "minute",
                "format": "%Y-%m-%d %H:%M",
            },
            "day": {"type": "datetime", "min": "2020-01-01", "max": "2020-03-01", "resolution": "day"},
            "town": {"type": "categorical", "values": ["Bern", "Genf"]},
            "score": {"type": "continuous", "min": 0.001, "max": 2.0, "resolution": 0.001},
        },
    }
    assert len(encode(read(tmp_path / "t.csv", schema), schema)) == 3


def test_guesses_from_types() -> None:
    frame = pd.DataFrame(
        {
            "n": [1, 5],
            "maybe": [1.0, None],
            "x": [0.25, 0.5],
            "b": [True, False],
            "level": pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True),
            "t": pd.to_datetime(["2020-01-01 10:00", "2020-01-02 12:00"]).tz_localize("Europe/Zurich"),
            "words": [["a", "b"], ["c"]],
        }
    )
    schema = draft_quietly(frame)
    found = schema.to_dict()["columns"]
    assert found["n"] == {"type": "integer", "min": 1, "max": 5}
    assert found["maybe"] == {"type": "integer", "min": 1, "max": 1, "nullable": True, "dtype": "float64"}
    assert found["x"] == {"type": "continuous", "min": 0.25, "max": 0.5, "resolution": 0.01}
    assert found["b"] == {"type": "boolean"}
    assert found["level"] == {"type": "ordinal", "values": ["low", "mid", "high"], "dtype": "category"}
    assert found["t"]["timezone"] == "Europe/Zurich"
    assert found["words"] == {"type": "set", "universe": ["a", "b", "c"], "max_size": 2}
    assert len(encode(read(frame, schema), schema)) == 2


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e-3, 1.0, 1e3, 1e6, 1e12, 1e15, 1e30])
def test_drafted_bounds_spell_out_nobodys_value(scale: float) -> None:
    values = np.random.default_rng(0).normal(0, 1, 500) * scale
    frame = pd.DataFrame({"x": values})
    schema = draft_quietly(frame)
    found = schema.to_dict()["columns"]["x"]
    assert found["type"] == "continuous"
    assert found["min"] < values.min()
    assert found["max"] > values.max()
    span = max(values.max() - values.min(), 1e-9)
    assert values.min() - found["min"] <= 1e-5 * span  # outward, and not by much
    assert found["max"] - values.max() <= 1e-5 * span
    if scale <= 1e6:
        for bound in ("min", "max"):
            assert len(Decimal(str(found[bound])).normalize().as_tuple().digits) <= 8
    schema.columns["x"].encode(values, where="x")  # all are within


def test_guesses_from_arrays(tmp_path: Path) -> None:
    assert draft_columns(np.full((5, 4, 4), 200, np.uint8)) == {"image": {"type": "image", "shape": [4, 4]}}
    series = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], np.float32)
    found = draft_quietly(series)
    assert found.columns["series"].shape == (3,)
    assert len(encode(read(series, found), found)) == 2  # bounds hold although float32 is a little off
    assert draft_columns(sparse.csr_array(np.eye(3))) == {"items": {"type": "set", "universe": 3, "max_size": 1}}
    np.savez(tmp_path / "t.npz", x=series, label=[1, 0], names=np.array(["a", "b", "c"]))
    assert list(draft_quietly(tmp_path / "t.npz").columns) == ["x", "label"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path: Path, delimiter: str) -> None:
    (tmp_path / "t.csv").write_text(CSV.replace(",", delimiter))
    schema = draft_quietly(tmp_path / "t.csv")
    assert schema.delimiter == delimiter
    assert len(encode(read(tmp_path / "t.csv", schema), schema)) == 3


def test_a_draft_warns_and_says_so_in_its_file(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        schema = Schema.draft(pd.DataFrame({"a": ["no", "yes", "on", "1", "1e3", "null", "x: y", "2020-01-01"]}))
    schema.save(tmp_path / "s.yaml")
    assert "NOT PRIVATE" in (tmp_path / "s.yaml").read_text().splitlines()[0]
    assert Schema.load(tmp_path / "s.yaml") == schema


def test_identifiers_are_left_out_loudly() -> None:
    names = [f"name{i}" for i in range(30)]
    frame = pd.DataFrame({"name": names, "patient_id": range(30), "user": [i // 2 for i in range(30)], "age": 4})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schema = draft(frame, name="people")
    assert list(schema.columns) == ["user", "age"]
    messages = [str(warning.message) for warning in caught]
    assert sum(message.startswith("people: column ") for message in messages) == 2
    assert not any("name7" in message for message in messages)


def test_numbers_of_rows_are_pointed_out() -> None:
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        text = str(draft(pd.DataFrame({"stay": [*range(7, 307)], "age": [i % 90 for i in range(300)]})))
    assert text.count("all 300 values differ, with few gaps: does it number the rows?") == 1


def test_a_warning_points_to_who_asked_for_the_draft() -> None:
    with pytest.warns(UserWarning, match="NOT PRIVATE") as caught:
        Schema.draft(pd.DataFrame({"age": [31, 47]}))
    assert caught[0].filename == __file__


def test_edges_have_no_negative_zero() -> None:
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        text = str(draft(pd.DataFrame({"x": np.linspace(-3, 2.97, 200).round(3)})))
    assert "edges: [" in text
    assert " -0.0," not in text


def test_very_many_frequent_categories_are_to_be_learned() -> None:
    frame = pd.DataFrame({"word": [f"w{i % 2000}" for i in range(30_000)]})
    assert draft_columns(frame) == {"word": {"type": "categorical", "learn": True}}


# --- messy tables: the right type, what was seen in a comment, and a fit with the draft on the very file

RNG = np.random.default_rng(0)
ROWS = 400
AGES = RNG.integers(18, 95, ROWS)
AMOUNTS = RNG.lognormal(8, 1.5, ROWS).round(2)
DAYS = pd.Series(pd.Timestamp("2019-03-01") + pd.to_timedelta(RNG.integers(0, 900, ROWS), "D"))
CLOCKS = [f"{hour:02}:{minute:02}" for hour, minute in RNG.integers(0, (24, 60), (ROWS, 2))]
ZIPS = [f"{code:05}" for code in RNG.choice(RNG.integers(1000, 9999, 700), 2000)]


def group_digits(amount: float, decimals: int = 2, marks: str = ",.") -> str:
    return f"{amount:,.{decimals}f}".translate(str.maketrans(",.", marks))


def spell_days(text_format: str) -> list[str]:
    return [str(text) for text in DAYS.dt.strftime(text_format)]


MESSY: dict[str, tuple[list[str], dict[str, Any], str]] = {
    "blanks": ([f" {age} " if age % 3 else " " for age in AGES], {"type": "integer", "nullable": True}, ""),
    "commas": (
        [group_digits(a, 0) for a in AMOUNTS],
        {"type": "integer", "format": "1,234"},
        "if it is a decimal mark",
    ),
    "dots": (
        [group_digits(a, 0, ".,") for a in AMOUNTS],
        {"type": "integer", "format": "1.234"},
        "if it is a decimal mark",
    ),
    "spaces": ([group_digits(a, 2, " ,") for a in AMOUNTS], {"type": "continuous", "format": "1 234,50"}, ""),
    "no-break spaces": ([group_digits(a, 0, "\u00a0.") for a in AMOUNTS], {"type": "integer", "format": "1 234"}, ""),
    "swiss": ([group_digits(a, 2, "'.") for a in AMOUNTS], {"type": "continuous", "format": "1'234.50"}, ""),
    "dollars": (
        [f"-${group_digits(a)}" if a < 500 else f"${group_digits(a)}" for a in AMOUNTS],
        {"format": "$1,234.50"},
        "",
    ),
    "euros": ([f"{group_digits(a, 2, '.,')} €" for a in AMOUNTS], {"type": "continuous", "format": "1.234,50€"}, ""),
    "percent": ([f"{age}%" for age in AGES], {"type": "integer", "format": "12%"}, ""),
    "kilograms": ([f"{age / 10} kg" for age in AGES], {"type": "continuous", "format": "12.0 kg"}, ""),
    "decimal comma": ([f"{age / 10}".replace(".", ",") for age in AGES], {"type": "continuous", "format": "12,0"}, ""),
    "german dates": (spell_days("%d.%m.%Y"), {"type": "datetime", "format": "%d.%m.%Y", "resolution": "day"}, ""),
    "american dates": (spell_days("%m/%d/%Y"), {"type": "datetime", "format": "%m/%d/%Y"}, ""),
    "british times": (spell_days("%d/%m/%Y 08:15"), {"format": "%d/%m/%Y %H:%M", "resolution": "minute"}, ""),
    "compact dates": (spell_days("%Y%m%d"), {"type": "datetime", "format": "%Y%m%d"}, "could be whole numbers"),
    "times of day": (CLOCKS, {"type": "datetime", "format": "%H:%M", "resolution": "minute"}, "a time of day"),
    "times with a space": (
        [f"{day} {clock}:59" for day, clock in zip(spell_days("%Y-%m-%d"), CLOCKS, strict=True)],
        {"type": "datetime", "format": "%Y-%m-%d %H:%M:%S"},
        "",
    ),
    "times as pandas writes them": (
        [f"{day} {clock}:59.000017" for day, clock in zip(spell_days("%Y-%m-%d"), CLOCKS, strict=True)],
        {"type": "datetime", "format": "%Y-%m-%d %H:%M:%S.%f", "resolution": "microsecond"},
        "",
    ),
    "times to the minute": (spell_days("%Y-%m-%dT08:15"), {"format": "%Y-%m-%dT%H:%M", "resolution": "minute"}, ""),
    "midnights": (spell_days("%Y-%m-%dT%H:%M:%S"), {"format": "%Y-%m-%dT%H:%M:%S", "resolution": "day"}, ""),
    "times with a T": (spell_days("%Y-%m-%dT08:15:00"), {"format": None, "resolution": "minute"}, ""),
    "dates with a gap": (
        ["-", *spell_days("%d.%m.%Y")[1:]],
        {"format": "%d.%m.%Y", "nullable": True},
        "'-': read as missing",
    ),
    "about five": (
        ["about 5", *map(str, AGES[1:])],
        {"type": "integer", "nullable": True},
        "1 of 400 rows holds 'about 5'",
    ),
    "many towns": (
        [f"town {i}" for i in RNG.zipf(1.5, 3000).clip(0, 5000)],
        {"type": "categorical", "undeclared": "other", "other": "other"},
        "in fewer than 10 rows: these become 'other'",
    ),
    "few different names": (
        ["Ann", "Bo", "Cy"],
        {"type": "categorical", "values": ["Ann", "Bo", "Cy"]},
        "all 3 values differ",
    ),
    "sentinels": (
        [
            str(code)
            for code in np.where(RNG.random(ROWS) < 0.5, -1, np.where(RNG.random(ROWS) < 0.2, 99_999, AMOUNTS // 9))
        ],
        {"type": "continuous", "special": [-1, 99_999]},
        "edges: [",
    ),
}


@pytest.mark.parametrize("name", MESSY)
def test_a_draft_of_a_messy_table_can_be_fitted(tmp_path: Path, name: str) -> None:
    values, expected, note = MESSY[name]
    other = np.arange(len(values)) % 3
    pd.DataFrame({"x": values, "other": other}).to_csv(tmp_path / "t.csv", index=False)
    drafted = draft_quietly(tmp_path / "t.csv")
    drafted.save(tmp_path / "s.yaml")
    schema = Schema.load(tmp_path / "s.yaml")
    assert schema == drafted
    declared = schema.to_dict()["columns"]["x"]
    assert {key: declared.get(key) for key in expected} == expected
    comments = [line for line in (tmp_path / "s.yaml").read_text().splitlines() if line.startswith("  # ")]
    assert any(note in line for line in comments) if note else not any("decimal" in line for line in comments)
    with warnings.catch_warnings(action="ignore"):
        synthesizer = Synthesizer("independent", epsilon=5.0, delta=1e-6).fit(tmp_path / "t.csv", schema)
    with open_writer(tmp_path / "out.csv", schema) as writer:  # and written values can be read again
        writer.write(encode(read(synthesizer.release_.sample(50, seed=0), schema), schema))
    assert len(encode(read(tmp_path / "out.csv", schema), schema)) == 50


@pytest.mark.parametrize("name", [name for name in MESSY if "times" in name or name == "midnights"])
def test_times_are_written_as_they_were(tmp_path: Path, name: str) -> None:
    values = MESSY[name][0]
    pd.DataFrame({"x": values}).to_csv(tmp_path / "t.csv", index=False)
    schema = draft_quietly(tmp_path / "t.csv")
    with open_writer(tmp_path / "out.csv", schema) as writer:
        writer.write(encode(read(tmp_path / "t.csv", schema), schema))
    assert (tmp_path / "out.csv").read_text().splitlines() == ["x", *values]


@pytest.mark.parametrize("dtype", [None, object], ids=str)
def test_texts_of_a_frame_come_back_as_they_were(dtype: Any) -> None:
    texts = {"day": spell_days("%d.%m.%Y"), "clock": CLOCKS, "amount": [group_digits(amount, 0) for amount in AMOUNTS]}
    frame = pd.DataFrame(texts, dtype=dtype)
    schema = draft_quietly(frame)
    assert [column.type for column in schema.columns.values()] == ["datetime", "datetime", "integer"]
    pd.testing.assert_frame_equal(to_frame(encode(read(frame, schema), schema)), frame)


@pytest.mark.parametrize("values", [[3, 1, 2, 1], [3, None, 1, 1], [0.5, 1.5, 0.5, 1.5]], ids=str)
@pytest.mark.parametrize("ordered", [False, True])
def test_categories_that_are_numbers_stay_categories(values: list[float | None], ordered: bool) -> None:
    kinds = sorted({value for value in values if value is not None})
    frame = pd.DataFrame({"kind": pd.Categorical(values, categories=kinds, ordered=ordered)})
    for source in (frame, pa.Table.from_pandas(frame)):
        schema = draft_quietly(source)
        declared = schema.to_dict()["columns"]["kind"]
        assert declared["type"] == ("ordinal" if ordered else "categorical")
        assert (declared["values"], declared["dtype"]) == (kinds, "category")
        pd.testing.assert_frame_equal(to_frame(encode(read(source, schema), schema)), frame)


def test_many_categories_that_are_numbers_are_numbers() -> None:
    assert draft_columns(pd.DataFrame({"n": pd.Categorical(range(500))}))["n"]["type"] == "integer"


def test_times_of_day_are_drafted_from_objects_too() -> None:
    frame = pd.DataFrame({"clock": [time.fromisoformat(text) for text in CLOCKS]})
    schema = draft_quietly(frame)
    assert draft_columns(frame)["clock"]["format"] == "%H:%M:%S"
    assert to_frame(encode(read(frame, schema), schema))["clock"].tolist() == [f"{text}:00" for text in CLOCKS]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (ZIPS, "has .* values, of which .* are in fewer than 10 rows, and is left out"),
        (["P-001", "P-002", "P-003"], "looks like an identifier .all 3 values differ. and is left out"),
    ],
    ids=["zip codes", "three ids"],
)
def test_what_is_left_out_is_said_in_the_file(tmp_path: Path, values: list[str], reason: str) -> None:
    pd.DataFrame({"code": values, "n": np.arange(len(values)) % 3}).to_csv(tmp_path / "t.csv", index=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schema = Schema.draft(tmp_path / "t.csv")
    assert re.search(f"column 'code' {reason}", str(caught[0].message))
    schema.save(tmp_path / "s.yaml")
    assert list(Schema.load(tmp_path / "s.yaml").columns) == ["n"]
    assert re.search(f"# left out:\n  # code: {reason}", (tmp_path / "s.yaml").read_text())


def test_a_text_that_is_missing_in_one_column_stays_a_category_in_another(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": ["?", *map(str, AGES[1:])], "answer": ["?", "yes", "no", "perhaps"] * (ROWS // 4)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = draft_quietly(tmp_path / "t.csv")
    assert schema.nulls == ("", "?")
    assert schema.to_dict()["columns"]["answer"]["values"] == ["?", "no", "perhaps", "yes"]
    assert len(encode(read(tmp_path / "t.csv", schema), schema)) == ROWS


def test_codes_with_leading_zeros_or_letters_are_no_numbers() -> None:
    found = draft_columns(pd.DataFrame({"zip": ["01234", "10115"] * 5, "code": ["A12", "A13"] * 5}))
    assert {column["type"] for column in found.values()} == {"categorical"}


def test_comments_are_no_part_of_a_schema(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [0] * 900 + list(range(1, 5000, 7))})
    drafted = draft_quietly(frame)
    assert drafted.columns["n"].to_dict()["special"] == [0]
    assert "# special:" in drafted.to_yaml()
    assert "\n  #" not in drafted.with_columns({}).to_yaml()
    hostile = draft_quietly({"a\nb: c": ["x\x1b[2J", "about\n- 5"] * 3})
    hostile.save(tmp_path / "s.yaml")
    assert Schema.load(tmp_path / "s.yaml") == hostile


def test_nothing_to_draft_from(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    for data in (tmp_path / "t.csv", pd.DataFrame({"a": []}), pd.DataFrame({"a": [None]}), tmp_path / "none.csv"):
        with pytest.raises(DataError) as caught:
            draft_quietly(data)
        assert "\n" not in str(caught.value)


# --- the shipped schemas


def find_demo_file(name: str) -> Path:
    return Path(str(resources.files("sundog") / "demo" / name))


def test_the_demo_has_the_example_schema() -> None:
    assert find_demo_file("adult.schema.yaml").read_bytes() == (EXAMPLES / "adult.schema.yaml").read_bytes()


def test_the_demo_data_fits_its_schema() -> None:
    schema = Schema.load(find_demo_file("adult.schema.yaml"))
    raw = read(find_demo_file("adult.csv.gz"), schema)
    assert (raw.count, raw.ignored) == (10_000, ())
    records = encode(raw, schema)
    assert records.codes["age"][:3].tolist() == [39 - 17, 50 - 17, 38 - 17]
    assert (
        find_demo_file("adult.csv.gz").read_bytes()[4:8] == b"\0\0\0\0"
    )  # no time stamp: built again, it is the same file


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.schema.yaml")), ids=lambda path: path.name)
def test_every_example_is_a_reviewed_schema(path: Path) -> None:
    schema = Schema.load(path)
    assert schema.reviewed
    assert schema.complete
    assert re.search("CC BY|free use|free for", path.read_text())


def test_the_examples_take_data_of_their_kind() -> None:
    rng = np.random.default_rng(0)
    mnist = Schema.load(EXAMPLES / "mnist.schema.yaml")
    images = rng.integers(0, 256, (5, 28, 28), np.uint8)
    assert encode(read(images, mnist, labels=[0, 9, 3, 3, 1]), mnist).codes["label"].tolist() == [0, 9, 3, 3, 1]
    meters = Schema.load(EXAMPLES / "smartmeter.schema.yaml")
    days = {"x": rng.normal(0, 6, (20, 96)), "house": np.repeat([1, 2], 10), "weekday": np.arange(20) % 7}
    assert len(encode(read(days, meters), meters)) == 14  # seven days of each house, values clamped
    pages = Schema.load(EXAMPLES / "msnbc.schema.yaml")
    assert encode(read([["news", "tech"], []], pages), pages).codes["page"].nnz == 2
    visits = {"page": np.array([1, 1, 2, 16], np.uint8), "indptr": np.array([0, 3, 4], np.int32)}  # as in its file
    assert encode(read(visits, pages), pages).codes["page"].nnz == 3
    for name in ("retail", "kosarak"):
        baskets = Schema.load(EXAMPLES / f"{name}.schema.yaml")
        rare = sparse.csr_array(([1, 1], ([0, 1], [99, 100])), shape=(2, 16_000))
        assert encode(read(rare, baskets), baskets).codes["items"].nnz == 1
    areas = Schema.load(EXAMPLES / "msweb.schema.yaml")
    assert len(encode(read(sparse.random_array((3, 286), density=0.1, format="csr", rng=rng), areas), areas)) == 3


def test_nested_columns_are_left_out(tmp_path: Path) -> None:
    columns = {
        "age": pa.array([31, 47]),
        "address": pa.array([{"zip": "01234"}, {"zip": "1"}]),
        "tags": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "path": pa.array([[[1, 2]], [[3]]]),
        "visits": pa.array([[{"day": 1}], []]),
        "nothing": pa.array([[], []], pa.list_(pa.null())),
        "days": pa.array([[date(2020, 1, 1)], []]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with warnings.catch_warnings(record=True, action="always") as caught:
        schema = Schema.draft(tmp_path / "t.parquet")
    assert set(schema.columns) == {"age", "days"}
    said = [str(warning.message) for warning in caught]
    for name in ("address", "tags", "path", "visits"):
        assert sum(f"column {name!r} holds" in line and "left out" in line for line in said) == 1


def test_values_of_several_types_are_drafted_as_text() -> None:
    schema = draft_quietly(pd.DataFrame({"x": pd.Series([1, "b", 2.0, None], dtype=object)}))
    found = schema.to_dict()["columns"]["x"]
    assert (found["type"], found["values"], found["nullable"]) == ("categorical", ["1", "2", "b"], True)
