"""The section about the pairs that a model measured: what it draws, what it lists, and when there is none."""

from __future__ import annotations

import json
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PatchCollection, PathCollection
from matplotlib.figure import Figure

from sundog.data.schema import Schema
from sundog.evaluation.evaluator import Report, evaluate
from sundog.evaluation.report.plot_style import use_page_style
from sundog.evaluation.report.svg import render_gallery
from sundog.evaluation.section import Section
from sundog.evaluation.tables.measured_pairs import (
    MOST_DRAWN,
    MOST_LISTED,
    MeasuredPairs,
    PairNoise,
    build_section,
    evaluate_measured_pairs,
)
from sundog.fit.synthesizer import Synthesizer
from sundog.models.released import MeasuredMarginal

NAMES = ["a", "b", "c", "d"]


def make_fidelity(real: Any, synthetic: Any, names: list[str] = NAMES) -> Section:
    matrices = {"columns": names, "real": np.asarray(real).tolist(), "synthetic": np.asarray(synthetic).tolist()}
    return Section("Fidelity", {}, {}, {"fidelity": {"associations": matrices}})


def evaluate_associations(
    real: dict[tuple[int, int], float], *measured: MeasuredMarginal, chance: float = 0.0, rule: Any = None
) -> Section | None:
    """Evaluate a release with these measured marginals; synthetic associations are half as large as the real ones."""
    matrix = np.eye(len(NAMES))
    for (one, other), value in real.items():
        matrix[one, other] = matrix[other, one] = value
    shuffled = np.full(matrix.shape, chance)
    rules = [] if rule is None else [rule]
    schema = Schema.from_dict({"columns": {name: {"type": "boolean"} for name in NAMES}, "rules": rules})
    model = SimpleNamespace(list_measured=lambda charges: list(measured))
    release: Any = SimpleNamespace(
        schema=schema, document=SimpleNamespace(model=model), certificate=SimpleNamespace(charges=[])
    )
    return evaluate_measured_pairs(release, make_fidelity(matrix, matrix / 2), make_fidelity(matrix, shuffled))


def make_pairs(columns: int, *, measured: float = 0.1, seed: int = 0) -> MeasuredPairs:
    rng = np.random.default_rng(seed)
    half = np.triu(rng.uniform(-1, 1, (columns, columns)), 1)
    real = half + half.T
    pairs = list(combinations(range(columns), 2))
    noise = {
        pair: PairNoise(float(rng.uniform(5, 50)), bool(rng.integers(2))) for pair in pairs if rng.random() < measured
    }
    missed = sorted(set(pairs) - set(noise), key=lambda pair: -abs(real[pair]))
    return MeasuredPairs([f"column {place}" for place in range(columns)], real, real / 2, noise, missed)


def draw(section: Section) -> Figure:
    with use_page_style():
        figure = section.pictures[0].draw()
        figure.canvas.draw()
    return figure


# --- what was measured, and what was not ---


def test_the_largest_associations_that_were_not_measured_are_listed_first() -> None:
    real = {(0, 1): 0.9, (0, 2): 0.3, (1, 2): -0.5, (2, 3): 0.05}
    section = evaluate_associations(real, MeasuredMarginal(("a", "b"), 12.0), MeasuredMarginal(("a",), 3.0))
    assert section is not None
    assert section.listings[0].rows == [("1", "b × c", "−0.50", "−0.25", "50%"), ("2", "a × c", "0.30", "0.15", "50%")]
    found = section.details["measured_pairs"]
    assert found["measured"] == [{"columns": ["a", "b"], "deviation": 12.0, "in_part": False}]
    assert [each["columns"] for each in found["not_measured"]] == [["b", "c"], ["a", "c"]]
    assert section.notes[0].startswith("1 of 6 pairs of columns was measured, with noise of ±12 records")


def test_what_shuffled_columns_show_as_well_is_not_listed() -> None:
    section = evaluate_associations({(0, 1): 0.3, (0, 2): 0.2}, MeasuredMarginal(("a",), 3.0), chance=0.15)
    assert section is not None
    assert [row[1] for row in section.listings[0].rows] == ["a × b"]


def test_columns_that_a_rule_derives_are_left_out() -> None:
    rule = {"column": "d", "from": "c", "table": {"true": "false", "false": "true"}}
    section = evaluate_associations({(2, 3): 1.0, (0, 1): 0.4}, MeasuredMarginal(("a",), 3.0), rule=rule)
    assert section is not None
    assert [row[1] for row in section.listings[0].rows] == ["a × b"]
    assert "None of 3 pairs" in section.notes[0]


def test_columns_that_a_rule_is_about_are_left_out() -> None:
    rule = {"when": "b = true", "then": "a = true"}
    section = evaluate_associations({(0, 1): 0.9, (2, 3): 0.8}, MeasuredMarginal(("a", "c"), 2.0), rule=rule)
    assert section is not None
    assert [row[1] for row in section.listings[0].rows] == ["c × d"]


def test_a_triple_measures_its_pairs_in_part() -> None:
    section = evaluate_associations({}, MeasuredMarginal(("a", "b", "c"), 9.0), MeasuredMarginal(("a", "b"), 20.0))
    assert section is not None
    found = {tuple(each["columns"]): each for each in section.details["measured_pairs"]["measured"]}
    assert {columns: (each["deviation"], each["in_part"]) for columns, each in found.items()} == {
        ("a", "b"): (20.0, False),
        ("a", "c"): (9.0, True),
        ("b", "c"): (9.0, True),
    }
    assert "as part of three columns" in section.pictures[0].caption
    assert "clusters" not in section.pictures[0].caption


def test_the_noise_of_clusters_adds_up() -> None:
    pairs = [("a", "b", 0, 3.0), ("a", "b", 1, 4.0), ("a", "c", 1, 5.0)]
    section = evaluate_associations({}, *(MeasuredMarginal((x, y), noise, n) for x, y, n, noise in pairs))
    assert section is not None
    found = [(each["deviation"], each["in_part"]) for each in section.details["measured_pairs"]["measured"]]
    assert found == [(5.0, False), (5.0, True)]
    assert "in some of the clusters" in section.pictures[0].caption


def test_models_without_measured_marginals_have_no_such_section() -> None:
    assert evaluate_associations({(0, 1): 0.9}) is None


# --- the figure ---


@pytest.mark.parametrize("columns", [2, 3, 15, 60])
@pytest.mark.parametrize("measured", [0.0, 0.1, 1.0])
def test_any_number_of_columns_is_drawn(columns: int, measured: float) -> None:
    pairs = make_pairs(columns, measured=measured)
    section = build_section(pairs)
    drawn = pairs.choose_columns()
    axes = draw(section).axes[0]
    assert len(drawn) == min(columns, MOST_DRAWN)
    labels = {text.get_text() for text in (*axes.get_xticklabels(), *axes.get_yticklabels())}
    assert labels == {pairs.names[place] for place in drawn}
    (squares,) = (each for each in axes.collections if isinstance(each, PatchCollection))
    assert len(squares.get_paths()) == len(drawn) * (len(drawn) - 1) // 2
    dots = sum(len(np.asarray(each.get_offsets())) for each in axes.collections if isinstance(each, PathCollection))
    assert dots == sum(set(pair) <= set(drawn) for pair in pairs.noise)
    assert [text.get_text() for text in axes.texts] == [row[0] for row in section.listings[0].rows]
    assert ("columns with the largest associations are drawn" in section.pictures[0].caption) == (columns > MOST_DRAWN)
    assert len(section.listings[0].rows) == min(MOST_LISTED, len(pairs.missed))


def test_dots_are_larger_where_there_was_less_noise_and_squares_darker_where_association_is_strong() -> None:
    real = np.array([[1.0, 0.1, 0.9], [0.1, 1.0, -0.5], [0.9, -0.5, 1.0]])
    noise = {(0, 1): PairNoise(5.0, False), (0, 2): PairNoise(50.0, False), (1, 2): PairNoise(15.0, False)}
    axes = draw(build_section(MeasuredPairs(["a", "b", "c"], real, real, noise, []))).axes[0]
    squares, dots = axes.collections
    assert isinstance(dots, PathCollection)
    place = {tuple(offset): size for offset, size in zip(np.asarray(dots.get_offsets()), dots.get_sizes(), strict=True)}
    assert place[0, 0] > place[1, 1] > place[0, 1]  # (a, b), (b, c) and (a, c): across, down
    assert np.argsort(np.asarray(squares.get_facecolor())[:, 3]).tolist() == [0, 2, 1]


def test_odd_names_can_be_drawn() -> None:
    names = ["$a_{", "x" * 300, "<b>&", "two\nlines", "日本語"]
    pairs = make_pairs(5)
    section = build_section(MeasuredPairs(names, pairs.real, pairs.synthetic, pairs.noise, pairs.missed))
    assert "<b>" not in render_gallery(section.pictures, "s0", section.listings)


# --- from end to end ---


def make_bits(n: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (n, 6))
    bits[:, 1] = np.where(rng.random(n) < 0.9, bits[:, 0], bits[:, 1])
    return pd.DataFrame(bits, columns=[f"bit{place}" for place in range(6)])


def fit_and_evaluate(model: str, columns: int = 6, **settings: Any) -> Report:
    frame = make_bits().iloc[:, :columns]
    schema = Schema.from_dict({"columns": {name: {"type": "integer", "min": 0, "max": 1} for name in frame}})
    release = Synthesizer(model, 2.0, 1e-6, seed=0, **settings).fit(frame, schema).release_
    return evaluate(release, real=frame, rows=1000)


@pytest.mark.parametrize("clusters", [1, 2])
def test_the_page_of_a_release_has_it_and_so_has_its_json(clusters: int) -> None:
    report = fit_and_evaluate("marginals", clusters=clusters)
    assert [section.title for section in report.sections][:2] == ["Fidelity", "Pairs that were measured"]
    pairs = json.loads(json.dumps(report.to_dict()))["details"]["measured_pairs"]
    known = [each["columns"] for each in (*pairs["measured"], *(pairs["not_measured"] if clusters > 1 else []))]
    assert ["bit0", "bit1"] in known
    page = report.to_html()
    assert "Largest associations that were not measured" in page
    assert "Associations in the real data, and measured pairs" in page


def test_one_column_and_other_models_have_none() -> None:
    for report in (fit_and_evaluate("marginals", columns=1), fit_and_evaluate("independent")):
        assert "Pairs that were measured" not in report.to_html()
        assert "measured_pairs" not in report.to_dict()["details"]
