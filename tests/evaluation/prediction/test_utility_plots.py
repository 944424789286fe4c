"""Plots of how well models predict."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.prediction.people import MODELS, compare, draw_people, get_values

from sundog.evaluation.prediction.utility import (
    evaluate_utility,
)
from sundog.evaluation.prediction.utility_plots import plot_roc


def test_the_curves_are_of_the_model_that_is_best_with_real_data() -> None:
    comparison = compare(draw_people(300, 0, strength=0.3), draw_people(300, 1), "ill", real=draw_people(300, 2))
    release, ceiling, floor = (
        evaluate_utility(each) for each in (comparison, comparison.build_ceiling(), comparison.build_floor())
    )
    areas = {model: get_values(ceiling)[f"tstr.{model}.auc"] for model in MODELS}
    best = max(areas, key=lambda model: areas[model])
    axes = plot_roc(release, ceiling, floor).draw().axes[0]
    lines = {str(line.get_label()): line for line in axes.lines[1:]}
    assert list(lines) == [
        f"real data ({areas[best]:.3f})",
        f"this release ({get_values(release)[f'tstr.{best}.auc']:.3f})",
        f"independent columns ({get_values(floor)[f'tstr.{best}.auc']:.3f})",
    ]
    fpr, tpr = (np.asarray(part) for part in lines[f"real data ({areas[best]:.3f})"].get_data())
    assert np.trapezoid(tpr, fpr) == pytest.approx(areas[best], abs=0.01)


@pytest.mark.parametrize("target", ["ill", "age"])
def test_a_dot_for_each_model(target: str) -> None:
    section = evaluate_utility(compare(draw_people(100, 0), draw_people(100, 1), target))
    (picture,) = section.pictures
    axes = picture.draw().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()][1:] == ["random forest", "gradient boosting"]
    score = "accuracy" if target == "ill" else "r2"
    dots = [float(np.asarray(line.get_xdata())[0]) for line in axes.lines if line.get_marker() == "o"]
    assert dots == [m.value for name, m in section.measures.items() if name.endswith(f".{score}")]
