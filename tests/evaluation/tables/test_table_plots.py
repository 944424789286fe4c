"""Plots of two tables."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.tables.two_tables import (
    SCHEMA,
    compare,
    draw_people,
    encode_frame,
    evaluate_codes,
)

from sundog.evaluation.section import Section
from sundog.evaluation.tables.fidelity import evaluate_fidelity


def test_pictures_show_the_worst_columns_first(section: Section) -> None:
    worst = max(section.details["fidelity"]["tvd_columns"], key=lambda row: row["value"])["columns"][0]
    bars = section.pictures[0].draw().axes[0]
    assert [text.get_text() for text in bars.get_yticklabels()][-1] == worst
    panels = section.pictures[1].draw().axes
    assert panels[0].get_title() == worst
    assert sorted(axes.get_title() for axes in panels if axes.get_title()) == sorted(SCHEMA)
    heat = section.pictures[2].draw().axes
    assert [axes.get_title() for axes in heat[:3]] == ["real", "synthetic", "synthetic − real"]
    real, synthetic, difference = (np.asarray(axes.images[0].get_array()) for axes in heat[:3])
    assert np.allclose(difference, synthetic - real)


def test_panels_hold_all_rows(section: Section) -> None:
    for axes in section.pictures[1].draw().axes[: len(SCHEMA)]:
        if axes.containers:
            shares = [sum(bar.get_width() for bar in bars) for bars in axes.containers]
        else:
            shares = [patch.get_data().values.sum() for patch in axes.patches]  # type: ignore[attr-defined]
        assert shares == pytest.approx([1, 1])


def test_few_columns_are_seen_as_points() -> None:
    names = ["age", "seen", "pain"]
    columns = {name: SCHEMA[name] for name in names}
    section = evaluate_fidelity(
        compare(encode_frame(draw_people(200, 0), columns), encode_frame(draw_people(200, 1), columns))
    )
    assert section.pictures[-1].title == "age and seen"
    panels = section.pictures[-1].draw().axes[:2]
    assert [axes.get_title() for axes in panels] == ["real", "synthetic"]
    assert [np.asarray(axes.images[0].get_array()).sum() for axes in panels] == pytest.approx([1, 1])
    assert all(
        "age" not in picture.title
        for picture in evaluate_fidelity(
            compare(encode_frame(draw_people(50, 0)), encode_frame(draw_people(50, 1)))
        ).pictures
    )


def test_odd_names_and_many_categories_can_be_drawn() -> None:
    columns = {
        "$a_{": {"type": "categorical", "values": [f"${place}^" * 20 for place in range(40)], "nullable": True},
        "a very long name " * 8: {"type": "integer", "min": 0, "max": 10**6, "bins": 1000, "nullable": True},
    }
    rng = np.random.default_rng(0)
    real = {name: rng.integers(0, 41, 50).tolist() for name in columns}
    section = evaluate_codes(columns, real, real)
    from sundog.evaluation.report.plot_style import use_page_style

    with use_page_style():
        for picture in section.pictures:
            picture.draw().canvas.draw()
