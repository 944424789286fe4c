"""Evaluation of time series: values, shape over time, autocorrelation, forecasts, and distance to real series.

All values are scaled to the declared range, so that 0.01 is a hundredth of it in any unit. Gaps are filled by linear
interpolation, and series without any value by the minimum; the share of gaps is a separate measure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sundog.data.columns import Form, SeriesColumn
from sundog.data.records import Records
from sundog.errors import DataError, SundogError
from sundog.evaluation.bootstrap import Floats, PairedBlocks, bootstrap_rows
from sundog.evaluation.comparison import Comparison
from sundog.evaluation.measure import Measure, Measures, Metric
from sundog.evaluation.section import Picture, Section
from sundog.evaluation.series import series_plots
from sundog.evaluation.series.dynamic_time_warping import find_nearest_series
from sundog.evaluation.series.series_statistics import (
    compute_autocorrelation,
    compute_power_spectrum,
    compute_spectral_distance,
    draw_series,
    fill_gaps,
    measure_pooled_wasserstein,
)

NEIGHBOURS = 100  # series whose nearest neighbour is searched
SHOWN = 6

METRICS = {
    "series.marginal_distance": Metric(
        "Distance of values",
        "low",
        "How far values would have to move on average to get the real distribution of values (Wasserstein "
        "distance), as a share of the declared range.",
        ideal=0.0,
    ),
    "series.mean_profile_error": Metric(
        "Error of the mean curve",
        "low",
        "How far the mean synthetic series is from the mean real one, averaged over time, as a share of the "
        "declared range.",
        ideal=0.0,
    ),
    "series.total_distance": Metric(
        "Distance of totals",
        "low",
        "How far the sums of whole series would have to move on average to get the real distribution of sums, "
        "as a share of what the declared range allows.",
        ideal=0.0,
    ),
    "series.gap_error": Metric(
        "Error of gaps",
        "low",
        "The error of the share of series with a gap at each position, averaged over positions.",
        ideal=0.0,
    ),
    "series.autocorrelation_distance": Metric(
        "Distance of autocorrelations",
        "low",
        "The error of the mean autocorrelation, averaged over all lags up to half the length of a series.",
        ideal=0.0,
    ),
    "series.spectral_distance": Metric(
        "Distance of spectra",
        "low",
        "The share of the power that sits at another frequency than in the real series: half the sum of differences "
        "between the mean power spectra, each divided by its sum. 0 is the same, 1 is nothing in common.",
        ideal=0.0,
    ),
    "series.nearest_dtw": Metric(
        "Distance to the nearest real series",
        "low",
        "The median distance, under dynamic time warping, from a synthetic series to the real one nearest to it. "
        "Unseen real series have such a distance too: far above it the synthetic ones are unlike real ones, far "
        "below it they are copies.",
    ),
    "series.discriminative_score": Metric(
        "Discriminative score",
        "low",
        "How well a small recurrent network distinguishes synthetic series from unseen real ones: the distance of its "
        "accuracy from one half. 0 is not at all, 0.5 is always.",
        ideal=0.0,
    ),
    "series.predictive_score": Metric(
        "Predictive score",
        "low",
        "The mean error of a small recurrent network, trained on synthetic series to forecast the next value, on "
        "unseen real ones, as a share of the declared range.",
    ),
}


@dataclass(frozen=True)
class SeriesValues:
    """The series of some records, scaled to the declared range, and where they have gaps: (records, length)."""

    filled: Floats
    gaps: NDArray[np.bool_]


def evaluate_series(comparison: Comparison, name: str) -> Section:
    """Compare the time series of one column."""
    column = comparison.real.schema.columns[name]
    if column.form is not Form.SERIES:
        raise DataError(f"column {name!r} is {column.type}, not a series; name a series column")
    real, synthetic, train, test = (
        _scale_values(records, column, name)
        for records in (comparison.real, comparison.synthetic, comparison.train, comparison.test)
    )
    label = f"{name}, share of the declared range"
    measures, pictures = _compare_averages(comparison, name, real, synthetic, label)
    details: dict[str, Any] = {"column": name}
    notes = []
    if any(values.gaps.any() for values in (real, synthetic)):
        notes.append(f"gaps of {name!r} were filled by linear interpolation; `series.gap_error` measures the gaps")
    if column.length > 1:
        found, details["forecast_that_nothing_changes"] = _score_by_networks(comparison, name, synthetic, test)
        measures |= found
    try:
        nearby, details["nearest_dtw"], picture = _measure_neighbours(
            comparison, name, (real, synthetic, train, test), label
        )
        measures["series.nearest_dtw"] = nearby
        pictures.append(picture)
    except SundogError as error:  # an optional library is missing
        notes.append(f"no distance to the nearest real series: {error}")
    metrics = {measure: METRICS[measure] for measure in measures}
    return Section("Time series", measures, metrics, {"series": details}, pictures, notes)


def _scale_values(records: Records, column: SeriesColumn, name: str) -> SeriesValues:
    if not len(records):
        raise DataError(f"column {name!r} has no records to compare; give at least one of each kind")
    low, high = column.lattice.low, column.lattice.high
    scaled = (column.decode(records.codes[name]) - low) / ((high - low) or 1.0)
    return SeriesValues(fill_gaps(scaled), np.isnan(scaled))


def _compare_averages(
    comparison: Comparison, name: str, real: SeriesValues, synthetic: SeriesValues, label: str
) -> tuple[Measures, list[Picture]]:
    """Compare averages over series."""
    ours, theirs = real.filled, synthetic.filled
    blocks = PairedBlocks(real=len(ours), synthetic=len(theirs), rng=comparison.make_rng(f"series of {name}"))
    measures: Measures = {
        "series.marginal_distance": measure_pooled_wasserstein(blocks, ours, theirs),
        "series.mean_profile_error": blocks.average(ours, theirs).measure_difference(highest=1.0),
        "series.total_distance": measure_pooled_wasserstein(
            blocks, ours.mean(1, keepdims=True), theirs.mean(1, keepdims=True)
        ),
    }
    pictures = [series_plots.plot_profiles(ours, theirs, label)]
    if comparison.real.schema.columns[name].nullable:
        gaps = blocks.average(real.gaps, synthetic.gaps)
        measures["series.gap_error"] = gaps.measure_difference(highest=1.0)
    if ours.shape[1] > 1:
        lags = blocks.average(compute_autocorrelation(ours), compute_autocorrelation(theirs))
        powers = blocks.average(compute_power_spectrum(ours), compute_power_spectrum(theirs))
        measures["series.autocorrelation_distance"] = lags.measure_difference(highest=2.0)
        measures["series.spectral_distance"] = powers.measure(compute_spectral_distance, highest=1.0)
        pictures += [series_plots.plot_autocorrelations(lags), series_plots.plot_spectra(powers)]
    return measures, pictures


def _score_by_networks(
    comparison: Comparison, name: str, synthetic: SeriesValues, test: SeriesValues
) -> tuple[Measures, float]:
    """Return the scores by recurrent networks, and the error of the persistence forecast."""
    from sundog.evaluation.series.recurrent_scores import (
        compute_persistence_error,
        measure_discriminative_score,
        measure_predictive_score,
    )

    apart = measure_discriminative_score(
        test.filled, synthetic.filled, comparison.make_rng(f"discriminative score of {name}")
    )
    ahead = measure_predictive_score(synthetic.filled, test.filled, comparison.make_rng(f"predictive score of {name}"))
    scores = {"series.discriminative_score": apart, "series.predictive_score": ahead}
    return scores, compute_persistence_error(test.filled)


def _measure_neighbours(
    comparison: Comparison, name: str, kinds: tuple[SeriesValues, SeriesValues, SeriesValues, SeriesValues], label: str
) -> tuple[Measure, dict[str, Any], Picture]:
    """Measure the distance to the nearest real series, of synthetic and of unseen real series."""
    real, synthetic, train, test = kinds
    rng = comparison.make_rng(f"neighbours in {name}")

    def measure_median(distances: Floats) -> Measure:
        return bootstrap_rows(lambda rows: float(np.median(distances[rows])), len(distances), rng, lowest=0.0)

    chosen, unseen = (draw_series(values.filled, NEIGHBOURS, rng) for values in (synthetic, test))
    places, distances = find_nearest_series(chosen, real.filled)
    found = measure_median(distances)
    details = {
        "synthetic": found.to_dict(),
        "test": measure_median(find_nearest_series(unseen, train.filled)[1]).to_dict(),
    }
    return found, details, series_plots.plot_neighbours(chosen[:SHOWN], real.filled[places[:SHOWN]], label)
