"""Pictures of records: every record has a place, and other columns are refused with a message of one line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.data.writing.contact_sheet import MOST, arrange, draw, to_pixels
from sundog.data.writing.write import choose_count, open_writer
from sundog.errors import DataError

IMAGE = {"type": "image", "shape": [4, 4], "levels": 16}
SERIES = {"type": "series", "length": 5, "min": 0, "max": 10, "resolution": 0.5, "nullable": True}
LABEL = {"type": "categorical", "values": ["cat", "dog", "$a_$"], "nullable": True}


def make_records(count: int, **columns: dict[str, Any]) -> Records:
    rng = np.random.default_rng(0)
    schema = Schema.from_dict({"columns": columns})
    codes = {
        name: rng.integers(0, column.lattice_size + column.nullable, (count, *column.shape)).astype(column.dtype)
        for name, column in schema.columns.items()
    }
    return Records(schema, codes, count)


def write(path: Path, *parts: Records) -> None:
    with open_writer(path, parts[0].schema) as writer:
        for part in parts:
            writer.write(part)


def draw_picture(records: Records) -> Any:
    file = io.BytesIO()
    draw(records, file)
    file.seek(0)
    return imread(file)


@pytest.mark.parametrize("count", [0, 1, 2, 17, 100])
def test_every_record_has_a_place_of_its_own(count: int) -> None:
    places = arrange(make_records(count, image=IMAGE, label=LABEL))
    assert len(set(zip(places.rows.tolist(), places.columns.tolist(), strict=True))) == count


def test_a_row_has_one_label() -> None:
    records = make_records(100, image=IMAGE, label=LABEL)
    places = arrange(records)
    for row in range(places.size[0]):
        assert len(np.unique(records.codes["label"][places.rows == row])) == 1
    assert list(places.names.values()) == ["cat", "dog", "$a_$", "missing"]


def test_a_label_that_nearly_all_have_takes_several_rows() -> None:
    records = make_records(100, image=IMAGE, label=LABEL)
    records.codes["label"][:] = np.arange(100) < 1
    places = arrange(records)
    assert places.size == (1 + 5, 20)
    assert places.names == {0: "cat", 5: "dog"}


def test_without_a_label_it_is_a_square() -> None:
    age = {"type": "integer", "min": 0, "max": 9}
    for more in ({}, {"age": age}, {"label": LABEL, "other": LABEL}):
        places = arrange(make_records(50, image=IMAGE, **more))
        assert places.size == (7, 8)
        assert not places.names


@pytest.mark.parametrize("shape", [[1, 1], [28, 28], [3, 70], [8, 8, 3], [8, 8, 2], [200, 150, 1]])
@pytest.mark.parametrize("count", [0, 1, 30])
def test_images_of_any_shape(shape: list[int], count: int) -> None:
    assert draw_picture(make_records(count, image={**IMAGE, "shape": shape})).ndim == 3


def test_colours_are_shown_as_they_are() -> None:
    records = make_records(1, image={"type": "image", "shape": [8, 8, 3], "levels": 256})
    records.codes["image"][:] = (255, 0, 64)
    seen = np.rint(255 * draw_picture(records)[..., :3]).astype(int).reshape(-1, 3)
    assert (seen == (255, 0, 64)).all(axis=1).mean() > 0.2


def test_black_images_are_black_and_white_ones_white() -> None:
    records = make_records(2, image={**IMAGE, "levels": 2})
    records.codes["image"][0], records.codes["image"][1] = 0, 1
    shown = to_pixels(records.schema.columns["image"], records.codes["image"])  # type: ignore[arg-type]
    assert shown.mean(axis=(1, 2, 3)).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("column", [SERIES, {**SERIES, "length": 1}, {**SERIES, "nullable": False}])
def test_series_with_gaps_or_without(column: dict[str, Any]) -> None:
    ink = [(draw_picture(make_records(count, load=column))[..., :3] < 0.7).sum() for count in (0, 1, 30)]
    assert ink[0] < ink[1] < ink[2]


def test_series_that_never_change_or_are_never_there() -> None:
    records = make_records(4, load=SERIES)
    for code in (0, 20, 21):  # the last is a missing value
        records.codes["load"][:] = code
        draw_picture(records)


def test_images_and_series_in_one_picture() -> None:
    both = draw_picture(make_records(20, image=IMAGE, load=SERIES))
    assert both.shape[0] > 1.5 * draw_picture(make_records(20, image=IMAGE)).shape[0]


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    records = make_records(20, image=IMAGE, load=SERIES, label=LABEL)
    for name in ("a.png", "b.png"):
        write(tmp_path / name, records.take(slice(0, 7)), records.take(slice(7, 20)))
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_what_cannot_be_seen_is_refused(tmp_path: Path) -> None:
    records = make_records(3, label=LABEL)
    with pytest.raises(DataError, match=r"^rows\.png: .* neither; end the name in \.csv$"):
        open_writer(tmp_path / "rows.png", records.schema).__enter__()
    assert not list(tmp_path.iterdir())


def test_too_many_to_be_seen_are_refused(tmp_path: Path) -> None:
    records = make_records(MOST, image=IMAGE)
    write(tmp_path / "all.png", records)
    with pytest.raises(DataError, match=r"^more\.png: a picture shows at most 1,000 records"):
        write(tmp_path / "more.png", records, records.take([0]))
    assert [path.name for path in tmp_path.iterdir()] == ["all.png"]


def test_a_picture_has_a_hundred_records_unless_told() -> None:
    assert choose_count("Digits.PNG", None, 5000) == 100
    assert choose_count("digits.csv.gz", None, 5000) == 5000
    with pytest.raises(DataError, match=r"^all\.png: a picture shows at most 1,000 records"):
        choose_count("folder/all.png", 1001, 5000)


def _cut_title(picture: Any) -> Any:
    return picture[int(0.2 * len(picture)) :]


def test_images_are_the_right_way_up() -> None:
    records = make_records(1, image=IMAGE)
    records.codes["image"][:] = 0
    records.codes["image"][0, 0, 0] = 15
    seen = _cut_title(draw_picture(records)[..., 0])
    rows, columns = np.nonzero(seen < 0.1)  # the black part of it
    white = seen[rows.min() : rows.max(), columns.min() : columns.max()] > 0.9
    half = [part // 2 for part in white.shape]
    assert white[: half[0], : half[1]].any()
    assert not white[half[0] :].any()
    assert not white[:, half[1] :].any()


def test_series_rise_to_the_right() -> None:
    records = make_records(1, load={**SERIES, "nullable": False})
    records.codes["load"][:] = np.arange(5)
    ink = _cut_title(draw_picture(records)[..., 0]) < 0.5
    rows, columns = np.nonzero(ink)
    assert np.corrcoef(rows, columns)[0, 1] < -0.9  # rows count from the top


def test_large_images_are_thinned() -> None:
    column: Any = make_records(1, image={**IMAGE, "shape": [1000, 700, 3]}).schema.columns["image"]
    codes = np.zeros((2, 1000, 700, 3), np.uint8)
    assert to_pixels(column, codes, finest=128).shape == (2, 3, 143, 100)
    assert to_pixels(column, codes).shape == (2, 3, 1000, 700)


def test_labels_of_any_length_and_alphabet() -> None:
    label = {"type": "categorical", "values": ["x" * 5000, "\x1b[2J", "猫", "two\nlines"]}
    records = make_records(40, image=IMAGE, label=label)
    assert all(name.isprintable() and len(name) <= 40 for name in arrange(records).names.values())
    draw_picture(records)
