"""Where an example is a person with several records: one gradient, one clipping, one charge for all of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.contracts.material import decode_records, random_records, schema_of
from tests.models.gan.material import DELTA, IMAGES, LABEL, QUICK, SERIES, TABLE, assert_clipped, new_game
from torch import Tensor

from sundog.data.reading.read import encode, read
from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.fit.synthesizer import Synthesizer
from sundog.models.gan import gan_training
from sundog.models.gan.adversarial_step import AdversarialGame
from sundog.models.gan.conditional_means import ConditionalMeans
from sundog.models.gan.configuration import GanConfiguration
from sundog.models.gan.gan import Gan
from sundog.models.gan.objectives import NonSaturating, Objective, Wasserstein
from sundog.models.neural.features import Compact, Features
from sundog.models.neural.person_examples import PeopleRows
from sundog.models.protocol import FitContext
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.ledger import Budget, Ledger, merge_blocks
from sundog.privacy.mechanisms import noisy_count
from sundog.privacy.noise import NoiseSource
from sundog.release.release import Release
from sundog.training.clipping import Fixed
from sundog.training.groups import group_all
from sundog.training.per_example.engine import ClippedSum, clip_and_sum
from sundog.training.trainer import Trainer

CAP = 3
VISITS = Schema.from_dict({**TABLE.to_dict(), "unit": "who", "cap": CAP})
METERS = schema_of({"meter": {**SERIES, "nullable": True}}, unit="house", cap=CAP)
HELD = [1, 3, 2, 3, 1, 2]  # records of each person

CASES = pytest.mark.parametrize(
    ("schema", "shape"), [(VISITS, "mlp"), (METERS, "lstm"), (VISITS, "pairs")], ids=["mlp", "lstm", "pairs"]
)
OBJECTIVES = pytest.mark.parametrize("objective", [Wasserstein(10.0), NonSaturating()], ids=["gp", "ns"])


pytestmark = pytest.mark.usefixtures("quick")


def draw_people(schema: Schema, held: list[int], seed: int = 0) -> Records:
    """Random records of people who have so many of them, in no order."""
    unit = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(held)), held))
    return replace(random_records(schema, len(unit), seed), unit=unit.astype(np.int64))


def draw_visits(held: list[int], seed: int = 0) -> pd.DataFrame:
    """The same as a table, for columns of one value."""
    records = draw_people(SIMPLE, held, seed)
    assert records.unit is not None
    columns = decode_records(records)
    return pd.DataFrame({**columns, "who": [f"person {number}" for number in records.unit]})


SIMPLE = schema_of({"label": LABEL, "on": {"type": "boolean"}}, unit="who", cap=CAP)


def make_people(labels: list[int]) -> Records:
    """People with one record each, who differ in their labels."""
    codes = {"label": np.array(labels, np.uint8), "on": np.zeros(len(labels), np.uint8)}
    return Records(SIMPLE, codes, len(labels), unit=np.arange(len(labels)))


def steep_game(schema: Schema, shape: str, objective: Objective) -> AdversarialGame:
    """A critic whose gradients are of very different lengths."""
    game = new_game(schema, shape, objective, condition=None)
    generator = torch.Generator().manual_seed(2)
    for weight in game.critic.parameters():
        size = 2.0 * weight.data.std(correction=0).clamp_min(1e-4)  # a critic of pairs begins with zeros
        weight.data = size * torch.randn(weight.shape, generator=generator)
    return game


def fix_draws(game: AdversarialGame, batch: Compact, monkeypatch: pytest.MonkeyPatch) -> tuple[Tensor, Tensor, Tensor]:
    """Records, one that is generated for each, and a point between the two; those of the first people stay theirs."""
    torch.manual_seed(5)
    real = game.features.to_dense(batch)
    fake, places = game.generate(real[..., game.generator.condition]), torch.rand(*real.shape[:-1], 1)
    monkeypatch.setattr(game, "generate", lambda condition: fake[: len(condition)])
    monkeypatch.setattr(torch, "rand", lambda *shape, device: places[: shape[0]])
    return real, fake, places


def compute_loss(game: AdversarialGame, real: Tensor, fake: Tensor, place: Tensor) -> Tensor:
    """The critic's loss on one record, (features,), from the formulas."""
    mine, other = game.critic(real[None])[0], game.critic(fake[None])[0]
    if isinstance(game.objective, NonSaturating):
        lost: Tensor = -mine.sigmoid().log() - (-other).sigmoid().log()
        return lost
    between = (place * real + (1 - place) * fake)[None].requires_grad_()
    (slope,) = torch.autograd.grad(game.critic(between)[0], between, create_graph=True)
    loss: Tensor = other - mine + 10.0 * (slope.norm() - 1) ** 2
    return loss


def gradients(game: AdversarialGame, held: list[int], drawn: tuple[Tensor, Tensor, Tensor]) -> list[list[Tensor]]:
    """One person after another: the gradient of the mean over that person's records."""
    weights, found = list(game.critic.parameters()), []
    for person, count in enumerate(held):
        losses = [compute_loss(game, *(rows[person, number] for rows in drawn)) for number in range(count)]
        found.append(list(torch.autograd.grad(torch.stack(losses).mean(), weights)))
    return found


def length(gradient: list[Tensor]) -> Tensor:
    found: Tensor = torch.cat([part.flatten() for part in gradient]).norm()
    return found


def sum_clipped(game: AdversarialGame, batch: Any, clip: float) -> list[Tensor]:
    return clip_and_sum(game.critic, game.loss, batch, group_all(game.critic), Fixed(torch.tensor([clip])).weigh).sums


# --- one gradient for each person ---


@CASES
@OBJECTIVES
@pytest.mark.parametrize("masks", ["when needed", "always"])
def test_the_clipped_sum_is_that_of_a_loop_over_people(
    schema: Schema, shape: str, objective: Objective, masks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = steep_game(schema, shape, objective)
    batch = PeopleRows(game.features, draw_people(schema, HELD)).take(np.arange(len(HELD)))
    each = gradients(game, HELD, fix_draws(game, batch, monkeypatch))
    norms = torch.stack([length(gradient) for gradient in each])
    clip = norms.median()
    assert norms.min() < 0.95 * clip < 1.05 * clip < norms.max()
    factors = (clip / norms).clamp_max(1.0)
    sums = [sum(w * part for w, part in zip(factors, parts, strict=True)) for parts in zip(*each, strict=True)]
    assert_clipped(game, batch, masks, sums, norms, clip)


@CASES
@OBJECTIVES
@pytest.mark.parametrize("held", [1, CAP])
def test_one_person_more_moves_the_sum_by_no_more_than_the_clip(
    schema: Schema, shape: str, objective: Objective, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many records that person has; without clipping it would move by more."""
    game, counts = steep_game(schema, shape, objective), [*HELD, held]
    rows = PeopleRows(game.features, draw_people(schema, counts))
    batch, rest = rows.take(np.arange(len(counts))), rows.take(np.arange(len(HELD)))
    drawn = fix_draws(game, batch, monkeypatch)
    long = float(length(gradients(game, counts, drawn)[-1]))
    clip = long / 4
    moved = [a - b for a, b in zip(sum_clipped(game, batch, clip), sum_clipped(game, rest, clip), strict=True)]
    assert float(length(moved)) == pytest.approx(clip, rel=1e-3)
    free = [a - b for a, b in zip(sum_clipped(game, batch, 1e6), sum_clipped(game, rest, 1e6), strict=True)]
    assert float(length(free)) == pytest.approx(long, rel=1e-3)


@pytest.mark.parametrize("place", [0, 7, 20])
@pytest.mark.parametrize("masks", ["when needed", "always"])
def test_somebody_whose_loss_is_not_finite_moves_nobody_elses_gradient(place: int, masks: Any) -> None:
    """Wherever that record lies; all others have empty places."""
    game = new_game(SIMPLE, "mlp", condition=None)
    with torch.no_grad():
        next(game.critic.parameters())[:, 2] = 3e38  # of the label c, which nobody else has
    generated = Features(SIMPLE).to_dense(PeopleRows(game.features, make_people([0])).take(np.arange(1)))[:, :1]
    game.generate = lambda condition: generated.expand(*condition.shape[:-1], -1)  # type: ignore[method-assign]
    sums = []
    for labels in ([0] * place + [2] + [1] * (20 - place), [0] * place + [1] * (20 - place)):
        batch = PeopleRows(game.features, make_people(labels)).take(np.arange(len(labels)))
        found = clip_and_sum(
            game.critic, game.loss, batch, group_all(game.critic), Fixed(torch.tensor([1e-3])).weigh, masks=masks
        )
        assert found.present.tolist() == [label < 2 for label in labels]
        sums.append(found.sums)
    assert float(length(sums[1])) > 5e-3
    assert float(length([a - b for a, b in zip(*sums, strict=True)])) < 1.01e-3


@CASES
def test_a_record_several_times_counts_as_once(schema: Schema, shape: str) -> None:
    records = draw_people(schema, [1, 1])
    many = replace(records.take([0, 0, 0, 1]), unit=np.array([0, 0, 0, 1]))
    once = replace(records.take([0, 1]), unit=np.array([0, 1]))
    game = steep_game(schema, shape, NonSaturating())
    first, second = (PeopleRows(game.features, one) for one in (many, once))
    fake = game.features.to_dense(first.take(np.array([1])))[:, :1]
    game.generate = lambda condition: fake.expand(*condition.shape[:-1], -1)  # type: ignore[method-assign]
    both = np.arange(2)
    torch.testing.assert_close(game.loss(first.take(both)), game.loss(second.take(both)))
    torch.testing.assert_close(first.take_vectors(both), second.take_vectors(both))
    torch.testing.assert_close(sum_clipped(game, first.take(both), 0.1), sum_clipped(game, second.take(both), 0.1))


@CASES
@OBJECTIVES
def test_nobody_is_an_example_too(schema: Schema, shape: str, objective: Objective) -> None:
    game = steep_game(schema, shape, objective)
    for held in ([2, 1], []):  # a batch without people, of some and of none
        batch = PeopleRows(game.features, draw_people(schema, held)).take(np.arange(0))
        assert all(not total.any() for total in sum_clipped(game, batch, 1.0))


@CASES
@OBJECTIVES
def test_what_fills_empty_places_is_not_seen(schema: Schema, shape: str, objective: Objective) -> None:
    """They hold copies of a record of the same person."""
    game = steep_game(schema, shape, objective)
    batch = PeopleRows(game.features, draw_people(schema, HELD)).take(np.arange(len(HELD)))
    other = PeopleRows(game.features, draw_people(schema, [CAP] * len(HELD), seed=7)).take(np.arange(len(HELD)))
    sums = []
    for filled in (batch, other):
        mixed = {
            name: torch.where(batch["held"].view(*batch["held"].shape, *[1] * (rows.dim() - 2)), rows, filled[name])
            for name, rows in batch.items()
            if name != "held"
        }
        torch.manual_seed(3)
        sums.append(sum_clipped(game, {**mixed, "held": batch["held"]}, 1.0))
    torch.testing.assert_close(sums[0], sums[1])


# --- who is who ---


@pytest.mark.parametrize("seed", range(4))
def test_people_are_numbered_after_the_cap_and_each_has_a_record(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"p{number}" for number in rng.integers(0, 9, 25)]
    frame = pd.DataFrame({"who": names, "label": rng.choice(["a", "b", "c"], 25), "on": rng.random(25) < 0.5})
    records = encode(read(frame, SIMPLE), SIMPLE)
    kept, seen = [], Counter[str]()
    for row, name in enumerate(names):
        seen[name] += 1
        if seen[name] <= CAP:
            kept.append(row)
    assert records.unit is not None
    assert len(records) == len(kept)
    order = list(dict.fromkeys(names))
    assert [order[number] for number in records.unit] == [names[row] for row in kept]
    rows = PeopleRows(Features(SIMPLE), records)
    assert len(rows) == len(order)
    held = rows.take(np.arange(len(rows)))["held"]
    assert held.sum(dim=1).tolist() == [min(CAP, seen[name]) for name in order]
    label = np.array([["a", "b", "c"].index(value) for value in frame["label"]])
    for person, name in enumerate(order):
        own = [label[row] for row in kept if names[row] == name]
        found = rows.take_vectors(np.array([person]))[0, Features(SIMPLE).at("label")]
        np.testing.assert_allclose(found.numpy(), np.bincount(own, minlength=3) / len(own), atol=1e-6)


def test_whoever_has_no_record_is_no_example() -> None:
    records = draw_people(SIMPLE, HELD)
    assert records.unit is not None
    some = records.take(np.flatnonzero(np.isin(records.unit, (1, 4))))
    rows, whole = PeopleRows(Features(SIMPLE), some), PeopleRows(Features(SIMPLE), records)
    assert len(rows) == 2
    for mine, theirs in zip(rows.take(np.arange(2)).values(), whole.take(np.array([1, 4])).values(), strict=True):
        assert torch.equal(mine, theirs)


def test_empty_places_hold_the_persons_own_first_record() -> None:
    records = draw_people(METERS, HELD)
    assert records.unit is not None
    rows = PeopleRows(Features(METERS), records)
    dense = rows._features.to_dense(rows.take(np.arange(len(HELD))))
    alone = rows._features.to_examples(records).take_vectors(np.arange(len(records)))
    for person, held in enumerate(HELD):
        own = np.flatnonzero(records.unit == person)
        assert torch.equal(dense[person], alone[[*own, *[own[0]] * (CAP - held)]])


def test_records_of_nobody_are_no_examples() -> None:
    with pytest.raises(ValueError, match="need the number of their person"):
        PeopleRows(Features(SIMPLE), random_records(SIMPLE, 4))


# --- paying ---


@CASES
def test_the_charge_is_the_same_however_many_people_and_records_there_are(schema: Schema, shape: str) -> None:
    settings = {**QUICK, "shape": shape}
    plan = Gan.plan(schema, Budget(2.0, DELTA), GanConfiguration.parse(settings), already=(), records=60)
    assert [charge.purpose for charge in plan.charges].count("number of people") == 1
    assert compute_epsilon(plan.charges, delta=DELTA) == pytest.approx(2.0, rel=2e-3)
    for held in (HELD * 6, [CAP], []):
        ledger = Ledger(epsilon=2.0, delta=DELTA)
        Gan.fit(draw_people(schema, held), plan, ledger, FitContext(seed=0))
        assert merge_blocks(ledger.charges) == list(plan.charges)


@pytest.mark.parametrize("shape", ["mlp", "pairs"])
def test_all_that_a_training_learns_of_people_goes_through_the_noisy_sum(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without that sum, others and another number of them give the same networks, bit for bit."""
    features = Features(VISITS)
    settings = {**QUICK, "shape": shape, "epochs": 3}
    plan = Gan.plan(VISITS, Budget(2.0, DELTA), GanConfiguration.parse(settings), already=(), records=60)

    def networks(held: list[int]) -> list[Tensor]:
        examples = PeopleRows(features, draw_people(VISITS, held, seed=len(held)))
        ledger = Ledger(epsilon=2.0, delta=DELTA, noise=NoiseSource.seeded(1))
        start = ConditionalMeans(torch.zeros(0), [torch.full((features.width,), 0.5)], [0.1])
        both = gan_training.train_gan(features, examples, plan, start, None, ledger, FitContext(seed=0))
        return [weight.detach().clone() for weight in both.parameters()]

    def nothing(*args: Any, **options: Any) -> ClippedSum:
        found = clip_and_sum(*args, **options)
        return replace(found, sums=[torch.zeros_like(total) for total in found.sums])

    first, second = networks(HELD * 4), networks([CAP] * 9)
    assert not all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    monkeypatch.setattr("sundog.training.step.clip_and_sum", nothing)
    for weights in zip(networks(HELD * 4), networks([CAP] * 9), networks([]), strict=True):
        assert torch.equal(weights[0], weights[1])
        assert torch.equal(weights[0], weights[2])


def fit(out: Path | None = None, *, resume: bool = False, noise: NoiseSource | None = None) -> Release:
    settings = {**QUICK, "epochs": 4, "shape": "mlp"}
    synthesizer = Synthesizer("gan", epsilon=2.0, delta=DELTA, seed=4, noise=noise, settings=settings)
    return synthesizer.fit(draw_visits(HELD * 6), SIMPLE, out=out, resume=resume).release_


def test_the_certificate_names_the_unit_and_what_it_cost_to_count_people(tmp_path: Path) -> None:
    release = fit(tmp_path / "o.sundog")
    again = Release.load(tmp_path / "o.sundog")
    assert again.verify() == []
    assert (again.certificate.unit, again.certificate.cap) == ("who", CAP)
    assert "one who (at most 3 records of each were used)" in str(again.certificate)
    assert "who" not in again.sample(5, seed=0)
    charges = [charge for charge in release.certificate.charges if charge.purpose != "number of people"]
    assert len(charges) == len(release.certificate.charges) - 1
    without = replace(release, certificate=release.certificate.model_copy(update={"charges": charges}))
    assert "no charge pays for the number of people" in without.verify()


def test_people_are_counted_once_although_the_fit_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit(tmp_path / "whole.sundog", noise=NoiseSource.seeded(1))
    counts = []

    def counted(*args: Any, **options: Any) -> int:
        counts.append(args)
        return noisy_count(*args, **options)

    def stop(self: Trainer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sundog.models.gan.conditional_means.noisy_count", counted)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "run", stop)
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path / "o.sundog", noise=NoiseSource.seeded(1))
    again = fit(tmp_path / "o.sundog", resume=True, noise=NoiseSource.seeded(1))
    assert counts == [(len(HELD) * 6,)]
    assert again.certificate.charges == whole.certificate.charges
    for name, tensor in whole.model.state().tensors.items():
        assert np.array_equal(tensor, again.model.state().tensors[name]), name


# --- what is for single records ---


@pytest.mark.parametrize(
    ("schema", "settings", "what"),
    [
        (IMAGES, {"shape": "conv"}, "judges single records, and people have up to 3 here"),
        (TABLE, {"condition": "label"}, "a person has up to 3 records here, which may differ in 'label'"),
    ],
    ids=["conv", "condition"],
)
def test_what_is_for_single_records_is_refused(schema: Schema, settings: dict[str, Any], what: str) -> None:
    shared = Schema.from_dict({**schema.to_dict(), "unit": "who", "cap": CAP})
    with pytest.raises(SundogError, match=what) as caught:
        GanConfiguration.parse({**settings}).check(shared)
    assert "\n" not in str(caught.value)
    alone = Schema.from_dict({**schema.to_dict(), "unit": "who", "cap": 1})
    GanConfiguration.parse({**settings}).check(alone)


def test_what_is_chosen_for_people_is_never_refused() -> None:
    for schema in (IMAGES, TABLE, METERS):
        shared = Schema.from_dict({**schema.to_dict(), "unit": "who", "cap": CAP})
        plan = Gan.plan(shared, Budget(2.0, DELTA), GanConfiguration(), already=(), records=60)
        assert plan.settings.condition is None
        assert plan.settings.shape != "conv"
