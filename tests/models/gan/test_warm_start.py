"""Public records: where a training begins and how it clips, and that neither changes what it pays or adds as noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tests.contracts.material import decode_records, random_records, schema_of
from tests.models.gan.material import DELTA, IMAGES, LABEL, QUICK, TABLE, assert_goes_on
from torch import Tensor

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.gan import gan_training
from sundog.models.gan.conditional_means import ConditionalMeans
from sundog.models.gan.configuration import GanConfiguration
from sundog.models.gan.gan import Gan
from sundog.models.gan.released import PUBLIC_RECORDS
from sundog.models.gan.warm_start import train_on_public
from sundog.models.neural.features import Features
from sundog.models.protocol import FitContext
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.ledger import Budget, Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release
from sundog.training import step, trainer
from sundog.training.pacing import Pace
from sundog.training.per_example.engine import ClippedSum, clip_and_sum
from sundog.training.step import PrivateStep

KINDS = "weights and biases"
WAYS: dict[str, dict[str, Any]] = {
    "warm": {"warm": 3},
    "clip": {"clip": "public"},
    "groups": {"groups": 3},
    "kinds": {"groups": KINDS},
    "decay": {"decay": 0.1},
    "all": {"warm": 3, "clip": "public", "groups": 3},
    "all that falls": {"warm": 3, "groups": KINDS, "decay": 0.1},
}
PLAIN = schema_of({"label": LABEL, "twin": LABEL})


pytestmark = pytest.mark.usefixtures("quick")


def plan_gan(schema: Schema, *, public: bool = True, **settings: Any) -> Any:
    configuration = GanConfiguration.parse({**QUICK, "warm": 0, **settings}, public=public)
    return Gan.plan(schema, Budget(2.0, DELTA), configuration, already=(), records=60)


def fit_plan(plan: Any, schema: Schema, public: int = 20) -> Ledger:
    ledger = Ledger(epsilon=2.0, delta=DELTA, noise=NoiseSource.seeded(3))
    Gan.fit(random_records(schema, 60), plan, ledger, FitContext(seed=0, public=random_records(schema, public, 9)))
    return ledger


# --- paying ---


@pytest.mark.parametrize(
    ("schema", "shape", "way"),
    [
        *((TABLE, "mlp", way) for way in WAYS),
        *((schema, shape, way) for schema, shape in ((IMAGES, "conv"), (PLAIN, "pairs")) for way in ("all", "kinds")),
    ],
)
def test_a_fit_spends_its_plan_and_the_plan_is_what_it_was_without(schema: Schema, shape: str, way: str) -> None:
    plan = plan_gan(schema, shape=shape, **WAYS[way])
    assert plan.charges == plan_gan(schema, shape=shape, public=False).charges
    ledger = fit_plan(plan, schema)
    assert merge_blocks(ledger.charges) == list(plan.charges)
    assert 0.998 * 2.0 <= compute_epsilon(ledger.charges, delta=DELTA) <= 2.0


def test_two_public_records_are_enough() -> None:
    plan = plan_gan(TABLE, **WAYS["all"])
    assert merge_blocks(fit_plan(plan, TABLE, public=2).charges) == list(plan.charges)


def test_people_may_have_public_records_to_begin_with() -> None:
    schema = schema_of({"label": LABEL, "twin": LABEL}, unit="who", cap=2)
    plan = plan_gan(schema, shape="mlp", **WAYS["all"])
    records = replace(random_records(schema, 60), unit=np.arange(60) // 2)
    public = replace(random_records(schema, 9), unit=np.arange(9))
    ledger = Ledger(epsilon=2.0, delta=DELTA)
    Gan.fit(records, plan, ledger, FitContext(seed=0, public=public))
    assert merge_blocks(ledger.charges) == list(plan.charges)


# --- noise ---


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PrivateStep, Tensor, list[Tensor]]]:
    """Each step with its bounds and the noise in its gradient, and no records in that."""
    found: list[tuple[PrivateStep, Tensor, list[Tensor]]] = []
    descend = PrivateStep._apply_gradients

    def nothing(*args: Any, **options: Any) -> ClippedSum:
        real = clip_and_sum(*args, **options)
        return replace(real, sums=[torch.zeros_like(total) for total in real.sums])

    def noting(self: PrivateStep, private: list[Tensor], update: Any) -> None:
        found.append((self, self.policy.bounds.clone(), [part.clone() for part in private]))
        descend(self, private, update)

    monkeypatch.setattr(PrivateStep, "_apply_gradients", noting)
    monkeypatch.setattr(step, "clip_and_sum", nothing)
    return found


def in_units(taken: PrivateStep, bounds: Tensor, noise: list[Tensor]) -> list[Tensor]:
    """The noise in each group, in units of what it has to be: s_g² = σ² · C_g/√d_g · Σ C_h √d_h."""
    groups, sigma = taken.groups, taken.noise_multiplier
    sizes = [0] * groups.count
    for parameter, group in zip(groups.parameters, groups.of, strict=True):
        sizes[group] += parameter.numel()
    roots = [size**0.5 for size in sizes]
    total = sum(float(bound) * root for bound, root in zip(bounds, roots, strict=True))
    scales = [sigma * (float(bound) / root * total) ** 0.5 for bound, root in zip(bounds, roots, strict=True)]
    cost = sum((float(bound) / scale) ** 2 for bound, scale in zip(bounds, scales, strict=True))
    assert cost == pytest.approx(sigma**-2, rel=1e-6)  # what was paid for
    parts: list[list[Tensor]] = [[] for _ in range(groups.count)]
    for group, part in zip(groups.of, noise, strict=True):
        parts[group].append(part.flatten() * taken.expected_batch / scales[group])
    return [torch.cat(part) for part in parts]


def is_standard(noise: Tensor) -> bool:
    """Whether the squares add up to what those of standard normals do, at 1 in 10⁶."""
    total, count = float(noise.double().square().sum()), noise.numel()
    return bool(stats.chi2.ppf(5e-7, count) < total < stats.chi2.isf(5e-7, count))


@pytest.mark.parametrize("way", ["clip", "groups", "kinds", "decay", "all"])
def test_the_noise_in_each_group_has_the_scale_that_was_paid_for(way: str, steps: list[Any]) -> None:
    fit_plan(plan_gan(TABLE, shape="mlp", epochs=25, batch=60, **WAYS[way]), TABLE)
    groups = list(zip(*(in_units(*taken) for taken in steps), strict=True))
    assert len(groups) == {"clip": 1, "decay": 1, "kinds": 2}.get(way, 3)
    for noises in groups:
        noise = torch.cat(noises)
        assert noise.numel() >= 200
        assert [is_standard(fault * noise) for fault in (2 / 3, 1.0, 3 / 2)] == [False, True, False]


# --- bounds ---


def test_a_bound_falls_to_its_part_by_the_end(steps: list[Any]) -> None:
    plan = plan_gan(TABLE, epochs=8, decay=0.1, clip=2.0, groups=KINDS)
    fit_plan(plan, TABLE)
    count = plan.network.training.steps
    assert len(steps) == count > 5
    for number, (_, bounds, _) in enumerate(steps):
        assert bounds.tolist() == pytest.approx([2.0 / 2**0.5 * 0.1 ** (number / count)] * 2, rel=1e-4)
    assert float(steps[-1][0].policy.bounds.norm()) == pytest.approx(0.2, rel=1e-4)


def test_bounds_of_groups_are_together_what_one_would_be(steps: list[Any]) -> None:
    for groups, count in (("all", 1), (KINDS, 2), (3, 3), (1000, 6)):
        steps.clear()
        fit_plan(plan_gan(TABLE, shape="mlp", clip=0.7, groups=groups), TABLE)
        taken, bounds, _ = steps[0]
        assert taken.groups.count == count
        assert float(bounds.norm()) == pytest.approx(0.7)


def test_public_bounds_are_of_the_size_of_public_gradients_and_follow_them(steps: list[Any]) -> None:
    fit_plan(plan_gan(TABLE, shape="mlp", epochs=4, clip="public", groups=KINDS, learning_rate=0.05), TABLE)
    taken, bounds, _ = steps[0]
    rows = Features(TABLE).to_examples(random_records(TABLE, 20, 9)).take(np.arange(20))
    end = taken.policy.bounds
    assert not torch.allclose(bounds, end, rtol=0.05)
    each = []
    for row in range(20):  # what the last `follow` saw, up to what is drawn
        losses = [taken.private_loss({name: values[row : row + 1] for name, values in rows.items()})]
        each.append(torch.autograd.grad(losses[0].sum(), list(taken.module.parameters())))
    for group in range(2):
        mine = [[g for g, of in zip(one, taken.groups.of, strict=True) if of == group] for one in each]
        lengths = [float(torch.cat([part.flatten() for part in one]).norm()) for one in mine]
        assert np.mean(lengths) == pytest.approx(float(end[group]), rel=0.25)


# --- the warm start ---


def start(records: Records, public: Records, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> list[Tensor]:
    """Both networks as they are after the warm start."""
    found: list[Tensor] = []

    def noting(game: Any, *args: Any, **options: Any) -> None:
        before = [weight.clone() for weight in game.critic.parameters()]
        train_on_public(game, *args, **options)
        weights = [*game.critic.parameters(), *game.generator.parameters()]
        assert not any(torch.equal(old, new) for old, new in zip(before, weights, strict=False))
        found.extend(weight.detach().clone() for weight in weights)

    monkeypatch.setattr(gan_training, "train_on_public", noting)
    features, plan = Features(TABLE), plan_gan(TABLE, condition="label", warm=6, **settings)
    gan_training.train_gan(
        features,
        features.to_examples(records),
        plan,
        ConditionalMeans(torch.ones(3) / 3, [torch.full((features.width,), 0.5)] * 3, [0.1] * 3),
        None,
        Ledger(epsilon=2.0, delta=DELTA),
        FitContext(seed=0, public=public),
    )
    return found


def test_a_warm_start_has_seen_no_private_record(monkeypatch: pytest.MonkeyPatch) -> None:
    public, other = random_records(TABLE, 30, 1), random_records(TABLE, 30, 2)
    first, second, none = (start(random_records(TABLE, n, n), public, monkeypatch) for n in (60, 90, 0))
    assert len(first) > 6
    for weights in zip(first, second, none, strict=True):
        assert torch.equal(weights[0], weights[1])
        assert torch.equal(weights[0], weights[2])
    moved = start(random_records(TABLE, 60, 60), other, monkeypatch)
    assert not torch.equal(first[0], moved[0])


def test_a_warm_start_learns_what_public_records_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A critic that played tells public records from generated ones."""
    losses: list[float] = []

    def noting(game: Any, public: Any, **options: Any) -> None:
        batch = public.take(np.arange(len(public)))
        losses.append(float(game.loss(batch).detach().mean()))
        train_on_public(game, public, **{**options, "steps": 40, "learning_rate": 0.01})
        losses.append(float(game.loss(batch).detach().mean()))
        assert all(weight.grad is None for weight in game.critic.parameters())

    monkeypatch.setattr(gan_training, "train_on_public", noting)
    public = random_records(PLAIN, 200)
    public.codes["twin"][:] = public.codes["label"]  # the start knows nothing of it
    ledger = Ledger(epsilon=2.0, delta=DELTA)
    plan = plan_gan(PLAIN, shape="mlp", warm=40, generator_rate=1e-6)
    Gan.fit(random_records(PLAIN, 60), plan, ledger, FitContext(seed=0, public=public))
    assert losses[1] < losses[0] - 0.2


# --- from the front door ---


def draw_values(schema: Schema, n: int, seed: int = 0) -> dict[str, Any]:
    return decode_records(random_records(schema, n, seed))


def fit_release(public: Any, out: Path | None = None, *, resume: bool = False, **settings: Any) -> Release:
    """With a place on disk, the noise is the same each time."""
    noise = None if out is None else NoiseSource.seeded(1)
    options = {**QUICK, "epochs": 12, **settings}
    synthesizer = Synthesizer("gan", epsilon=2.0, delta=DELTA, public=public, seed=4, noise=noise, settings=options)
    return synthesizer.fit(draw_values(TABLE, 60), TABLE, out=out, resume=resume).release_


def test_the_certificate_says_what_was_taken_for_public() -> None:
    release = fit_release(draw_values(TABLE, 2, 9), warm=2)
    assert PUBLIC_RECORDS in release.certificate.assumed_public
    assert PUBLIC_RECORDS in str(release.certificate)
    assert release.verify() == []
    lines = [line for line in release.certificate.assumed_public if line != PUBLIC_RECORDS]
    silent = replace(release, certificate=release.certificate.model_copy(update={"assumed_public": lines}))
    assert any("assumes public" in problem for problem in silent.verify())
    alone = fit_release(None)
    assert PUBLIC_RECORDS not in alone.certificate.assumed_public
    assert alone.verify() == []


@pytest.mark.parametrize("way", [{"warm": 5}, {"clip": "public"}, {"groups": 3}], ids=["warm", "clip", "groups"])
def test_what_needs_public_records_is_refused_without_them(way: dict[str, Any]) -> None:
    ledger = Ledger(epsilon=2.0, delta=DELTA)
    with pytest.raises(SundogError, match=f"{next(iter(way))} = .* needs public records; add --public FILE") as caught:
        Synthesizer("gan", epsilon=2.0, ledger=ledger, settings={**QUICK, **way}).fit(draw_values(TABLE, 20), TABLE)
    assert "\n" not in str(caught.value)
    assert ledger.charges == ()


@pytest.mark.parametrize(
    ("count", "settings", "what"),
    [
        (1, {}, "has 1 records; at least 2 are needed"),
        (5, {"clip": "public", "decay": 0.5}, "no decay of its own"),
        (5, {"decay": 0.0}, "setting 'decay' must be"),
        (5, {"decay": 1.5}, "setting 'decay' must be"),
        (5, {"groups": 0}, "setting 'groups' must be"),
        (5, {"groups": "layers"}, "setting 'groups' must be"),
        (5, {"warm": -1}, "setting 'warm' must be"),
        (5, {"warm": 2.5}, "setting 'warm' must be"),
        (5, {"public": True}, "use --public"),
    ],
    ids=repr,
)
def test_what_makes_no_sense_is_refused_before_anything_is_spent(
    count: int, settings: dict[str, Any], what: str
) -> None:
    ledger, public = Ledger(epsilon=2.0, delta=DELTA), draw_values(TABLE, count)
    with pytest.raises(SundogError, match=what) as caught:
        Synthesizer("gan", epsilon=2.0, public=public, ledger=ledger, settings={**QUICK, **settings}).fit(
            draw_values(TABLE, 20), TABLE
        )
    assert "\n" not in str(caught.value)
    assert ledger.charges == ()


SEEDED = pytest.mark.parametrize("way", ["all", "all that falls"])


@SEEDED
def test_a_seed_fixes_how_it_clips(way: str) -> None:
    found = []
    for state in (1, 2):
        torch.manual_seed(state)  # of others, who draw as they like
        plan, ledger = (
            plan_gan(TABLE, epochs=4, **WAYS[way]),
            Ledger(epsilon=2.0, delta=DELTA, noise=NoiseSource.seeded(1)),
        )
        context = FitContext(seed=0, public=random_records(TABLE, 20, 9))
        found.append(Gan.fit(random_records(TABLE, 60), plan, ledger, context).state().tensors)
    assert all(np.array_equal(found[0][name], found[1][name]) for name in found[0])


@SEEDED
def test_an_interrupted_fit_with_public_records_ends_as_one_that_was_not(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "Pace", lambda block: Pace(5))

    def fit(out: Path, *, resume: bool = False) -> Release:
        torch.manual_seed(resume)
        return fit_release(draw_values(TABLE, 20, 9), out, resume=resume, **WAYS[way])

    assert_goes_on(fit, tmp_path, monkeypatch)
