"""Which pairs of columns a release's model measured, and the largest associations that it did not.

A model of marginals has noisy counts of some pairs of columns, and infers all others from them. An association that is
large in the real data, and that no measured pair shows, may be lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from sundog.data.schema import Schema
from sundog.evaluation.bootstrap import Floats
from sundog.evaluation.section import Listing, Section
from sundog.evaluation.tables.measured_pairs_plot import format_noise, plot_matrix
from sundog.models.released import MeasuredMarginal
from sundog.release.release import Release

LEAST = 0.1  # beyond that of shuffled columns: a smaller association is not listed
MOST_LISTED = 10
MOST_DRAWN = 30  # columns

Pair = tuple[int, int]  # the places of two columns, the smaller first


@dataclass(frozen=True)
class PairNoise:
    """The noise with which a pair was measured.

    Args:
        deviation: the standard deviation of the noise in a cell, in records.
        in_part: whether it was measured only as part of a triple, or only in some clusters of a mixture.
    """

    deviation: float
    in_part: bool


@dataclass(frozen=True)
class MeasuredPairs:
    """The associations of all pairs that a model could measure, and the noise of those that it did.

    Args:
        names: the columns.
        real: the associations in the real data, a symmetric matrix.
        synthetic: those in the synthetic data.
        noise: of the measured pairs.
        missed: the pairs with a large association that were not measured, the largest first.
        clusters: of a mixture; 1 otherwise.
    """

    names: Sequence[str]
    real: Floats
    synthetic: Floats
    noise: Mapping[Pair, PairNoise]
    missed: Sequence[Pair]
    clusters: int = 1

    @property
    def noise_range(self) -> tuple[float, float]:
        """The least and the most noise of a measured pair."""
        deviations = [each.deviation for each in self.noise.values()]
        return min(deviations), max(deviations)

    @property
    def listed(self) -> Sequence[Pair]:
        """The missed pairs that are shown."""
        return self.missed[:MOST_LISTED]

    def choose_columns(self) -> list[int]:
        """Return the columns to draw: all, or those of the listed pairs and others with large associations."""
        largest = np.max(np.abs(self.real) * (1 - np.eye(len(self.names))), axis=0)
        in_list = {place for pair in self.listed for place in pair}
        order = sorted(range(len(self.names)), key=lambda place: (place not in in_list, -largest[place]))
        return sorted(order[:MOST_DRAWN])


def evaluate_measured_pairs(release: Release, fidelity: Section, floor: Section) -> Section | None:
    """Return the section about the pairs that were measured; None if the model measures none, or there are none.

    Args:
        release: what is evaluated.
        fidelity: the section with the associations in real and synthetic data.
        floor: the same section for independent columns.
    """
    measured = release.document.model.list_measured(release.certificate.charges)
    found, chance = (each.details["fidelity"]["associations"] for each in (fidelity, floor))
    modelled = release.schema.modelled.columns  # without columns that rules derive
    places = [place for place, name in enumerate(found["columns"]) if name in modelled]
    if not measured or len(places) < 2:
        return None
    real, synthetic, shuffled = (
        np.array(matrix, np.float64)[np.ix_(places, places)]
        for matrix in (found["real"], found["synthetic"], chance["synthetic"])
    )
    names = [found["columns"][place] for place in places]
    clusters = len({marginal.cluster for marginal in measured})
    noise = _find_noise(names, measured, clusters)
    known = {*noise, *_list_ruled_pairs(names, release.schema.modelled)}
    missed = [
        pair
        for pair in combinations(range(len(names)), 2)
        if pair not in known and abs(real[pair]) - abs(shuffled[pair]) >= LEAST
    ]
    missed.sort(key=lambda pair: -abs(real[pair]))
    return build_section(MeasuredPairs(names, real, synthetic, noise, missed, clusters))


def _list_ruled_pairs(names: Sequence[str], schema: Schema) -> set[Pair]:
    """Return the pairs that a rule is about: it holds in every record, measured or not."""
    places = {name: place for place, name in enumerate(names)}
    ruled = (sorted(places[name] for name in rule.names if name in places) for _, rule in schema.bind_rules().rules)
    return {pair for each in ruled for pair in combinations(each, 2)}


def _find_noise(names: Sequence[str], measured: Sequence[MeasuredMarginal], clusters: int) -> dict[Pair, PairNoise]:
    """Return the noise of each pair; that of clusters adds up."""
    places = {name: place for place, name in enumerate(names)}
    whole: dict[Pair, list[float]] = {}
    within: dict[Pair, list[float]] = {}  # triples
    for marginal in measured:
        if marginal.is_fine:  # as a whole it was measured, too
            continue
        for one, other in combinations(marginal.columns, 2):
            pair = (min(places[one], places[other]), max(places[one], places[other]))
            (whole if len(marginal.columns) == 2 else within).setdefault(pair, []).append(marginal.deviation)
    return {
        pair: PairNoise(math.hypot(*whole[pair]), in_part=len(whole[pair]) < clusters)
        if pair in whole
        else PairNoise(min(within[pair]), in_part=True)
        for pair in sorted({*whole, *within})
    }


# --- the section ---


def build_section(pairs: MeasuredPairs) -> Section:
    """Return the section with the figure, the table and a sentence."""
    drawn = pairs.choose_columns()
    return Section(
        "Pairs that were measured",
        measures={},
        metrics={},
        details={"measured_pairs": _list_details(pairs)},
        pictures=[plot_matrix(pairs, drawn)],
        listings=[_list_missed(pairs)],
        notes=[_describe(pairs)],
    )


def _describe(pairs: MeasuredPairs) -> str:
    """Return how many pairs were measured, and with what noise."""
    possible = math.comb(len(pairs.names), 2)
    if not pairs.noise:
        return f"None of {possible:,} pairs of columns was measured in the private records."
    ends = " to ±".join(dict.fromkeys(map(format_noise, pairs.noise_range)))
    were = "was" if len(pairs.noise) == 1 else "were"
    rest = " The model infers all others from these." if len(pairs.noise) < possible else ""
    return (
        f"{len(pairs.noise):,} of {possible:,} pairs of columns {were} measured, with noise of ±{ends} records in each "
        f"cell (one standard deviation).{rest}"
    )


def _list_missed(pairs: MeasuredPairs) -> Listing:
    """Return the table of the largest associations that were not measured."""
    rows = []
    for number, pair in enumerate(pairs.listed, start=1):
        real, synthetic = pairs.real[pair], pairs.synthetic[pair]
        names = " × ".join(pairs.names[place] for place in pair)
        kept = f"{synthetic / real:z.0%}".replace("-", "−")
        rows.append((str(number), names, *(f"{each:z.2f}".replace("-", "−") for each in (real, synthetic)), kept))
    beyond = f"at least {LEAST:g} beyond that of shuffled columns"
    if not rows:
        caption = f"There are none: every association that is {beyond} was measured."
    elif len(rows) < len(pairs.missed):
        caption = f"The first {len(rows)} of {len(pairs.missed):,} whose association in the real data is {beyond}."
    else:
        caption = f"All whose association in the real data is {beyond}."
    heads = ("", "Columns", "Real data", "This release", "Kept")
    return Listing("Largest associations that were not measured", caption, heads, rows)


def _list_details(pairs: MeasuredPairs) -> dict[str, Any]:
    """Return all of it for machines."""
    return {
        "measured": [
            {"columns": [pairs.names[place] for place in pair], "deviation": each.deviation, "in_part": each.in_part}
            for pair, each in pairs.noise.items()
        ],
        "not_measured": [
            {
                "columns": [pairs.names[place] for place in pair],
                "real": float(pairs.real[pair]),
                "synthetic": float(pairs.synthetic[pair]),
            }
            for pair in pairs.missed
        ],
    }
