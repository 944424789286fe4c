"""Curves of what was kept: accuracy by epochs and steps, by the size of the training set, and of the surest guesses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from imagery.experiment_list import PARTS, SHARES, Lengths, Listed
from imagery.experiments import BlackBox, Sizing, WhiteBox, get_path
from imagery.image_subsets import CIFAR, LFW
from imagery.outcomes import Outcome, read_outcome

STYLES = {LFW: "-", CIFAR: "--"}
GUESSING = {"color": "grey", "linewidth": 0.8, "linestyle": ":"}


def draw_curves(path: Path, lengths: Lengths, sizing: Sizing) -> None:
    """Draw the outcomes that are at hand to a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.4), layout="constrained")
    (by_epochs, by_steps), (by_size, by_top) = figure.subplots(2, 2)
    white = find_outcomes(PARTS["white-box"](lengths), sizing)
    black = find_outcomes([*PARTS["black-box"](lengths), *PARTS["longer"](lengths)], sizing)
    black = {
        each: outcome
        for each, outcome in black.items()
        if outcome.curve and not each.target.people and each.target.epochs == lengths.epochs
    }
    draw_steps(by_epochs, {each: outcome for each, outcome in white.items() if not each.target.people})
    by_epochs.set(xlabel="epochs of the target", ylabel="right among n", title="white box")
    draw_steps(by_steps, black)
    by_steps.set(xlabel="steps of the attacker", title="black box")
    draw_sizes(by_size, find_outcomes(PARTS["sizes"](lengths), sizing))
    draw_tops(by_top, black)
    figure.suptitle("Share of members among the n highest scores; solid lines are LFW, dashed ones CIFAR-10")
    figure.savefig(path, dpi=130)


def find_outcomes(listed: Iterable[Listed], sizing: Sizing) -> dict[Any, Outcome]:
    """Return the outcomes that are at hand, by experiment."""
    found = {each.experiment: read_outcome(get_path(sizing, each.experiment.name, ".json")) for each in listed}
    return {experiment: outcome for experiment, outcome in found.items() if outcome is not None}


def describe(experiment: Any) -> str:
    """Return an experiment's name without its data."""
    name: str = experiment.name
    return name.replace(f"{experiment.target.data} 10%, ", "").removeprefix("white box, ")


def choose_colours(experiments: Iterable[Any]) -> Mapping[str, str]:
    """Return a colour for each kind of experiment, whatever its data."""
    return {kind: f"C{place}" for place, kind in enumerate(dict.fromkeys(map(describe, experiments)))}


def draw_steps(axes: Any, found: Mapping[Any, Outcome]) -> None:
    """Draw accuracy by epochs or steps."""
    colours = choose_colours(found)
    for each, outcome in found.items():
        label = describe(each) if each.target.data == LFW else None
        style = {"color": colours[describe(each)], "linestyle": STYLES[each.target.data], "label": label}
        axes.plot([int(step) for step in outcome.curve], list(outcome.curve.values()), **style)
    axes.axhline(0.1, **GUESSING)
    axes.legend(fontsize=7)


def draw_sizes(axes: Any, found: Mapping[Any, Outcome]) -> None:
    """Draw gains over guessing by the share of images that are members."""
    kinds: tuple[tuple[Any, str, str], ...] = ((WhiteBox, "white box", "C0"), (BlackBox, "gan", "C1"))
    for kind, label, colour in kinds:
        for data, style in STYLES.items():
            gains = {
                each.target.share: outcome.accuracy.value - outcome.accuracy.chance
                for each, outcome in found.items()
                if isinstance(each, kind) and each.target.data == data
            }
            shown = label if data == LFW else None
            axes.plot(list(gains), list(gains.values()), style, color=colour, marker="o", label=shown)
    axes.axhline(0, **GUESSING)
    axes.set(xlabel="members among all images", ylabel="gain over guessing", xticks=SHARES, title="DCGAN, by size")
    axes.legend(fontsize=7)


def draw_tops(axes: Any, found: Mapping[Any, Outcome]) -> None:
    """Draw accuracy by how many of the n guesses are counted, the surest first."""
    colours = choose_colours(found)
    for each, outcome in found.items():
        tops = outcome.accuracy.tops
        style = {"color": colours[describe(each)], "linestyle": STYLES[each.target.data]}
        axes.plot([int(top) for top in tops], list(tops.values()), marker="o", **style)
    axes.axhline(0.1, **GUESSING)
    axes.set(xlabel="per cent of the n guesses, the surest first", title="black box (colours as above)")
