"""Plots of predictions: the score of each model, and ROC curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sundog.evaluation.measure import Measures
from sundog.evaluation.section import Picture, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SCORE = {"accuracy": "accuracy on real records", "r2": "R² on real records"}
_BLIND = {"accuracy": "always predicting the most common class", "r2": "always predicting the mean"}


def plot_scores(measures: Measures, names: Mapping[str, str], score: str, *, blind: float) -> Picture:
    """Plot the score of each model with its interval.

    Args:
        measures: the measures of the section.
        names: the names of models to show.
        score: the last part of the measures' names.
        blind: the score of a model without features.
    """
    shown = {name.split(".")[-2]: measure for name, measure in measures.items() if name.endswith(f".{score}")}

    def draw() -> Figure:
        from matplotlib.figure import Figure

        from sundog.evaluation.report.plot_style import SYNTHETIC

        figure = Figure(figsize=(6, 0.8 + 0.4 * len(shown)), layout="constrained")
        axes = figure.subplots()
        for place, measure in enumerate(shown.values()):
            axes.plot([measure.low, measure.high], [place, place], color=SYNTHETIC)
            axes.plot(measure.value, place, "o", color=SYNTHETIC)
        axes.axvline(blind, color="black", linestyle=":", linewidth=1)
        axes.set_yticks(range(len(shown)), [names[model] for model in shown])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_xlabel(_SCORE[score])
        return figure

    return Picture(
        title="Trained on synthetic, tested on real",
        caption=f"Each dot is a model trained on synthetic records only, with its 95% interval; the dotted line "
        f"is {_BLIND[score]}. Further right is better.",
        draw=draw,
    )


def plot_roc(release: Section, ceiling: Section, floor: Section) -> Picture:
    """Plot ROC curves of the model that is best with real data, trained on the release, real and independent data."""
    best = max(ceiling.details["roc"], key=lambda model: ceiling.measures[f"utility.tstr.{model}.auc"].value)

    def draw() -> Figure:
        from matplotlib.figure import Figure

        from sundog.evaluation.report.plot_style import ACCENT, REAL, SYNTHETIC

        figure = Figure(figsize=(4.5, 4.5), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="black", linestyle=":", linewidth=1)
        turns = {
            "real data": (ceiling, REAL, "-"),
            "this release": (release, SYNTHETIC, "-"),
            "independent columns": (floor, ACCENT, "--"),
        }
        for label, (section, colour, line) in turns.items():
            area = section.measures[f"utility.tstr.{best}.auc"].value
            curve = section.details["roc"][best]
            axes.plot(curve["fpr"], curve["tpr"], line, color=colour, label=f"{label} ({area:.3f})")
        axes.set_xlabel("false positive rate")
        axes.set_ylabel("true positive rate")
        axes.set_aspect("equal")
        axes.legend(title="trained on (area)", loc="lower right")
        return figure

    return Picture(
        title="ROC curves",
        caption="A model trained on this release and tested on real records, beside the same model trained on real "
        "data and on independently shuffled columns. The further a curve bends to the upper left, the better; the "
        "dotted line is guessing.",
        draw=draw,
    )
