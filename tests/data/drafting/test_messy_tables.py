"""Drafts of messy tables: the right type, what was seen in a comment, and a fit with the draft on the very file."""

from __future__ import annotations

import re
import warnings
from datetime import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.data.drafting.drafts import draft_columns, draft_quietly

from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.data.writing.frames import to_frame
from sundog.data.writing.write import open_writer
from sundog.errors import DataError
from sundog.fit.synthesizer import Synthesizer

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
