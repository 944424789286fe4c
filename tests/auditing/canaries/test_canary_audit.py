"""Audits in one run: correct fits are not accused, enough of ε is proven, and planted bugs are caught.

Noise and canaries are seeded, so that a test that passes goes on passing. Each bug is planted in the production code;
the audit is the same.
"""

from __future__ import annotations

import functools
import gzip
import itertools
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.auditing.canaries.small_fit import FULL_BATCHES, SCHEMA, audit, draw_table

from sundog.auditing.canaries.canary_audit import CanaryFinding, audit_with_canaries
from sundog.errors import ArgumentError, SchemaError, SundogError
from sundog.models.marginals import learner, marginals
from sundog.privacy.mechanisms import counts
from sundog.privacy.noise import NoiseSource
from sundog.training import step, trainer
from sundog.training.batches.poisson import draw_poisson_batch
from sundog.training.noise_addition import compute_noise_scales
from sundog.training.per_example.engine import clip_and_sum

Plant = Callable[[pytest.MonkeyPatch], None]

pytestmark = pytest.mark.usefixtures("one_thread")


def scale_training_noise(factor: float) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(step, "compute_noise_scales", lambda *given: factor * compute_noise_scales(*given))

    return plant


def sum_without_clipping(patch: pytest.MonkeyPatch) -> None:
    def sum_raw(module: Any, loss: Any, piece: Any, groups: Any, weigh: Any, **options: Any) -> Any:
        return clip_and_sum(module, loss, piece, groups, lambda norms: 0 * norms + 1, **options)

    patch.setattr(step, "clip_and_sum", sum_raw)


def sample_more_often(factor: float) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(
            trainer, "draw_poisson_batch", lambda n, rate, noise: draw_poisson_batch(n, min(1, factor * rate), noise)
        )

    return plant


def scale_count_noise(factor: float) -> Plant:
    def draw_less(histogram: Any, ledger: Any) -> Any:
        return right(replace(histogram, sigma=factor * histogram.sigma), ledger)

    right = counts.add_histogram_noise

    def plant(patch: pytest.MonkeyPatch) -> None:
        for module in (counts, marginals, learner):
            patch.setattr(module, "add_histogram_noise", draw_less)

    return plant


@pytest.mark.parametrize(("model", "least"), [("rbm", 0.4), ("vae", 0.4), ("independent", 0.35), ("marginals", 0.35)])
def test_a_correct_fit_is_not_accused_and_much_of_its_epsilon_is_proven(model: str, least: float) -> None:
    found = [audit(model, seed=seed) for seed in range(4)]
    assert not any(each.refutes for each in found)
    assert all(each.steinke_bound < each.epsilon_bound < each.epsilon for each in found)
    assert np.mean([each.epsilon_bound for each in found]) >= least * 4
    assert found[0].epsilon == pytest.approx(4.0, rel=2e-3)


def test_a_gan_is_audited_by_its_critic() -> None:
    found = audit("gan", canaries=250)
    assert not found.refutes
    assert found.epsilon_bound >= 0.25 * 4


def test_a_mixture_is_audited_by_its_tables() -> None:
    found = audit("independent", clusters=2, canaries=2000)
    assert found.model == "mixture of independent"
    assert not found.refutes


SAMPLED = {"epochs": 10, "hidden": 300}


@functools.cache
def audit_correct_training(canaries: int, *, sampled: bool) -> CanaryFinding:
    return audit("rbm", canaries=canaries, settings=SAMPLED if sampled else FULL_BATCHES)


@pytest.mark.parametrize(
    ("plant", "canaries", "sampled"),
    [
        pytest.param(scale_training_noise(2 / 3), 5000, False, id="two thirds of the noise"),
        pytest.param(scale_training_noise(1 / 2), 1000, False, id="half the noise"),
        pytest.param(scale_training_noise(1 / 64), 1000, True, id="noise divided by the batch size"),
        pytest.param(sum_without_clipping, 1000, True, id="raw instead of clipped sum"),
        pytest.param(sample_more_often(2), 1000, True, id="twice the sample rate"),
        pytest.param(sample_more_often(1000), 1000, True, id="no sampling"),
    ],
)
def test_a_broken_training_is_accused(
    plant: Plant, canaries: int, sampled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = audit_correct_training(canaries, sampled=sampled)
    plant(monkeypatch)
    broken = audit("rbm", canaries=canaries, settings=SAMPLED if sampled else FULL_BATCHES)
    assert not control.refutes
    assert broken.refutes
    assert broken.epsilon_bound > 1.5 * control.epsilon_bound


@functools.cache
def audit_correct_counts(model: str) -> CanaryFinding:
    return audit(model, canaries=5000)


@pytest.mark.parametrize("model", ["independent", "marginals"])
@pytest.mark.parametrize("factor", [1 / 2, 1 / 10])
def test_counts_with_too_little_noise_are_accused(model: str, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    control = audit_correct_counts(model)
    scale_count_noise(factor)(monkeypatch)
    assert not control.refutes
    assert audit(model, canaries=5000).refutes


@pytest.mark.slow
def test_few_of_200_correct_fits_are_accused() -> None:
    refuted = [audit(model, seed=seed, canaries=300).refutes for model in ("rbm", "independent") for seed in range(100)]
    assert sum(refuted) <= 10


def test_a_finding_says_what_was_found_beside_what_was_promised() -> None:
    found = audit("independent")
    text = str(found)
    assert f"{found.guesses.correct:,} of {found.guesses.guesses:,} guesses" in text
    assert f"ε ≥ {found.epsilon_bound:.2f} by f-DP" in text
    assert "does not contradict the promise" in text
    assert "REFUTES the promise" in str(replace(found, p_value=0.01))
    assert found.to_dict()["refutes"] is False
    assert found.to_dict()["guesses"]["canaries"] == 1000


def test_progress_is_reported_and_the_seed_fixes_everything_but_the_noise() -> None:
    stages: list[str] = []
    first = audit("independent", progress=lambda stage, done: stages.append(stage))
    assert {"reading", "counting"} <= set(stages)
    assert audit("independent") == first
    private = audit_with_canaries(
        draw_table(), SCHEMA, model="independent", epsilon=4.0, delta=1e-5, canaries=1000, seed=0
    )
    assert private.guesses.guesses == first.guesses.guesses


def test_a_derived_column_is_not_modelled() -> None:
    columns = {"a": {"type": "boolean"}, "b": {"type": "boolean"}}
    rule = {"column": "b", "from": "a", "table": {"true": "false", "false": "true"}}
    data = {"a": [True, False] * 50, "b": [False, True] * 50}
    found = audit_with_canaries(
        data,
        {"columns": columns, "rules": [rule]},
        model="independent",
        epsilon=2.0,
        delta=1e-5,
        canaries=200,
        seed=0,
        noise=NoiseSource.seeded(0),
    )
    assert not found.refutes


def test_the_python_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """On the first thousand records of the table."""
    demo = Path(str(resources.files("sundog.demo")))
    shutil.copy(demo / "adult.schema.yaml", tmp_path)
    with gzip.open(demo / "adult.csv.gz") as whole, gzip.open(tmp_path / "adult.csv.gz", "w") as some:
        some.writelines(itertools.islice(whole, 1000))
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs" / "audit_canaries.md").read_text(encoding="utf-8")
    (python,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(python, "audit_canaries.md", "exec"), {})  # noqa: S102
    shown = re.search(r"```text\n(.*?)```", page, re.DOTALL)
    printed = capsys.readouterr().out
    assert shown is not None
    assert [line.split()[0] for line in printed.splitlines()] == [line.split()[0] for line in shown[1].splitlines()]


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"canaries": 10}, ArgumentError, "canaries must be between 50 and 20,000, not 10"),
        ({"confidence": 1.0}, ArgumentError, "confidence must be"),
        ({"model": "rbm", "clusters": 2}, SundogError, "mixture of networks"),
        ({"model": "gan"}, SundogError, "canaries: the network has 289 weights"),
        ({"model": "nothing"}, SundogError, "nothing"),
    ],
)
def test_what_cannot_be_audited_is_refused(options: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        audit(**{"model": "independent"} | options)


def test_a_schema_that_is_still_to_be_learned_is_refused() -> None:
    schema = {"columns": {"size": {"type": "integer", "learn": True}}}
    with pytest.raises(SchemaError, match="learn"):
        audit_with_canaries({"size": [1, 2]}, schema, epsilon=1.0, delta=1e-5)
