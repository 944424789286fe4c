"""Evaluation of sets: item frequencies, co-occurrence of items, and set sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sundog.data.columns import Form
from sundog.data.records import Records
from sundog.errors import DataError
from sundog.evaluation.bootstrap import Floats, PairedAverages, PairedBlocks
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.measure import Measure, Measures, Metric, compute_bonferroni_quantile
from sundog.evaluation.section import Picture, Section
from sundog.evaluation.sets.counting_queries import evaluate_queries
from sundog.evaluation.total_variation import compute_total_variation, normalise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIRED = 200  # the most frequent items, whose pairs are compared
TOP = 20
DOTS = 2000  # more are drawn as an image, to keep the page small

METRICS = {
    "sets.item_frequency_error": Metric(
        "Error of item frequencies",
        "low",
        "The error of the share of records that hold an item, averaged over all items.",
        ideal=0.0,
    ),
    "sets.item_tvd": Metric(
        "Distance of item frequencies",
        "low",
        "The share of all held items that would have to be exchanged to get the real frequencies: 0 is the same, 1 is "
        "nothing in common.",
        ideal=0.0,
    ),
    "sets.furthest_item": Metric(
        "Error of the furthest item",
        "low",
        "The error of the share of records that hold an item, for the item with the largest error; the interval allows "
        "for the number of items.",
        ideal=0.0,
    ),
    "sets.pair_frequency_error": Metric(
        "Error of pair frequencies",
        "low",
        f"The error of the share of records that hold two items together, averaged over the pairs of the {PAIRED} most "
        "frequent items.",
        ideal=0.0,
    ),
    "sets.size_tvd": Metric(
        "Distance of set sizes",
        "low",
        "The share of records that would have to change their number of items to get the real distribution of sizes.",
        ideal=0.0,
    ),
    "sets.topk_overlap": Metric(
        "Top items found",
        "high",
        f"The share of the {TOP} most frequent real items that are among the {TOP} most frequent synthetic ones.",
    ),
}


def evaluate_sets(comparison: Comparison, name: str) -> Section:
    """Compare the sets of one column, also by the counting queries of `sundog.evaluation.sets.counting_queries`."""
    column = comparison.real.schema.columns[name]
    if column.form is not Form.SET:
        raise DataError(f"column {name!r} is {column.type}, not a set; name a set column")
    real, synthetic = _read_sets(comparison.real, name), _read_sets(comparison.synthetic, name)
    blocks = PairedBlocks(real=real.shape[0], synthetic=synthetic.shape[0], rng=comparison.make_rng(f"sets of {name}"))
    items = blocks.average(real, synthetic)
    frequent = _find_top(items.real, TOP)
    sizes = _count_sizes(blocks, real, synthetic)
    together = _measure_differences(items, real.shape[0], synthetic.shape[0])
    measures: Measures = {
        "sets.item_frequency_error": items.measure_difference(highest=1.0),
        "sets.item_tvd": items.measure(_compare_items, highest=1.0),
        "sets.furthest_item": Measure(*(float(end.max()) for end in together)),
        "sets.size_tvd": sizes.measure(compute_total_variation, highest=1.0),
        "sets.topk_overlap": items.measure(lambda p, q: _measure_overlap(p, q, len(frequent)), highest=1.0),
    }
    if real.shape[1] > 1:
        most = np.argsort(-items.real, kind="stable")[:PAIRED]
        pairs = blocks.average(real[:, most], synthetic[:, most], _count_pairs)
        measures["sets.pair_frequency_error"] = pairs.measure_difference(highest=1.0)
    queries = evaluate_queries(real, synthetic, comparison.make_rng(f"queries of {name}"))
    details = {
        "column": name,
        "mean_size": {"real": float(items.real.sum()), "synthetic": float(items.synthetic.sum())},
        "furthest_items": _list_furthest(column.items, together),
        "top_items": [
            {"item": column.items[item], "real": float(items.real[item]), "synthetic": float(items.synthetic[item])}
            for item in frequent
        ],
    }
    return Section(
        title="Sets",
        measures={**measures, **queries.measures},
        metrics={**{measure: METRICS[measure] for measure in measures}, **queries.metrics},
        details={"sets": details, **queries.details},
        pictures=[*_plot_sets(items, sizes, records=min(real.shape[0], synthetic.shape[0])), *queries.pictures],
        notes=queries.notes,
    )


def _compare_items(real: Floats, synthetic: Floats) -> float:
    """Return the total variation distance of the shares among all held items; without any, every share is 0."""
    return float(compute_total_variation(normalise(real, empty=0.0), normalise(synthetic, empty=0.0)))


def _read_sets(records: Records, name: str) -> Any:
    """Return the sets as a sparse matrix of 0 and 1, (records, items), with integers wide enough to count with."""
    codes = sparse.csr_array(records.codes[name], dtype=np.int64, copy=True)
    codes.eliminate_zeros()
    if not codes.shape[0]:
        raise DataError(f"column {name!r} has no records to compare; give at least one of each kind")
    return codes


def _find_top(frequencies: Floats, k: int) -> list[int]:
    """Return the most frequent items that occur, ties in the order of the universe."""
    order = np.argsort(-frequencies, kind="stable")[:k]
    return [int(item) for item in order if frequencies[item] > 0]


def _measure_overlap(real: Floats, synthetic: Floats, k: int) -> float:
    return len(set(_find_top(real, k)) & set(_find_top(synthetic, k))) / k if k else 1.0


def _measure_differences(items: PairedAverages, real: int, synthetic: int) -> tuple[Floats, Floats, Floats]:
    """Return the error of the share of each item with simultaneous intervals, as values, lower and upper ends.

    Differences of two proportions with one success and one failure added to each (Agresti and Caffo 2000), so that
    intervals of rare items are not too narrow.
    """
    p, q = ((share * count + 1) / (count + 2) for share, count in ((items.real, real), (items.synthetic, synthetic)))
    error = np.sqrt(p * (1 - p) / (real + 2) + q * (1 - q) / (synthetic + 2))
    reach, apart = compute_bonferroni_quantile(len(p)) * error, np.abs(p - q)
    value = np.abs(items.real - items.synthetic)
    return value, np.minimum(value, np.maximum(0, apart - reach)), np.maximum(value, apart + reach)


def _list_furthest(
    names: Sequence[str | int], together: tuple[Floats, Floats, Floats]
) -> dict[str, dict[str, float | None]]:
    """Return the items with the largest certain errors, and the one with the largest possible error."""
    value, low, high = together
    places = [*np.lexsort((value, low))[::-1][:TOP].tolist(), int(high.argmax())]
    return {str(names[place]): Measure(*(float(end[place]) for end in together)).to_dict() for place in places}


def _count_sizes(blocks: PairedBlocks, real: Any, synthetic: Any) -> PairedAverages:
    ours, theirs = np.diff(real.indptr), np.diff(synthetic.indptr)
    count = int(max(ours.max(), theirs.max())) + 1
    return blocks.average(ours, theirs, lambda rows: np.bincount(rows, minlength=count))


def _count_pairs(held: Any) -> NDArray[np.int64]:
    together = (held.T @ held).toarray()
    counts: NDArray[np.int64] = together[np.triu_indices(len(together), 1)]
    return counts


# --- plots ---------------------------------------------------------------------------------------------------------


def _plot_sets(items: PairedAverages, sizes: PairedAverages, records: int) -> list[Picture]:
    return [
        Picture(
            "Item frequencies",
            "One dot per item. On the line, synthetic records hold it as often as real ones; items that one side never "
            "holds are at the edge.",
            lambda: _draw_items(items.real, items.synthetic, records),
        ),
        Picture(
            "Set sizes",
            "The share of records of each size; the two should coincide.",
            lambda: _draw_sizes(sizes.real, sizes.synthetic),
        ),
    ]


def _draw_items(real: Floats, synthetic: Floats, records: int) -> Figure:
    from matplotlib.figure import Figure

    from sundog.evaluation.report.plot_style import ACCENT, SYNTHETIC, label_percent

    figure = Figure(figsize=(4.2, 3.8), layout="constrained")
    axes = figure.subplots()
    never = 0.5 / records  # where zero is shown on a logarithmic axis
    seen = (real > 0) | (synthetic > 0)
    axes.plot([never, 1.0], [never, 1.0], color=ACCENT, linewidth=1.0)
    shown = {"s": 9, "alpha": 0.6, "linewidths": 0, "color": SYNTHETIC, "rasterized": seen.sum() > DOTS}
    axes.scatter(np.maximum(real[seen], never), np.maximum(synthetic[seen], never), **shown)
    axes.set(xscale="log", yscale="log", xlabel="real records that hold it", ylabel="synthetic records that hold it")
    for axis in (axes.xaxis, axes.yaxis):
        label_percent(axis)
    return figure


def _draw_sizes(real: Floats, synthetic: Floats) -> Figure:
    from matplotlib.figure import Figure

    from sundog.evaluation.report.plot_style import REAL, SYNTHETIC

    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    axes = figure.subplots()
    edges = np.arange(len(real) + 1) - 0.5
    axes.stairs(real, edges, color=REAL, fill=True, alpha=0.35, label="real")
    axes.stairs(synthetic, edges, color=SYNTHETIC, linewidth=1.6, label="synthetic")
    axes.set(xlabel="items", ylabel="share of records")
    axes.legend()
    return figure
