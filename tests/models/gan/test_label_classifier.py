"""A classifier of what a generator is told: its loss, its share of the budget, and what a generator learns from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.contracts.material import KINDS, random_records, schema_of
from tests.models.gan.material import DELTA, GAPS, IMAGES, LABEL, QUICK, SERIES, TABLE, draw_examples, new_game
from torch import Tensor

from sundog.data.schema import Schema
from sundog.errors import SundogError
from sundog.models.gan import label_classifier as module
from sundog.models.gan.adversarial_step import AdversarialGame
from sundog.models.gan.configuration import GanConfiguration, resolve
from sundog.models.gan.gan import Gan
from sundog.models.gan.label_classifier import LabelClassifier, plan_label_classifier, train_label_classifier
from sundog.models.gan.networks import new_label_classifier
from sundog.models.gan.objectives import NonSaturating, Wasserstein
from sundog.models.gan.released import HAS_CLASSIFIER, ReleasedGan, find_unpaid_classifier
from sundog.models.neural.features import FeatureRows, Features
from sundog.models.neural.noisy_means import calibrate_share
from sundog.models.protocol import FitContext
from sundog.models.released import CLASSIFIER
from sundog.privacy.accountant import compute_epsilon
from sundog.privacy.events import Charge, Gaussian
from sundog.privacy.ledger import Budget, Ledger, merge_blocks
from sundog.privacy.noise import NoiseSource
from sundog.training.batches.examples import Padded
from sundog.training.clipping import Fixed
from sundog.training.groups import group_all
from sundog.training.per_example.engine import clip_and_sum

MIXED = schema_of({**TABLE.to_dict()["columns"], "image": {"type": "image", "shape": [3, 4]}})
CASES = pytest.mark.parametrize(
    ("schema", "shape"),
    [(IMAGES, "conv"), (GAPS, "conv"), (GAPS, "lstm"), (TABLE, "mlp"), (IMAGES, "mlp"), (MIXED, "conv")],
    ids=["images", "series", "lstm", "table", "mlp of images", "mixed"],
)


def classifier_of(schema: Schema, shape: str, *, size: float = 1.0, seed: int = 0) -> LabelClassifier:
    """One with random weights, the same each time."""
    features = Features(schema)
    condition = features.at("label")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        classifier = LabelClassifier(features, new_label_classifier(features, shape, condition, hidden=8), condition)
    for weight in classifier.parameters():
        weight.data *= size
    return classifier


def compute_surprise(classifier: LabelClassifier, record: Tensor) -> Tensor:
    """How surprising the label of one record is, (features,), from the formula."""
    at = classifier.condition
    others = torch.cat([record[: at.start], record[at.stop :]])
    (logits,) = classifier.body(others[None])
    cross_entropy: Tensor = -logits.softmax(dim=0)[record[at].argmax()].log()
    return cross_entropy


# --- the loss ---


@CASES
@pytest.mark.parametrize("masks", ["when needed", "always"])
def test_the_clipped_sum_is_that_of_a_loop_over_records(schema: Schema, shape: str, masks: Any) -> None:
    classifier, batch = classifier_of(schema, shape, size=2.0), draw_examples(schema)
    weights, records = list(classifier.parameters()), classifier.features.to_dense(batch)
    gradients = [torch.autograd.grad(compute_surprise(classifier, record), weights) for record in records]
    norms = torch.stack([torch.cat([part.flatten() for part in gradient]).norm() for gradient in gradients])
    clip = norms.median()
    assert norms.min() < 0.9 * clip < 1.1 * clip < norms.max()
    factors = (clip / norms).clamp_max(1.0)
    sums = [sum(w * part for w, part in zip(factors, parts, strict=True)) for parts in zip(*gradients, strict=True)]
    whole: Any = batch if masks == "when needed" else Padded(batch, torch.ones(9, dtype=torch.bool))
    found = clip_and_sum(
        classifier, classifier.loss, whole, group_all(classifier), Fixed(clip[None]).weigh, masks=masks
    )
    torch.testing.assert_close(found.norms[0], norms, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.sums, sums, rtol=1e-3, atol=1e-4 * float(clip))


@CASES
def test_the_surprise_at_a_record_is_about_that_record_alone(schema: Schema, shape: str) -> None:
    classifier, batch, others = (
        classifier_of(schema, shape, size=2.0),
        draw_examples(schema),
        draw_examples(schema, seed=1),
    )
    changed = {name: torch.cat([others[name][:4], rows[4:5], others[name][5:]]) for name, rows in batch.items()}
    before, after = classifier.loss(batch).detach(), classifier.loss(changed).detach()
    torch.testing.assert_close(before[4], after[4])
    assert (before - after).abs()[[0, 1, 2, 3, 5, 6, 7, 8]].min() > 1e-4
    alone = classifier.loss({name: rows[4:5] for name, rows in batch.items()}).detach()
    torch.testing.assert_close(before[4:5], alone)


@CASES
def test_a_batch_may_be_empty(schema: Schema, shape: str) -> None:
    classifier, nobody = classifier_of(schema, shape), {name: rows[:0] for name, rows in draw_examples(schema).items()}
    found = clip_and_sum(classifier, classifier.loss, nobody, group_all(classifier), Fixed(torch.tensor([1.0])).weigh)
    assert all(not total.any() for total in found.sums)


@CASES
def test_it_looks_at_everything_but_the_label(schema: Schema, shape: str) -> None:
    """And takes the label for what is right: its gradient there is the surprise at each value."""
    classifier = classifier_of(schema, shape)
    x = classifier.features.to_dense(draw_examples(schema, 60)).requires_grad_()
    (gradient,) = torch.autograd.grad(classifier.cross_entropy(x).sum(), x)
    assert (gradient.abs().sum(dim=0) > 0).all()
    p = torch.exp(-gradient[:, classifier.condition])
    torch.testing.assert_close(p.sum(dim=1), torch.ones(60))
    moved = x.detach().clone()
    moved[:, classifier.condition] = moved[:, classifier.condition].roll(1, dims=1)
    (again,) = torch.autograd.grad(classifier.cross_entropy(moved.requires_grad_()).sum(), moved)
    torch.testing.assert_close(p, torch.exp(-again[:, classifier.condition]))  # whatever the label is


# --- records of every size ---


def draw_stripes(schema: Schema, n: int, seed: int = 0) -> FeatureRows:
    """Images or series of noise, of which one part is bright: which one, the label says."""
    records = random_records(schema, n, seed)
    (name,) = (name for name, column in schema.columns.items() if column.shape)
    records.codes["label"][:] = np.arange(n) % 3
    codes = records.codes[name]
    codes[...] //= 4
    bright = (schema.columns[name].size - 1) // 2
    third = max(1, codes.shape[1] // 3)
    for row in range(n):
        start = third * (row % 3)
        codes[row, start : start + third] += bright
    return Features(schema).to_examples(records)


@pytest.mark.parametrize(
    ("columns", "most"),
    [
        ({"type": "image", "shape": [6, 5]}, 10**4),
        ({"type": "image", "shape": [28, 28]}, 3 * 10**4),
        ({"type": "image", "shape": [32, 32, 3]}, 3 * 10**4),
        ({"type": "image", "shape": [64, 64]}, 10**5),
        ({**SERIES, "length": 96}, 10**5),
        ({**SERIES, "length": 4}, 10**4),
    ],
    ids=["6x5", "28x28", "32x32x3", "64x64", "96", "4"],
)
def test_a_classifier_of_convolutions_learns_labels(columns: dict[str, Any], most: int) -> None:
    schema = schema_of({"what": columns, "label": LABEL})
    classifier = classifier_of(schema, "conv")
    assert 100 < sum(weight.numel() for weight in classifier.parameters()) < most  # private training does well with few
    batch = draw_stripes(schema, 48).take(np.arange(48))
    optimizer = torch.optim.Adam(classifier.parameters(), lr=0.01)
    first = float(classifier.loss(batch).mean().detach())
    for _ in range(25):
        optimizer.zero_grad()
        classifier.loss(batch).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert float(classifier.loss(batch).mean().detach()) < 0.5 * first


# --- its share of the budget ---


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_it_costs_its_share(epsilon: float, share: float) -> None:
    budget = Budget(epsilon, DELTA)
    plan = plan_label_classifier(budget, share=share, records=5000)
    one = Charge(event=Gaussian(noise_multiplier=calibrate_share(budget, share)), purpose=CLASSIFIER)
    wanted = compute_epsilon([one], delta=DELTA)
    assert 0.998 * wanted <= compute_epsilon([plan.make_charge(plan.steps)], delta=DELTA) <= wanted
    assert plan.purpose == CLASSIFIER == "naming"  # which certificates of earlier releases say
    assert plan.steps * plan.sample_rate == pytest.approx(module._EPOCHS, rel=0.01)


@pytest.mark.parametrize(
    ("schema", "shape"), [(IMAGES, "conv"), (TABLE, "mlp"), (GAPS, "lstm")], ids=["images", "table", "series"]
)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.5])
def test_all_charges_together_are_the_budget(schema: Schema, shape: str, share: float) -> None:
    epsilon = 8.0 if share == 0.3 else 1.0
    settings = {"shape": shape, "condition": "label", "classifier": share}
    plan = Gan.plan(schema, Budget(epsilon, DELTA), GanConfiguration.parse(settings), already=(), records=2000)
    assert 0.98 * epsilon < compute_epsilon(plan.charges, delta=DELTA) <= epsilon
    trainings = [charge for charge in plan.charges if charge.purpose == CLASSIFIER]
    assert len(trainings) == (share > 0)
    for charge in trainings:
        assert plan.classifier is not None
        assert charge == plan.classifier.make_charge(plan.classifier.steps)
    assert (plan.classifier is None) == (share == 0)


def test_the_more_it_gets_the_less_noise_it_has_and_the_more_has_the_critic() -> None:
    settings = {"condition": "label"}
    classifiers, training = [], []
    for share in (0.1, 0.3, 0.5):
        configuration = GanConfiguration.parse({**settings, "classifier": share})
        plan = Gan.plan(IMAGES, Budget(2.0, DELTA), configuration, already=(), records=5000)
        assert plan.classifier is not None
        classifiers.append(plan.classifier.noise_multiplier)
        training.append(plan.network.training.noise_multiplier)
    assert classifiers == sorted(classifiers, reverse=True)
    assert training == sorted(training)
    assert len({*classifiers, *training}) == 6


def test_what_others_have_of_the_budget_is_not_spent_again() -> None:
    already = [Charge(event=Gaussian(noise_multiplier=5.0), purpose="others")]
    configuration = GanConfiguration.parse({"classifier": 0.3})
    plan = Gan.plan(IMAGES, Budget(2.0, DELTA), configuration, already=already, records=5000)
    assert 0.98 * 2.0 < compute_epsilon([*already, *plan.charges], delta=DELTA) <= 2.0


def test_only_a_charge_for_naming_pays_for_it() -> None:
    plan = plan_label_classifier(Budget(2.0, DELTA), share=0.3, records=500)
    paid = plan.make_charge(plan.steps)
    other = Charge(event=paid.event, count=plan.steps, purpose="training")
    another = Charge(event=Gaussian(noise_multiplier=1.0), purpose=CLASSIFIER)
    assert find_unpaid_classifier([other, paid]) == []
    assert find_unpaid_classifier([other, another]) == find_unpaid_classifier([]) == ["training of the classifier"]


@pytest.mark.parametrize("records", [0, 1, 300])
def test_a_training_of_it_spends_its_plan_however_many_records_there_are(records: int) -> None:
    features, plan = Features(IMAGES), plan_label_classifier(Budget(2.0, DELTA), share=0.3, records=60)
    ledger = Ledger(epsilon=2.0, delta=DELTA, noise=NoiseSource.seeded(0))
    settings = resolve(GanConfiguration.parse({"shape": "conv", "hidden": 8}), IMAGES)
    rows = features.to_examples(random_records(IMAGES, records))
    classifier = train_label_classifier(features, rows, settings, plan, ledger, FitContext(seed=0), records=60)
    assert merge_blocks(ledger.charges) == [plan.make_charge(plan.steps)]
    assert not any(weight.requires_grad for weight in classifier.parameters())
    assert all(weight.isfinite().all() for weight in classifier.parameters())
    begun = classifier_of(IMAGES, "conv").parameters()
    assert not any(torch.equal(old, new) for old, new in zip(begun, classifier.parameters(), strict=True))


def test_a_private_classifier_classifies_records_that_it_never_saw() -> None:
    schema = schema_of({"what": {"type": "image", "shape": [8, 8]}, "label": LABEL})
    features, plan = Features(schema), plan_label_classifier(Budget(10.0, DELTA), share=0.3, records=2000)
    ledger = Ledger(epsilon=10.0, delta=DELTA, noise=NoiseSource.seeded(0))
    settings = resolve(GanConfiguration.parse({"shape": "conv", "hidden": 8}), schema)
    classifier = train_label_classifier(
        features, draw_stripes(schema, 2000), settings, plan, ledger, FitContext(seed=0), records=2000
    )
    batch = draw_stripes(schema, 300, seed=1).take(np.arange(300))
    begun = classifier_of(schema, "conv").loss(batch).detach()
    assert float(classifier.loss(batch).mean()) < 0.2 * float(begun.mean())


# --- where there is nothing to classify ---


@pytest.mark.parametrize(("schema", "settings"), [(TABLE, {}), (IMAGES, {"condition": None})], ids=["table", "images"])
def test_without_a_condition_there_is_no_classifier(schema: Schema, settings: dict[str, Any]) -> None:
    options = {**QUICK, **settings}
    plan = Gan.plan(schema, Budget(2.0, DELTA), GanConfiguration.parse(options), already=(), records=60)
    assert plan.settings.condition is None
    assert plan.classifier is None
    assert CLASSIFIER not in [charge.purpose for charge in plan.charges]
    ledger = Ledger(epsilon=2.0, delta=DELTA)
    model = Gan.fit(random_records(schema, 60), plan, ledger, FitContext(seed=0))
    assert model.config[HAS_CLASSIFIER] is False
    assert merge_blocks(ledger.charges) == list(plan.charges)
    assert ReleasedGan(schema, model.state()).find_unpaid(ledger.charges) == []
    with pytest.raises(SundogError, match="on which the generator is conditioned; set condition=") as caught:
        GanConfiguration.parse({**options, "classifier": 0.3}).check(schema)
    assert "\n" not in str(caught.value)


def test_records_of_people_with_several_have_no_classifier() -> None:
    for schema in (IMAGES, TABLE, schema_of(KINDS["labelled_images"])):
        shared = Schema.from_dict({**schema.to_dict(), "unit": "who", "cap": 3})
        plan = Gan.plan(shared, Budget(2.0, DELTA), GanConfiguration(), already=(), records=60)
        assert plan.classifier is None
        assert CLASSIFIER not in [charge.purpose for charge in plan.charges]
        with pytest.raises(SundogError, match="classifier needs a column on which the generator is conditioned"):
            GanConfiguration.parse({"classifier": 0.3}).check(shared)
        with pytest.raises(SundogError, match="a person has up to 3 records here, which may differ in 'label'"):
            GanConfiguration.parse({"classifier": 0.3, "condition": "label", "shape": "mlp"}).check(shared)


# --- the duel ---


def train_classifier(schema: Schema, shape: str, steps: int = 60) -> LabelClassifier:
    """One that learned from records, without any noise."""
    classifier, batch = classifier_of(schema, shape), draw_stripes(schema, 96).take(np.arange(96))
    optimizer = torch.optim.Adam(classifier.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        classifier.loss(batch).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert float(classifier.loss(batch).mean().detach()) < 0.1
    optimizer.zero_grad()
    return classifier


def silence(game: AdversarialGame) -> AdversarialGame:
    """Its critic has nothing to say."""
    for weight in game.critic.parameters():
        weight.data.zero_()
    return game


def cross_entropy(game: AdversarialGame, classifier: LabelClassifier) -> float:
    """At records of the generator, by what it was told."""
    torch.manual_seed(9)
    return float(classifier.cross_entropy(game.generate(torch.eye(3).repeat(60, 1))).mean().detach())


@pytest.mark.parametrize(("schema", "shape"), [(IMAGES, "conv"), (GAPS, "mlp")], ids=["images", "series"])
def test_a_generator_learns_to_make_what_is_classified_correctly(schema: Schema, shape: str) -> None:
    classifier, ends = train_classifier(schema, shape), []
    for heard in (classifier, None):
        game = silence(new_game(schema, shape, classifier=heard, batch=64))
        begun = cross_entropy(game, classifier)
        torch.manual_seed(0)
        for number in range(60):
            game.train_generator(number)
        ends.append(cross_entropy(game, classifier))
        assert begun > 0.5
    assert ends[0] < 0.3 * begun
    assert ends[1] == begun  # without it nothing moves, as the critic is mute


def test_a_step_of_the_generator_does_not_change_the_classifier() -> None:
    for frozen in (True, False):
        classifier = classifier_of(IMAGES, "conv").requires_grad_(not frozen)
        before = [weight.clone() for weight in classifier.parameters()]
        game = new_game(IMAGES, "conv", classifier=classifier)
        begun = [weight.clone() for weight in game.generator.parameters()]
        for number in range(3):
            game.train_generator(number)
        assert any(not torch.equal(old, new) for old, new in zip(begun, game.generator.parameters(), strict=True))
        for weight, old in zip(classifier.parameters(), before, strict=True):
            assert weight.grad is None
            assert torch.equal(weight, old)


@pytest.mark.parametrize("objective", [Wasserstein(10.0), NonSaturating()], ids=["gp", "ns"])
def test_the_critic_loss_does_not_contain_the_classifier(objective: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier, losses = classifier_of(IMAGES, "conv"), []
    for heard in (classifier, None):
        game = new_game(IMAGES, "conv", objective, classifier=heard)
        torch.manual_seed(3)
        losses.append(game.loss(draw_examples(IMAGES)).detach())
    assert torch.equal(*losses)

    def asked(x: Tensor) -> Tensor:
        raise AssertionError(f"it was asked about {len(x)} records")

    monkeypatch.setattr(classifier, "cross_entropy", asked)
    game = new_game(IMAGES, "conv", objective, classifier=classifier)
    clip_and_sum(
        game.critic, game.loss, draw_examples(IMAGES), group_all(game.critic), Fixed(torch.tensor([1.0])).weigh
    )
    with pytest.raises(AssertionError, match="it was asked about 16 records"):
        game.train_generator(0)


def test_the_game_does_not_keep_the_classifier() -> None:
    """It has a state of its own, which is whole before the game begins."""
    game = new_game(IMAGES, "conv", classifier=classifier_of(IMAGES, "conv"))
    assert set(game.stateful_parts) == {"generator", "average", "critic_schedule", "optimizer"}
