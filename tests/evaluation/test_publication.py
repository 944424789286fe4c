"""What may be shown: planned before a record is read, charged before it is measured, and close to the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import BudgetExceededError, DataError, SundogError
from sundog.evaluation.evaluator import evaluate
from sundog.evaluation.measure import Measures
from sundog.evaluation.publication import Publication
from sundog.fit.synthesizer import Synthesizer
from sundog.privacy.ledger import Ledger
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 9},
            "sex": {"type": "categorical", "values": ["f", "m"]},
        }
    }
)
FOREST = "utility.tstr.forest.accuracy"


def draw_records(count: int, seed: int, share: float = 0.5) -> Records:
    rng = np.random.default_rng(seed)
    codes = {"age": rng.integers(0, 10, count).astype(np.uint8), "sex": (rng.random(count) < share).astype(np.uint8)}
    return Records(SCHEMA, codes, count)


def make_frame(count: int, seed: int) -> pd.DataFrame:
    of = draw_records(count, seed)
    return pd.DataFrame({"age": of.codes["age"], "sex": np.array(["f", "m"])[of.codes["sex"]]})


@pytest.fixture(scope="module")
def release() -> Release:
    return Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(make_frame(300, 9), SCHEMA).release_


def publish(
    release: Release, real: Records, fake: Records, epsilon: float, ledger: Ledger, right: int | None = None
) -> Measures:
    models = [] if right is None else [FOREST]
    planned = Publication.plan(release, models, epsilon=epsilon, ledger=ledger)
    return planned.measure(real, fake, {FOREST: right or 0}, 1000)


def test_the_ledger_pays_exactly_what_was_asked_for(release: Release) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    publish(release, draw_records(1000, 0), draw_records(1000, 1), 0.5, ledger)
    assert 0.495 < ledger.compute_spent() <= 0.5
    purposes = {charge.purpose for charge in ledger.charges}
    assert purposes == {"published marginal of age", "published marginal of sex"}


def test_a_ledger_that_cannot_pay_refuses_before_anything_is_read(release: Release) -> None:
    ledger = Ledger(epsilon=0.6, delta=1e-6)
    publish(release, draw_records(1000, 0), draw_records(1000, 1), 0.5, ledger)
    with pytest.raises(BudgetExceededError):
        Publication.plan(release, [], epsilon=0.5, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        evaluate(release, real="no.csv", publish=0.5, ledger=ledger)  # there is no such file, and nobody looked
    assert ledger.compute_spent() <= 0.5


def test_only_what_is_said_of_a_private_release_is_published(release: Release) -> None:
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    with pytest.raises(DataError, match="only figures about a release"):
        evaluate(make_frame(300, 9), real=make_frame(300, 9), schema=SCHEMA, publish=0.5, ledger=ledger)
    seeded = (
        Synthesizer("independent", epsilon=1.0, delta=1e-6, noise=NoiseSource.seeded(1))
        .fit(make_frame(300, 9), SCHEMA)
        .release_
    )
    with pytest.raises(SundogError, match="not private"):
        evaluate(seeded, real=make_frame(300, 9), publish=0.5, ledger=ledger)
    unsafe = Ledger(epsilon=1.0, delta=1e-6, noise=NoiseSource.seeded(1))
    with pytest.raises(SundogError, match="not private"):
        evaluate(release, real=make_frame(300, 9), publish=0.5, ledger=unsafe)
    assert not ledger.charges


def test_one_record_changes_one_cell_of_each_marginal_and_one_answer_of_each_model(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole evaluation of neighbouring datasets: what is counted, before the noise."""
    counted: list[list[list[int]]] = []

    def noticed(histograms: list[object], *, ledger: Ledger) -> list[object]:
        counted.append([histogram.counts.tolist() for histogram in histograms])  # type: ignore[attr-defined]
        return [histogram.counts for histogram in histograms]  # type: ignore[attr-defined]

    monkeypatch.setattr("sundog.evaluation.publication.noisy_histograms", noticed)
    real, holdout = make_frame(300, 9), make_frame(200, 5)
    for one, other in ((real, holdout), (real[:-1], holdout), (real, holdout[:-1])):
        ledger = Ledger(epsilon=1.0, delta=1e-6)
        evaluate(release, real=one, holdout=other, target="sex", rows=150, publish=0.5, ledger=ledger)
    first, fewer_real, fewer_held_out = ([np.array(each) for each in counts] for counts in counted)
    assert len(first) == 2 + 3
    assert [int(np.abs(a - b).sum()) for a, b in zip(first, fewer_real, strict=True)] == [1, 1, 0, 0, 0]
    assert [int(np.abs(a - b).sum()) for a, b in zip(first, fewer_held_out, strict=True)] == [0, 0, 1, 1, 1]
    assert all(answers.sum() == 200 for answers in first[2:])


def test_many_records_give_nearly_the_true_figures(release: Release) -> None:
    real, fake = draw_records(200_000, 0, share=0.5), draw_records(200_000, 1, share=0.7)
    truth = compute_distance(real, fake)
    found = publish(release, real, fake, 1.0, Ledger(epsilon=1.0, delta=1e-6), right=812)
    shown = found["fidelity.tvd_1way"]
    assert shown.value == pytest.approx(truth, abs=2e-3)
    assert shown.low <= truth <= shown.high
    accuracy = found[FOREST]
    assert accuracy.value == pytest.approx(0.812, abs=0.1)
    assert accuracy.low < 0.812 < accuracy.high


def compute_distance(real: Records, fake: Records) -> float:
    shares = [
        [np.bincount(of.codes[name], minlength=size) / len(of) for of in (real, fake)]
        for name, size in (("age", 10), ("sex", 2))
    ]
    return float(np.mean([0.5 * np.abs(a - b).sum() for a, b in shares]))


def test_the_interval_holds_what_the_noise_may_have_done(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a small ε nineteen of twenty intervals, or more, hold the figure without noise."""
    monkeypatch.setattr(Ledger, "private", True)  # so that noise with a seed will do
    real, fake = draw_records(500, 0), draw_records(500, 1, share=0.8)
    truth, inside = compute_distance(real, fake), 0
    for seed in range(40):
        ledger = Ledger(epsilon=0.5, delta=1e-6, noise=NoiseSource.seeded(seed))
        found = publish(release, real, fake, 0.5, ledger)["fidelity.tvd_1way"]
        inside += found.low <= truth <= found.high
    assert inside >= 36


def test_figures_are_noisy_by_as_much_as_is_paid_for(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same accuracy many times: its spread is that of the discrete Gaussian that was charged."""
    monkeypatch.setattr(Ledger, "private", True)
    shares, sigma = [], 0.0
    for seed in range(80):
        ledger = Ledger(epsilon=1.0, delta=1e-6, noise=NoiseSource.seeded(seed))
        shares.append(
            publish(release, draw_records(100, 0), draw_records(100, 1), 1.0, ledger, right=500)[FOREST].value
        )
        charge = next(charge for charge in ledger.charges if "accuracy" in charge.purpose)
        sigma = float(getattr(charge.event, "sigma"))  # noqa: B009  other events have none
    expected = sigma / 1000 / np.sqrt(2)  # of right / (right + wrong), both noisy, at a half
    assert expected * 0.75 < np.std(shares) < expected * 1.3


def test_there_must_be_something_to_publish() -> None:
    schema = Schema.from_dict({"columns": {"load": {"type": "series", "length": 2, "min": 0, "max": 1}}})
    series = Synthesizer("independent", epsilon=1.0, delta=1e-6).fit(
        {"load": np.random.default_rng(0).random((50, 2))}, schema
    )
    with pytest.raises(DataError, match="publish"):
        Publication.plan(series.release_, [], epsilon=1.0, ledger=Ledger(epsilon=1.0, delta=1e-6))
