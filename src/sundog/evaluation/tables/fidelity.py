"""Fidelity: how close the synthetic table is to the real one, by column, by pair, and jointly."""

from __future__ import annotations

import math

from threadpoolctl import threadpool_limits

from sundog.evaluation.comparison import Comparison
from sundog.evaluation.measure import Measures
from sundog.evaluation.section import Section
from sundog.evaluation.tables import (
    associations,
    coverage,
    marginal_distances,
    relations,
    shapes_and_trends,
    wasserstein,
)
from sundog.evaluation.tables.distribution_functions import build_distribution_functions
from sundog.evaluation.tables.table_pair import TablePair
from sundog.evaluation.tables.table_plots import plot_tables

METRICS = {
    **shapes_and_trends.METRICS,
    **marginal_distances.METRICS,
    marginal_distances.FURTHEST: marginal_distances.FURTHEST_METRIC,
    **relations.METRICS,
    **associations.METRICS,
    **coverage.METRICS,
    **wasserstein.METRICS,
}


def evaluate_fidelity(comparison: Comparison) -> Section:
    """Compare all scalar columns; images, series and sets have sections of their own.

    >>> import numpy as np
    >>> from sundog.data.records import Records
    >>> from sundog.data.schema import Schema
    >>> schema = Schema.from_dict({"columns": {"sex": {"type": "categorical", "values": ["f", "m"]}}})
    >>> real, synthetic = (Records(schema, {"sex": np.array(codes)}, 4) for codes in ([0, 0, 1, 1], [0, 1, 1, 1]))
    >>> evaluate_fidelity(Comparison(real, synthetic, train=real, test=real)).measures["fidelity.tvd_1way"].value
    0.25
    """
    tables = TablePair.of(comparison)
    with threadpool_limits(1):  # many small matrix products: more threads would only wait for each other
        curves = build_distribution_functions(tables)
        distances = marginal_distances.measure_marginals(tables, comparison)
        related = associations.measure_associations(tables, list(distances.pairs))
        found = (
            shapes_and_trends.score_shapes_and_trends(tables, distances, related, curves),
            distances,
            relations.measure_relations(comparison, list(distances.pairs)),
            related,
            coverage.measure_coverage(tables),
            wasserstein.measure_wasserstein_distances(tables, curves, comparison),
        )
    measures: Measures = {name: measure for each in found for name, measure in each.measures.items()}
    return Section(
        title="Fidelity",
        measures=measures,
        metrics={name: METRICS[name] for name in measures},
        details={"fidelity": {name: detail for each in found for name, detail in each.details.items()}},
        pictures=plot_tables(tables, distances.columns, related),
        notes=_note_omissions(tables, distances),
    )


def _note_omissions(tables: TablePair, distances: marginal_distances.Marginals) -> list[str]:
    """Return notes on pairs and triples that were not measured."""
    notes = []
    for size, kind in ((2, "pairs"), (3, "triples")):
        looked_at, all_of_them = len(distances.ways[size - 1]), math.comb(len(tables.columns), size)
        if looked_at < all_of_them:
            notes.append(f"fidelity: {looked_at} of {all_of_them:,} {kind} of columns were measured, chosen at random")
    return notes
