"""Pictures of how well models predict: a score of each, and what they trade false alarms for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sundog.evaluation.measure import Measures
from sundog.evaluation.section import Picture, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SCORE = {"accuracy": "accuracy on real records", "r2": "R² on real records"}
_BLIND = {"accuracy": "always saying the most common class", "r2": "always saying the mean"}


def plot_scores(measures: Measures, names: Mapping[str, str], score: str, *, blind: float) -> Picture:
    """A dot with its interval for each model.

    Args:
        measures: of the section.
        names: of models, as they are shown.
        score: the last part of the measures' names.
        blind: the score of whoever looks at no column.
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
        caption=f"Each dot is a model that learned from synthetic records only, with its 95% interval; the dotted line "
        f"is {_BLIND[score]}. Further right is better.",
        draw=draw,
    )


def plot_roc(release: Section, ceiling: Section, floor: Section) -> Picture:
    """The curves of the model that is best with real data: trained on the release, on real and on independent data."""
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
        axes.set_xlabel("share of false alarms")
        axes.set_ylabel("share found")
        axes.set_aspect("equal")
        axes.legend(title="learned from (area)", loc="lower right")
        return figure

    return Picture(
        title="How many are found, for how many false alarms",
        caption="A model that learned from this release, tested on real records, beside the same model that learned "
        "from real data and from columns that know nothing of each other. The further a curve bends to the upper left, "
        "the better; the dotted line is guessing.",
        draw=draw,
    )
