"""Refined bins and special values: their quality, their cost, and what they depend on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sundog.data.bin_refinement import SHARE, Refinement, choose_starts
from sundog.data.bins import make_bins
from sundog.data.columns import Column, ContinuousColumn, DatetimeColumn, IntegerColumn, OrderedColumn
from sundog.data.columns.column import cut_evenly
from sundog.data.columns.ordered import DEFAULT_BINS
from sundog.data.reading.read import encode, read
from sundog.data.schema import Schema
from sundog.data.schema_learning import prepare
from sundog.errors import SchemaError
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.calibration import find_gaussian_noise
from sundog.privacy.events import DiscreteGaussian
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import Partition, tree
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release

N = 20_000
WIDE: dict[str, dict[str, Any]] = {
    "days": {"type": "integer", "min": -1, "max": 999},
    "seconds": {"type": "integer", "min": 0, "max": 50_000},
    "balance": {"type": "continuous", "min": -1000, "max": 100_000, "resolution": 0.01},
    "when": {"type": "datetime", "min": "2020-01-01", "max": "2024-12-31", "resolution": "minute"},
}


def make_schema(columns: dict[str, dict[str, Any]], **rest: Any) -> Schema:
    return Schema.from_dict({**rest, "columns": columns})


def make_people(n: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    minutes = np.where(rng.random(n) < 0.3, 0, rng.integers(0, 500_000, n))
    return {
        "days": np.where(np.arange(n) < 0.82 * n, -1, rng.integers(0, 1000, n)),
        "seconds": np.where(np.arange(n) < 0.78 * n, 0, np.minimum(rng.gamma(2, 400, n), 50_000).astype(int)),
        "balance": np.where(rng.random(n) < 0.1, -1000.0, np.clip(rng.lognormal(7, 1, n), 0, 100_000).round(2)),
        "when": np.datetime64("2020-01-01") + minutes.astype("timedelta64[m]"),
    }


def fit_release(data: dict[str, Any], schema: Schema, **request: Any) -> Release:
    return Synthesizer("independent", **{"epsilon": 1.0, "delta": 1e-6, **request}).fit(data, schema).release_


def get_edges(schema: Schema, name: str) -> list[Any]:
    column = schema.columns[name]
    assert isinstance(column, OrderedColumn)
    return list(column.edges or ())


@pytest.fixture(scope="module")
def release() -> Release:
    return fit_release(make_people(), make_schema(WIDE))


# --- special values ---


@pytest.mark.parametrize(
    "column",
    [
        IntegerColumn(min=-1, max=99_999, special=(99_999, -1, 0)),
        IntegerColumn(min=-1, max=99_999, special=(99_999, -1, 0), bins=64),
        IntegerColumn(min=-1, max=99_999, special=(99_999, -1, 0), edges=(500, 1000)),
        IntegerColumn(min=-1, max=99_999, special=(99_999, -1, 0), bins="refined", edges=(500, 1000)),
    ],
    ids=["default", "equal", "edges", "refined"],
)
def test_each_special_value_has_a_bin_of_its_own(column: IntegerColumn) -> None:
    bins = make_bins(column)
    held = bins.to_bins(np.arange(column.lattice_size))
    for code in (0, 1, 100_000):
        assert (held == held[code]).sum() == 1
    assert (np.diff(held.astype(int)) >= 0).all()


def test_special_values_of_every_ordered_type() -> None:
    assert ContinuousColumn(min=-1, max=1, resolution=0.01, special=(-1, 0.07)).special_codes == (0, 107)
    day = DatetimeColumn(min="1900-01-01", max="2099-12-31", resolution="day", special=("1900-01-01", "2099-12-31"))
    assert day.special_codes == (0, day.lattice_size - 1)
    hour = {"min": "2024-01-01", "max": "2024-12-31", "resolution": "hour", "timezone": "Europe/Zurich"}
    first, second = (
        DatetimeColumn.model_validate({**hour, "special": [f"2024-10-27T02:00:00+0{offset}:00"]}).special_codes[0]
        for offset in (2, 1)
    )
    assert second == first + 1  # the hour that clocks show twice is two hours


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"type": "integer", "min": 0, "max": 9, "special": [-1]}, "special value -1 is outside min (0) and max (9)"),
        ({"type": "integer", "min": 0, "max": 9, "special": [3, 3]}, "special lists 3 twice"),
        ({"type": "integer", "min": 0, "max": 9, "step": 2, "special": [3]}, "lies between two values"),
        ({"type": "continuous", "min": 0, "max": 1, "resolution": 0.1, "special": [0.15]}, "lies between two values"),
        (
            {"type": "datetime", "min": "2020-01-01", "max": "2021-01-01", "resolution": "day"}
            | {"special": ["2020-05-01T12:00"]},
            "lies between two values",
        ),
        ({"type": "integer", "min": 0, "max": 9, "special": []}, "special"),
        ({"type": "categorical", "values": ["a"], "special": ["a"]}, "special"),
    ],
)
def test_impossible_special_values_are_refused(column: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        make_schema({"x": column})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_special_values_survive_a_schema_file(tmp_path: Path) -> None:
    columns = {**WIDE, "days": {**WIDE["days"], "special": [-1]}, "when": {**WIDE["when"], "special": ["2020-01-01"]}}
    schema = make_schema(columns)
    schema.save(tmp_path / "s.yaml")
    assert Schema.load(tmp_path / "s.yaml") == schema


def test_special_values_cost_nothing() -> None:
    columns = {name: {**WIDE[name], "bins": 64, "special": [WIDE[name]["min"]]} for name in ("days", "seconds")}
    release = fit_release(make_people(), make_schema(columns))
    assert [charge.purpose for charge in release.certificate.charges] == ["marginal of days", "marginal of seconds"]
    frame = release.sample(10_000, seed=0)
    assert (frame["days"] == -1).mean() == pytest.approx(0.82, abs=0.02)
    assert (frame["seconds"] == 0).mean() == pytest.approx(0.78, abs=0.02)


def test_a_learned_range_is_wide_enough_for_special_values() -> None:
    schema = make_schema({"n": {"type": "integer", "learn": True, "special": [-99]}})
    ledger = Ledger(epsilon=9.0, delta=1e-6)
    raw = read({"n": np.arange(5000) % 90 + 5}, schema)
    column = prepare(raw, schema).learn(epsilon=8.0, delta=1e-7, ledger=ledger).columns["n"]
    assert isinstance(column, IntegerColumn)
    assert column.min == -99


# --- what refined bins find ---


def test_values_that_many_share_keep_their_share(release: Release) -> None:
    frame, real = release.sample(10_000, seed=0), make_people()
    for name, value in (("days", -1), ("seconds", 0), ("balance", -1000.0), ("when", np.datetime64("2020-01-01"))):
        assert (frame[name].to_numpy() == value).mean() == pytest.approx((real[name] == value).mean(), abs=0.02)


def test_bins_are_narrow_where_records_are_and_as_many_as_before(release: Release) -> None:
    for name in WIDE:
        column = release.schema.columns[name]
        assert make_bins(column).count == DEFAULT_BINS
        assert column.to_dict()["bins"] == "refined"
    seconds = fit_release(make_people(), make_schema({"seconds": WIDE["seconds"]}), epsilon=8.0).schema
    narrow = [edge for edge in get_edges(seconds, "seconds") if edge <= 2500]
    assert len(narrow) >= 20  # of a range up to 50,000: with equal width there would be three


@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_where_nothing_stands_out_of_the_noise_bins_have_equal_width(epsilon: float) -> None:
    schema = make_schema(WIDE)
    ledger = Ledger(epsilon=1.0, delta=1e-5, noise=NoiseSource.seeded(0))  # now and then noise alone stands out
    few = {name: values[:60] for name, values in make_people().items()}
    plan = Refinement.plan(schema, epsilon=epsilon, delta=1e-6)
    refined, coarse = plan.refine(encode(read(few, schema), schema), ledger)
    assert coarse == list(WIDE)
    for name, column in schema.columns.items():
        assert make_bins(refined.columns[name]).starts.tolist() == cut_evenly(column.lattice_size, DEFAULT_BINS)


@pytest.mark.parametrize("special", [(), (0, 7, 128), tuple(range(20)), tuple(range(64))])
@pytest.mark.parametrize("size", [129, 300, 70_000, 2**40, 2**62])
def test_any_noise_makes_as_many_bins(size: int, special: tuple[int, ...]) -> None:
    """Any counts give the default number of bins, so that neither plan nor release reveals anything."""
    column = IntegerColumn(min=0, max=size - 1, special=special or None)
    own = {start for code in special for start in (code, code + 1)}
    rng = np.random.default_rng(0)

    def wild(bounds: list[int], depth: int) -> Partition:
        counts = np.rint(rng.standard_cauchy(len(bounds) - 1) * 100).clip(-1e9, 1e9).astype(np.int64)
        cut = [place for place in np.argsort(-counts)[:3].tolist() if bounds[place + 1] - bounds[place] > 1]
        parts = {place: wild(tree._cut(bounds[place], bounds[place + 1], 40), depth - 1) for place in cut if depth}
        return Partition(bounds, counts, parts)

    for deviation in (0.5, 50.0, 5000.0):
        starts = choose_starts(wild(tree._cut(0, size, 40), 3), make_bins(column), own, deviation=deviation)
        assert len(starts) == make_bins(column).count
        assert own - {size} <= set(starts)
        again = column.replace(bins="refined", edges=column.find_edges(starts[1:]))
        assert make_bins(again).starts.tolist() == starts


def test_edges_begin_bins_where_they_should_although_floats_are_inexact() -> None:
    column = ContinuousColumn(min=-123456.7, max=9876543.21, resolution=0.1)
    awkward = ContinuousColumn(min=1e-7 / 3, max=1.0, resolution=1e-9 / 7)
    for each in (column, awkward):
        codes = sorted(set(np.random.default_rng(0).integers(1, each.lattice_size, 500).tolist()))
        assert [each.find_first_code(edge) for edge in each.find_edges(codes)] == codes


# --- what may depend on the data, and what it costs ---


def test_edges_depend_on_the_data_through_noisy_counts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the noise gives the noisy counts of another dataset, the edges are those of that dataset."""
    schema = make_schema(WIDE)
    told: list[npt.NDArray[np.int64]] = []

    def replay(histogram: Any, ledger: Ledger) -> npt.NDArray[np.int64]:
        return np.resize(told[len(histogram.counts) % 7], histogram.counts.shape)

    rng = np.random.default_rng(1)
    told[:] = [np.rint(rng.standard_cauchy(300) * 200).astype(np.int64) for _ in range(7)]
    monkeypatch.setattr(tree, "add_histogram_noise", replay)
    plan = Refinement.plan(schema, epsilon=1.0, delta=1e-6)
    other = {name: np.repeat(values[-1:], 40) for name, values in make_people().items()}
    outcomes = [
        plan.refine(encode(read(data, schema), schema), Ledger(epsilon=1.0, delta=1e-5))
        for data in (make_people(), other)
    ]
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("cap", [1, 3])
def test_refinement_is_charged_as_planned_and_takes_its_share(cap: int) -> None:
    unit = {"unit": "who", "cap": cap} if cap > 1 else {}
    schema = make_schema({**WIDE, "flag": {"type": "boolean"}}, **unit)
    plan = Refinement.plan(schema, epsilon=1.0, delta=1e-6)
    assert [charge.purpose for charge in plan.charges] == [f"bins of {name}" for name in WIDE]
    assert [charge.count for charge in plan.charges] == [cap * levels for levels in (2, 2, 3, 3)]
    sigmas = [charge.event.sigma for charge in plan.charges if isinstance(charge.event, DiscreteGaussian)]
    rho = sum(charge.count / sigma**2 for charge, sigma in zip(plan.charges, sigmas, strict=True))
    assert rho * find_gaussian_noise(epsilon=1.0, delta=1e-6) ** 2 == pytest.approx(SHARE)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    data = {**make_people(300), "flag": np.arange(300) % 2 == 0, "who": np.arange(300) // 2}
    for few in (300, 1):  # how many levels the data needs changes nothing
        records = encode(read({name: values[:few] for name, values in data.items()}, schema), schema)
        before = len(ledger.charges)
        plan.refine(records, ledger)
        assert ledger.charges[before:] == plan.charges


def test_all_stages_together_keep_to_the_budget(release: Release) -> None:
    certificate = release.certificate
    assert 0.998 <= compute_epsilon(certificate.charges, delta=certificate.delta) <= 1
    assert release.verify() == []
    equal = fit_release(make_people(), make_schema({name: {**column, "bins": 64} for name, column in WIDE.items()}))
    noise, less = (
        next(c.event.sigma for c in each.certificate.charges if c.purpose == "marginal of days")  # type: ignore[union-attr]
        for each in (release, equal)
    )
    assert noise / less == pytest.approx(1 / np.sqrt(1 - SHARE), rel=0.01)


def test_what_is_declared_is_not_refined() -> None:
    declared = [
        IntegerColumn(min=0, max=9999, bins=64),
        IntegerColumn(min=0, max=9999, edges=(5,)),
        IntegerColumn(min=0, max=9999, bins="refined", edges=(5,)),
        IntegerColumn(min=0, max=9999, bins="quantiles"),
        IntegerColumn(min=0, max=127),
        IntegerColumn(min=0, max=9999, public=True),
    ]
    default: list[Column] = [
        IntegerColumn(min=0, max=128),
        IntegerColumn(min=0, max=128, bins="refined"),
        IntegerColumn(learn=True),
    ]
    assert not any(column.awaits_refinement for column in declared)
    assert all(column.awaits_refinement for column in default)


@pytest.mark.parametrize("bins", ["refined", "quantiles"])
def test_measured_edges_say_so_and_are_a_declaration_for_the_next_fit(bins: str) -> None:
    first = fit_release(make_people(), make_schema({"days": {**WIDE["days"], "bins": bins}}))
    assert first.schema.to_dict()["columns"]["days"]["bins"] == bins
    edges = get_edges(first.schema, "days")
    assert {"bins of days", "quantiles of days"} & {charge.purpose for charge in first.certificate.charges}
    second = fit_release(make_people(), first.schema)
    assert [charge.purpose for charge in second.certificate.charges] == ["marginal of days"]
    assert "bins" not in second.schema.to_dict()["columns"]["days"]
    assert get_edges(second.schema, "days") == edges
    assert second.schema.declare_learned() is second.schema


def test_bins_and_edges_together_are_still_refused() -> None:
    with pytest.raises(SchemaError, match="edges and bins are both given"):
        make_schema({"x": {"type": "integer", "min": 0, "max": 9999, "bins": 64, "edges": [5]}})


def test_quantile_bins_keep_a_value_that_many_share() -> None:
    release = fit_release(
        make_people(), make_schema({"seconds": {**WIDE["seconds"], "bins": "quantiles"}}), epsilon=20.0
    )
    assert (release.sample(10_000, seed=0)["seconds"] == 0).mean() == pytest.approx(0.78, abs=0.02)


# --- in a fit ---


def test_a_learned_range_is_refined_too() -> None:
    schema = make_schema({"seconds": {"type": "integer", "learn": True}})
    release = fit_release(make_people(), schema, epsilon=2.0)
    assert [charge.purpose for charge in release.certificate.charges] == [
        "range of seconds",
        "bins of seconds",
        "marginal of seconds",
    ]
    assert (release.sample(10_000, seed=0)["seconds"] == 0).mean() == pytest.approx(0.78, abs=0.02)


def test_an_interrupted_fit_keeps_refined_bins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sundog.models.rbm.rbm import Rbm

    def stop(*args: Any, **rest: Any) -> None:
        raise KeyboardInterrupt

    settings = {"epochs": 1, "hidden": 4}
    schema, out = make_schema({"days": WIDE["days"]}, records=N), tmp_path / "o.sundog"
    synthesizer = Synthesizer("rbm", epsilon=1.0, delta=1e-6, settings=settings)
    with monkeypatch.context() as patch:
        patch.setattr(Rbm, "fit", stop)
        with pytest.raises(KeyboardInterrupt):
            synthesizer.fit(make_people(), schema, out=out)
    release = synthesizer.fit(make_people(), schema, out=out, resume=True).release_
    assert [charge.purpose for charge in release.certificate.charges].count("bins of days") == 1
    assert get_edges(release.schema, "days")[0] == 0  # −1 by itself


@pytest.mark.parametrize(("n", "coarse"), [(N, False), (100, True)])
def test_fit_says_which_columns_are_coarse(n: int, coarse: bool) -> None:
    told: list[str] = []
    synthesizer = Synthesizer("independent", epsilon=1.0, delta=1e-6)
    synthesizer.fit(make_people(n), make_schema({"days": WIDE["days"]}), progress=lambda what, _: told.append(what))
    assert any("bins" in line and "5%" in line for line in told)  # the split of the budget
    assert any(line.startswith("coarse bins: 'days'\n") for line in told) == coarse


def test_a_column_of_which_nothing_was_learned_is_said() -> None:
    schema = make_schema({"zip": {"type": "categorical", "learn": True}, "b": {"type": "boolean"}})
    data = {"zip": [f"{code:05}" for code in range(1000)], "b": [True, False] * 500}
    with pytest.warns(UserWarning, match="column 'zip': no value was frequent enough to be learned"):
        Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(data, schema)
