"""A sample report on a table of people, for the tests of pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sundog.evaluation.measure import Measure, Measures, Metric
from sundog.evaluation.report.plot_style import ACCENT, REAL, SYNTHETIC
from sundog.evaluation.section import Listing, Picture, Section
from sundog.evaluation.tables.measured_pairs import MeasuredPairs, PairNoise, build_section
from sundog.privacy.events import Charge, DiscreteGaussian
from sundog.release.certificate import Certificate

HOSTILE = "<script>alert(1)</script>"
COLUMNS = ("age", "workclass", "education", "marital status", "occupation", "sex", "hours", "income")


@dataclass(frozen=True)
class Sample:
    """Stands in for a `Report`: any object with these is good enough for a page."""

    name: str
    sections: tuple[Section, ...]
    ceiling: Measures
    floor: Measures
    about: Mapping[str, str | int | float | None]
    notes: tuple[str, ...] = ()
    certificate: Certificate | None = None
    published: Measures = field(default_factory=dict)

    @property
    def measures(self) -> Measures:
        return {name: measure for section in self.sections for name, measure in section.measures.items()}


FIDELITY = {
    "fidelity.tvd_1way": Metric(
        "Distance of single columns", "low", "The share of records that would have to change to get the real histogram."
    ),
    "fidelity.tvd_2way": Metric(
        "Distance of pairs of columns", "low", "The same for tables of two columns, in the mean over all pairs."
    ),
    "fidelity.tvd_furthest_column": Metric(
        "Distance of the furthest column", "low", "The same for the column that is furthest from the real one."
    ),
    "fidelity.relations_kept": Metric("Relations kept", "high", "The share of what links two columns that is kept."),
    "fidelity.relations_error": Metric("Error of relations", "low", "How far relations between columns are off."),
    "fidelity.correlation": Metric(
        "Error of correlations", "low", "By how much the correlation of two columns is off, in the mean over all pairs."
    ),
    "fidelity.queries": Metric(
        "Error of counting queries", "low", "By how much the answer to a random count is off, as a share of the answer."
    ),
}
UTILITY = {
    "utility.tstr.logistic.auc": Metric(
        "Logistic regression, AUC", "high", "How well a model that learned from the data ranks real test records."
    ),
    "utility.tstr.forest.auc": Metric(
        "Forest, AUC", "high", "How well a forest that learned from the data ranks real test records by income."
    ),
    "utility.tstr.forest.accuracy": Metric(
        "Forest, accuracy", "high", "The share of real test records whose income the forest predicts rightly."
    ),
    "utility.tstr.mlp.auc": Metric("Neural network, AUC", "high", "The same for a small neural network."),
}
CEILING = {
    "fidelity.tvd_1way": Measure.exact(0.0),
    "fidelity.tvd_2way": Measure.exact(0.0),
    "fidelity.tvd_furthest_column": Measure.exact(0.0),
    "fidelity.relations_kept": Measure.exact(1.0),
    "fidelity.relations_error": Measure.exact(0.0),
    "fidelity.correlation": Measure(0.0, 0.0, 0.002),
    "fidelity.queries": Measure(0.011, 0.009, 0.013),
    "utility.tstr.logistic.auc": Measure(0.9021, 0.897, 0.9072),
    "utility.tstr.forest.auc": Measure(0.9013, 0.8962, 0.9064),
    "utility.tstr.forest.accuracy": Measure(0.8532, 0.8477, 0.8586),
    "utility.tstr.mlp.auc": Measure(0.8987, 0.8934, 0.904),
}
FLOOR = {
    "fidelity.tvd_1way": Measure.exact(0.0),
    "fidelity.tvd_2way": Measure(0.1203, 0.1189, 0.1217),
    "fidelity.tvd_furthest_column": Measure.exact(0.0),
    "fidelity.relations_kept": Measure(0.001, -0.012, 0.014),
    "fidelity.relations_error": Measure(0.998, 0.985, 1.012),
    "fidelity.correlation": Measure(0.1411, 0.1391, 0.1431),
    "fidelity.queries": Measure(0.318, 0.297, 0.339),
    "utility.tstr.logistic.auc": Measure(0.4985, 0.489, 0.508),
    "utility.tstr.forest.auc": Measure(0.5012, 0.4915, 0.5109),
    "utility.tstr.forest.accuracy": Measure(0.7638, 0.7573, 0.7703),
    "utility.tstr.mlp.auc": Measure(0.5031, 0.4935, 0.5127),
}
VALUES = {
    "fidelity.tvd_1way": Measure(0.0213, 0.0201, 0.0225),
    "fidelity.tvd_2way": Measure(0.0921, 0.0902, 0.0940),
    "fidelity.tvd_furthest_column": Measure(0.0822, 0.0711, 0.0934),
    "fidelity.relations_kept": Measure(0.3612, 0.3301, 0.3923),
    "fidelity.relations_error": Measure(0.4801, 0.4502, 0.5101),
    "fidelity.correlation": Measure(0.0617, 0.0598, 0.0636),
    "fidelity.queries": Measure(0.361, 0.342, 0.380),
    "utility.tstr.logistic.auc": Measure(0.8978, 0.8925, 0.9031),
    "utility.tstr.forest.auc": Measure(0.7624, 0.7543, 0.7705),
    "utility.tstr.forest.accuracy": Measure(0.7661, 0.7596, 0.7726),
    "utility.tstr.mlp.auc": Measure(float("nan"), 0.0, 1.0),
}


def make_certificate(epsilon: float = 1.0) -> Certificate:
    return Certificate(
        private=True,
        epsilon=epsilon,
        delta=1e-6,
        spent={"pld": epsilon, "rdp": epsilon * 1.08, "moments": None},
        unit=None,
        cap=1,
        neighbours="add or remove one unit",
        noise="ChaCha20 and AES-256 keyed by the operating system",
        charges=[
            Charge(event=DiscreteGaussian(sigma=41.2 / epsilon), purpose=f"marginal of {name}") for name in COLUMNS[:5]
        ],
        assumed_public=["the schema: names and types of columns, declared values, bounds and resolutions"],
    )


def make_sample(name: str = "adult.sundog", epsilon: float = 1.0, *, shift: float = 0.0) -> Sample:
    """A release whose single columns are close and whose relations are mostly lost."""
    return Sample(
        name=name,
        sections=(
            Section(
                "Fidelity",
                _make_part("fidelity", shift),
                FIDELITY,
                {"fidelity": _make_details()},
                _make_fidelity_pictures(),
                notes=(),
            ),
            build_section(_make_measured_pairs()),
            Section(
                "Usefulness for prediction",
                _make_part("utility", shift),
                UTILITY,
                pictures=(_curves(), _points(400)),
                notes=("The neural network found only one class in the synthetic records.",),
            ),
        ),
        ceiling=dict(CEILING),
        floor=dict(FLOOR),
        about={
            "target": "income",
            "real records": 32561,
            "synthetic records": 32561,
            "seed": 20240611,
            "holdout": None,
            "versions": "sundog 0.1.0, numpy 2.4.6, scikit-learn 1.9.1, torch 2.13.0",
            "command": "sundog evaluate adult.sundog --real adult.csv --target income -o report.html",
        },
        notes=("No holdout was given: a random quarter of the real records stood in for one.",),
        certificate=make_certificate(epsilon),
        published={"fidelity.tvd_1way": Measure(0.0244, 0.0171, 0.0317)},
    )


def make_hostile_sample() -> Sample:
    """The same with markup wherever text comes from data."""
    metric = Metric(HOSTILE, "low", f"About {HOSTILE}")
    section = Section(
        f"About {HOSTILE}",
        {f"x.{HOSTILE}": Measure(0.5, 0.4, 0.6)},
        {f"x.{HOSTILE}": metric},
        pictures=(_bars(HOSTILE, (HOSTILE, "a\x00b\x1b[1m", '" onload="alert(1)', "$x_$", "日本語", "é")),),
        notes=(HOSTILE,),
        listings=[Listing(HOSTILE, HOSTILE, (HOSTILE,) * 3, [("1", HOSTILE, "a\x00b"), ("2", "x" * 200, "−0.5")])],
    )
    return replace(
        make_sample(HOSTILE),
        sections=(section,),
        notes=(HOSTILE,),
        about={HOSTILE: HOSTILE},
        published={HOSTILE: Measure.exact(1.0)},
        certificate=make_certificate().model_copy(update={"unit": HOSTILE, "assumed_public": [HOSTILE]}),
    )


def _make_measured_pairs() -> MeasuredPairs:
    """Of all pairs of columns a third was measured, one of them in part."""
    size = len(COLUMNS)
    real = np.asarray(np.corrcoef(np.random.default_rng(1).normal(size=(size, 12))))
    noise = {pair: PairNoise(10.0 + 3 * sum(pair), pair == (0, 1)) for pair in combinations(range(size), 2)}
    noise = {pair: each for pair, each in noise.items() if sum(pair) % 3 == 1}
    missed = [pair for pair in combinations(range(size), 2) if pair not in noise and abs(real[pair]) > 0.2]
    return MeasuredPairs(COLUMNS, real, real / 2, noise, missed)


def _make_details() -> dict[str, Any]:
    """By column; `age` is the furthest."""
    columns = {name: Measure(0.02, 0.01, 0.03).to_dict() for name in COLUMNS}
    furthest = VALUES["fidelity.tvd_furthest_column"].to_dict()
    return {"tvd_columns_together": {**columns, "age": furthest}, "weakest_pair": None}


def _make_part(prefix: str, shift: float) -> Measures:
    moved = {}
    for name, measure in VALUES.items():
        if name.startswith(prefix):
            times = 1 + shift if prefix == "utility" else 1 - 6 * shift
            moved[name] = Measure(measure.value * times, measure.low * times, measure.high * times)
    return moved


def _make_fidelity_pictures() -> tuple[Picture, ...]:
    return (
        _ages(),
        _bars("Distance of each column", COLUMNS),
        _heatmaps(),
        _digits(),
        _points(12_000, "Every record, in two directions"),
    )


def _ages() -> Picture:
    def draw() -> Figure:
        rng = np.random.default_rng(0)
        figure = Figure(figsize=(5.2, 3.2), layout="constrained")
        axes = figure.subplots()
        edges = np.arange(15, 95, 5)
        for colour, label, mean, fill in ((REAL, "real", 38, True), (SYNTHETIC, "synthetic", 40, False)):
            counts, _ = np.histogram(rng.gamma(9, mean / 9, 20_000), edges, density=True)
            axes.stairs(counts, edges, color=colour, fill=fill, alpha=0.35 if fill else 1, linewidth=1.6, label=label)
        axes.set_xlabel("age")
        axes.set_ylabel("density")
        axes.legend()
        return figure

    return Picture(
        "age", "Real records are filled, synthetic ones are a line. Where they agree, one hides the other.", draw
    )


def _bars(title: str, names: tuple[str, ...]) -> Picture:
    def draw() -> Figure:
        figure = Figure(figsize=(5.2, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.barh(names, np.linspace(0.05, 0.005, len(names)), color=SYNTHETIC)
        axes.invert_yaxis()
        axes.set_xlabel("distance")
        axes.set_title(names[0] if "<" in names[0] else "")
        return figure

    return Picture(title, f"The longer a bar, the further is {names[0]} from the real one.", draw)


def _heatmaps() -> Picture:
    def draw() -> Figure:
        rng = np.random.default_rng(1)
        real = np.asarray(np.corrcoef(rng.normal(size=(8, 12))))
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        for axes, (title, shown) in zip(
            figure.subplots(1, 3), (("real", real), ("synthetic", real * 0.4), ("difference", real * 0.6)), strict=True
        ):
            image = axes.imshow(shown, vmin=-1, vmax=1, cmap="RdBu_r")
            axes.set_title(title)
            axes.set_xticks(range(8), COLUMNS, rotation=90)
            axes.set_yticks(range(8), COLUMNS if title == "real" else [""] * 8)
            for place in range(8):
                axes.text(place, place, f"{shown[place, place]:.1f}", ha="center", va="center", fontsize=7)
        figure.colorbar(image, ax=figure.axes, shrink=0.8)
        return figure

    return Picture("Correlations", "Each square is a pair of columns. The right one should be white.", draw, wide=True)


def _digits() -> Picture:
    def draw() -> Figure:
        rng = np.random.default_rng(2)
        figure = Figure(figsize=(5.2, 2.4), layout="constrained")
        for axes in figure.subplots(2, 6).flat:
            axes.imshow(rng.random((8, 8)), cmap="gray")
            axes.set_axis_off()
        return figure

    return Picture("Some records", "Real ones above, synthetic ones below.", draw)


def _curves() -> Picture:
    def draw() -> Figure:
        figure = Figure(figsize=(5.2, 3.6), layout="constrained")
        axes = figure.subplots()
        x = np.linspace(0, 1, 100)
        axes.plot(x, x**0.12, color=REAL, label="real")
        axes.plot(x, x**0.32, color=SYNTHETIC, label="synthetic")
        axes.plot(x, x, color="black", linestyle=":", linewidth=0.8, label="guessing")
        axes.set_xlabel("share of others taken for rich")
        axes.set_ylabel("share of the rich found")
        axes.legend(loc="lower right")
        return figure

    return Picture("Who earns more than 50,000", "The nearer to the upper left corner, the better.", draw)


def _points(count: int, title: str = "Counting queries") -> Picture:
    def draw() -> Figure:
        rng = np.random.default_rng(3)
        true = 10 ** rng.uniform(1, 4, count)
        figure = Figure(figsize=(5.2, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.plot([10, 10_000], [10, 10_000], color=ACCENT, linewidth=1)
        axes.scatter(true, true * rng.lognormal(0, 0.3, count), s=8, alpha=0.5, linewidths=0, color=SYNTHETIC)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("true answer")
        axes.set_ylabel("synthetic answer")
        return figure

    return Picture(title, "Each point is a query. Those on the line are answered rightly.", draw)
