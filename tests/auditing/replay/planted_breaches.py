"""Planted breaches of privacy, each as a patch of the code that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import torch
from tests.auditing.replay.replay_cases import CASES, COLUMNS, COUNT, DECIMALS, QUICK, SETS, TABLE, Case, declare, train
from tests.data.test_records_alone import _share_a_scale

from sundog.auditing.replay.neighbours import Pair
from sundog.auditing.replay.values import Kind
from sundog.data.columns.integer import IntegerColumn
from sundog.data.records import Records
from sundog.fit import fitting, stages
from sundog.fit.stages import LearnedSchema
from sundog.mixture import clustering, kmeans
from sundog.models.gan.networks.table_networks import Pairs
from sundog.models.independent import independent
from sundog.models.marginals import learner
from sundog.models.neural.features import Features
from sundog.models.rbm.network import RbmNetwork
from sundog.privacy.events import Charge
from sundog.privacy.ledger import Ledger
from sundog.privacy.mechanisms import counts, sums
from sundog.privacy.noise import NoiseSource
from sundog.training import noise_addition, step, trainer
from sundog.training.batches import poisson
from sundog.training.per_example import engine

Patch = pytest.MonkeyPatch
USUAL: dict[str, Any] = {"age": 40, "job": "a", "on": True}


def add(table: dict[str, Any], place: int, **record: Any) -> Pair:
    """Return a pair with one more record."""
    return Pair(f"{record}", table, (place,), (record,), Kind.EXTREME)


@dataclass(frozen=True)
class Breach:
    """A breach of privacy.

    Args:
        case: the fit in which it happens.
        plant: breaks the code.
        found: a part of what the audit says.
        pair: the neighbour that shows it.
    """

    case: Case
    plant: Callable[[Patch], None]
    found: str
    pair: Pair


# --- what is public is taken from the data ---


def take_domain_from_data(patch: Patch) -> None:
    own = stages.refine_bins

    def refine(records: Records, *args: Any, **options: Any) -> LearnedSchema:
        found = own(records, *args, **options)
        ages = records.codes["age"]
        column = found.schema.columns["age"].replace(max=int(ages.max()), nullable=False)
        return replace(found, schema=found.schema.with_columns({"age": column}))

    patch.setattr(fitting, "refine_bins", refine)


def scale_by_largest(patch: Patch) -> None:
    own = IntegerColumn.encode

    def encode(column: IntegerColumn, values: Any, *, where: str) -> Any:
        codes = own(column, values, where=where).astype(np.float64)
        return np.floor(codes * 99 / max(1.0, codes.max())).astype(column.dtype)

    patch.setattr(IntegerColumn, "encode", encode)


def impute_by_mean(patch: Patch) -> None:
    own = IntegerColumn.encode

    def encode(column: IntegerColumn, values: Any, *, where: str) -> Any:
        codes = own(column, values, where=where)
        missing = codes == column.size - 1
        return np.where(missing, codes[~missing].sum() / max(1, (~missing).sum()), codes).astype(column.dtype)

    patch.setattr(IntegerColumn, "encode", encode)


def count_exactly(patch: Patch) -> None:
    def count(exact: int, *, epsilon: float, ledger: Any, purpose: str, contribution: int) -> int:
        counts.noisy_count(exact, epsilon=epsilon, ledger=ledger, purpose=purpose, contribution=contribution)
        return exact

    patch.setattr(stages, "noisy_count", count)


def name_file_by_count(patch: Patch) -> None:
    own = independent.Independent.fit_parts.__func__  # type: ignore[attr-defined]

    def fit(cls: Any, records: Any, parts: Any, plan: Any, ledger: Any, context: Any) -> Any:
        context.checkpoint.save_json(f"of {len(records)} records", {})
        return own(cls, records, parts, plan, ledger, context)

    patch.setattr(independent.Independent, "fit_parts", classmethod(fit))


def tell_count(patch: Patch) -> None:
    own = independent._count_all

    def count(records: Any, parts: Any, context: Any) -> Any:
        context.progress(f"counting {len(records)} records", 0.0)
        return own(records, parts, context)

    patch.setattr(independent, "_count_all", count)


# --- sums ---


def sum_without_clipping(patch: Patch) -> None:
    patch.setattr(sums, "round_to_lattice", lambda rows, *, clip_norm, step, slack: np.rint(rows / step))


def clip_nothing(patch: Patch) -> None:
    patch.setattr("sundog.training.clipping.compute_clip_weights", lambda norms, bounds: torch.ones_like(norms))


def overflow_on_last_age(patch: Patch) -> None:
    """The loss of the record of age 99 overflows, which is no breach: such an example counts as absent."""
    _overflow_at(patch, lambda features: features.at("age").stop - 2)  # the last but null


def lose_replies(patch: Patch) -> None:
    """Half of the records count as absent."""
    _overflow_at(patch, lambda features: features.at("on").start)


def _overflow_at(patch: Patch, find: Callable[[Features], int]) -> None:
    own = RbmNetwork.loss

    def loss(network: RbmNetwork, batch: Any) -> Any:
        overflows = network.features.to_dense(batch)[..., find(network.features)] > 0
        return own(network, batch) * torch.where(overflows, torch.inf, 1.0)

    patch.setattr(RbmNetwork, "loss", loss)


def keep_overflow(patch: Patch) -> None:
    overflow_on_last_age(patch)
    own = engine._clip_and_sum

    def clip_and_sum(factors: Any, present: Any, groups: Any, weigh: Any, speed: Any, masks: Any) -> Any:
        return own(factors, present, groups, weigh, speed, "never")

    patch.setattr(engine, "_clip_and_sum", clip_and_sum)


def share_noise_among_replies(patch: Patch) -> None:
    """Each of the expected examples brings its share of the noise; those that do not reply bring none."""
    lose_replies(patch)
    add = step.PrivateStep._add_noise
    replies: list[int] = []

    def clip_and_sum(*args: Any, **options: Any) -> Any:
        found = engine.clip_and_sum(*args, **options)
        replies[:] = [int(found.present.sum())]
        return found

    def add_noise(self: Any, exact: Any, deviations: Any) -> Any:
        share = (replies[0] / self.expected_batch) ** 0.5
        return add(self, exact, [each * share for each in deviations])

    patch.setattr(step, "clip_and_sum", clip_and_sum)
    patch.setattr(step.PrivateStep, "_add_noise", add_noise)


def add_noise_in_forward_pass(patch: Patch) -> None:
    """Noise on what the critic sees, and none on its clipped gradients (Figure 6.18 of the text)."""
    own = Pairs.forward
    patch.setattr(Pairs, "forward", lambda critic, x: own(critic, x + torch.randn_like(x)))
    patch.setattr(NoiseSource, "standard_normal_", lambda source, out: out.zero_())


def assume_no_sensitivity(patch: Patch) -> None:
    own = noise_addition.compute_noise_scales
    patch.setattr(step, "compute_noise_scales", lambda *args: 0 * own(*args))


def divide_noise_by_batch(patch: Patch) -> None:
    own = step.PrivateStep._add_noise

    def add_noise(self: Any, exact: Any, deviations: Any) -> Any:
        return own(self, exact, [each / self.expected_batch for each in deviations])

    patch.setattr(step.PrivateStep, "_add_noise", add_noise)


def divide_by_actual_batch(patch: Patch) -> None:
    own, average = step.PrivateStep._clip_and_sum, step.PrivateStep._average
    present: list[int] = []

    def clip_and_sum(self: Any, pieces: Any, masks: Any) -> Any:
        pieces = list(pieces)
        present[:] = [sum(len(next(iter(piece.values()))) for piece in pieces)]
        return own(self, pieces, masks)

    def divide(self: Any, noisy: Any) -> Any:
        ratio = self.expected_batch / max(1, present[0])
        return [each * ratio for each in average(self, noisy)]

    patch.setattr(step.PrivateStep, "_clip_and_sum", clip_and_sum)
    patch.setattr(step.PrivateStep, "_average", divide)


# --- budget and noise ---


def measure_twice(patch: Patch) -> None:
    own = counts.add_histogram_noise
    patch.setattr(counts, "add_histogram_noise", lambda each, ledger: (own(each, ledger) + own(each, ledger)) // 2)


def count_without_charge(patch: Patch) -> None:
    def count(exact: int, *, epsilon: float, ledger: Any, purpose: str, contribution: int) -> int:
        unpaid = Unpaid(epsilon=1.0, delta=1e-6, noise=ledger.noise)
        return counts.noisy_count(exact, epsilon=epsilon, ledger=unpaid, purpose=purpose, contribution=contribution)

    patch.setattr(stages, "noisy_count", count)


class Unpaid(Ledger):
    """Takes every charge, and notes none."""

    def spend(self, *charges: Charge) -> None:
        pass


def repeat_noise(patch: Patch) -> None:
    own = trainer.Trainer._derive_noise
    patch.setattr(trainer.Trainer, "_derive_noise", lambda self, name, number: own(self, name, 0))


def draw_less_integer_noise(patch: Patch) -> None:
    own = NoiseSource.discrete_gaussian
    patch.setattr(
        NoiseSource, "discrete_gaussian", lambda self, *, sigma, size: own(self, sigma=sigma * 2 / 3, size=size)
    )


def draw_less_gradient_noise(patch: Patch) -> None:
    own = NoiseSource.standard_normal_
    patch.setattr(NoiseSource, "standard_normal_", lambda self, out: own(self, out).mul_(2 / 3))


# --- batches and parts ---


def resample_empty_batches(patch: Patch) -> None:
    own = poisson.draw_poisson_batch

    def draw(records: int, rate: float, noise: NoiseSource) -> Any:
        while not len(batch := own(records, rate, noise)):
            pass
        return batch

    patch.setattr(trainer, "draw_poisson_batch", draw)


def sample_more(patch: Patch) -> None:
    own = poisson.draw_poisson_batch
    patch.setattr(trainer, "draw_poisson_batch", lambda records, rate, noise: own(records, 2 * rate, noise))


def shuffle_batches(patch: Patch) -> None:
    """In each epoch a record has a batch of its own choice, so that one more record changes no other batch."""

    def draw(self: trainer.Trainer, number: int) -> Any:
        batches = round(1 / self.plan.sample_rate)
        epoch, place = divmod(number, batches)
        return np.flatnonzero(np.random.default_rng(epoch).integers(batches, size=len(self.examples)) == place)

    patch.setattr(trainer.Trainer, "_draw", draw)


def draw_fixed_batches(patch: Patch) -> None:
    def draw(records: int, rate: float, noise: NoiseSource) -> Any:
        return np.sort(noise.subset(records, round(rate * records)))

    patch.setattr(trainer, "draw_poisson_batch", draw)


def let_a_record_move_others(patch: Patch) -> None:
    own = clustering.Clusters.assign

    def assign(clusters: Any, features: Any, records: Records) -> Any:
        return (own(clusters, features, records) + int(records.codes["age"].max())) % len(clusters.centres)

    patch.setattr(clustering.Clusters, "assign", assign)


def release_cluster_sizes(patch: Patch) -> None:
    own = clustering._count_clusters

    def count(points: Any, centres: Any, plan: Any, ledger: Any) -> Any:
        own(points, centres, plan, ledger)
        nearest = np.concatenate([kmeans.find_nearest_centre(chunk, centres) for chunk in points()])
        return np.bincount(nearest, minlength=len(centres)).astype(np.float64)

    patch.setattr(clustering, "_count_clusters", count)


def put_records_into_two_parts(patch: Patch) -> None:
    own = independent._count_all

    def count(records: Any, parts: Any, context: Any) -> Any:
        first = own(records, parts, context)
        second = own(records, replace(parts, owner=(parts.owner + 1) % len(parts.sizes)), context)
        return [{name: one[name] + two[name] for name in one} for one, two in zip(first, second, strict=True)]

    patch.setattr(independent, "_count_all", count)


def group_by_exact_counts(patch: Patch) -> None:
    own = learner.Learner.__init__

    def begin(self: Any, records: Records, columns: Any, configuration: Any, *args: Any) -> None:
        most = max(2, len(records) % 7)
        own(self, records, columns, configuration.model_copy(update={"groups": most}), *args)

    patch.setattr(learner.Learner, "__init__", begin)


_DECIMALS = {**TABLE, "code": [Decimal("0.5"), Decimal("0.2")] * (COUNT // 2)}
OLDEST = add(TABLE, COUNT, age=99, job="c", on=False)
FIRST, LAST = add(TABLE, 0, **USUAL), add(TABLE, COUNT, **USUAL)
OLDER = add(TABLE, COUNT // 2, age=90, job="a", on=True)  # by one year
PRECISE = replace(CASES["marginals"], settings={"epsilon": 100.0})
FULL = add(SETS, 0, basket=[0, 1, 2])
SMALL = {"settings": {**QUICK, "batch": 1, "epochs": 0.5}, "delta": 1e-6}

BREACHES = {
    "domain from data": Breach(CASES["independent"], take_domain_from_data, "order of draws", OLDEST),
    "scaled by the largest": Breach(CASES["independent"], scale_by_largest, "encoding of column 'age'", OLDEST),
    "missing values replaced by the mean": Breach(
        Case({"age": [None, 20, 31] * (COUNT // 3)}, declare({"age": COLUMNS["age"]}), "independent"),
        impute_by_mean,
        "encoding of column 'age'",
        add({"age": [None, 20, 31] * (COUNT // 3)}, 0, age=99),
    ),
    "exact number of records": Breach(CASES["rbm"], count_exactly, "order of charges and draws", FIRST),
    "file named by a count": Breach(CASES["independent"], name_file_by_count, "files of the checkpoint", FIRST),
    "message with a count": Breach(CASES["independent"], tell_count, "progress messages", FIRST),
    "sum without clipping": Breach(CASES["sets"], sum_without_clipping, "costs μ²", FULL),
    "gradients without clipping": Breach(
        replace(CASES["rbm"], settings=train(clip=0.1)), clip_nothing, "steps have sums that differ", OLDEST
    ),
    "overflow escapes clipping": Breach(
        CASES["rbm"], keep_overflow, "steps have sums that differ by up to inf", OLDEST
    ),
    "sensitivity 0": Breach(CASES["rbm"], assume_no_sensitivity, "steps have sums that differ by up to inf", FIRST),
    "noise divided by the batch": Breach(CASES["rbm"], divide_noise_by_batch, "times the declared scale", FIRST),
    "sum divided by the actual batch": Breach(CASES["rbm"], divide_by_actual_batch, "more differ", FIRST),
    "missing replies with noise unchanged": Breach(
        CASES["rbm"], share_noise_among_replies, "times the declared scale", FIRST
    ),
    "noise in the forward pass": Breach(CASES["gan"], add_noise_in_forward_pass, "0 times the declared scale", FIRST),
    "measured twice": Breach(CASES["independent"], measure_twice, "was charged", FIRST),
    "noise reused": Breach(CASES["vae"], repeat_noise, "has the noise of draw", FIRST),
    "two thirds of the noise on counts": Breach(CASES["marginals"], draw_less_integer_noise, "0.6", FIRST),
    "two thirds of the noise on gradients": Breach(CASES["rbm"], draw_less_gradient_noise, "0.6", FIRST),
    "empty batches resampled": Breach(replace(CASES["rbm"], settings=SMALL), resample_empty_batches, "batch", FIRST),
    "wrong sample rate": Breach(CASES["rbm"], sample_more, "batches: drawn at the rates", FIRST),
    "shuffled batches": Breach(CASES["rbm"], shuffle_batches, "batches: drawn at the rates none", LAST),
    "batches of fixed size": Breach(CASES["rbm"], draw_fixed_batches, "outside of a mechanism", FIRST),
    "exact cluster sizes": Breach(CASES["clusters"], release_cluster_sizes, "weights", FIRST),
    "a record in two parts": Breach(CASES["clusters"], put_records_into_two_parts, "was charged", FIRST),
    "a record that moves others": Breach(CASES["clusters"], let_a_record_move_others, "was charged", OLDER),
    "measured without a charge": Breach(CASES["rbm"], count_without_charge, "before the first charge", FIRST),
    "groups by exact counts": Breach(PRECISE, group_by_exact_counts, "order of draws", FIRST),
    "one record re-encodes the others": Breach(
        Case(_DECIMALS, declare({**COLUMNS, "code": DECIMALS}), "independent"),
        _share_a_scale,  # values are spelled in the type that Arrow infers for all of them
        "encoding of column 'code'",
        add(_DECIMALS, 0, **USUAL, code=Decimal("2.250")),
    ),
}
