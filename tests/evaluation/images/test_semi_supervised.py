"""Semi-supervised use: fifty labelled digits, and a stand-in for a release: a mixture of normals over other digits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from sundog.evaluation.images.image_classifiers import BATCH, Images, Labels
from sundog.evaluation.images.semi_supervised import (
    METRICS,
    Codes,
    Generate,
    compare_methods,
    distort,
    train_fixmatch,
    train_supervised,
    train_two_classifiers,
)
from sundog.evaluation.measure import Measures

FEW = 50  # labelled images


@dataclass(frozen=True)
class Digits:
    images: Images
    labels: Labels
    test: tuple[Images, Labels]
    generate: Generate


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def digits() -> Digits:
    data = load_digits()
    order = _rng().permutation(len(data.target))
    images = (data.images[order] / 16).astype(np.float32)[:, None]
    labels = data.target[order].astype(np.int64)
    unlabelled = images[FEW:1200].reshape(-1, 64).astype(np.float64)
    components = PCA(20, whiten=True, svd_solver="covariance_eigh").fit(unlabelled)
    mixture = GaussianMixture(40, covariance_type="tied", random_state=0).fit(components.transform(unlabelled))
    codes = mixture.sample(4000)[0].astype(np.float32)
    drawn = components.inverse_transform(codes).clip(0, 1).astype(np.float32).reshape(-1, 1, 8, 8)

    def generate(count: int, rng: np.random.Generator) -> tuple[Codes, Images]:
        rows = rng.integers(0, len(codes), count)
        return codes[rows], drawn[rows]

    return Digits(images[:FEW], labels[:FEW], (images[1200:], labels[1200:]), generate)


@pytest.fixture(scope="module")
def found(digits: Digits) -> Measures:
    return compare_methods(
        digits.images, digits.labels, digits.generate, test=digits.test, classes=10, rng=_rng(1), steps=200
    )


def test_generated_images_are_worth_more_than_none(found: Measures) -> None:
    supervised, consistent = found["semi_supervised.supervised"], found["semi_supervised.consistent"]
    assert supervised.value > 0.6
    assert consistent.value > supervised.value + 0.03


def test_the_papers_two_classifiers_learn_too(found: Measures) -> None:
    assert found["semi_supervised.two_classifiers"].value > 0.6


def test_every_measure_is_explained_and_has_wilsons_interval(found: Measures, digits: Digits) -> None:
    assert set(found) == set(METRICS)
    for measure in found.values():
        assert measure.low < measure.value < measure.high
        assert measure.value * len(digits.test[1]) == pytest.approx(round(measure.value * len(digits.test[1])))


# --- the paper's algorithm ---


def test_generated_images_come_into_batches_after_a_third_and_slowly(digits: Digits) -> None:
    asked = []

    def generate(count: int, rng: np.random.Generator) -> tuple[Codes, Images]:
        asked.append(count)
        return digits.generate(count, rng)

    train_two_classifiers(digits.images, digits.labels, generate, classes=10, rng=_rng(), steps=30, share=0.5)
    first, *batches = asked
    assert first == 1  # to see how wide a code is
    assert batches[:10] == [BATCH] * 10
    assert batches[20:] == [BATCH + BATCH // 2] * 10
    assert batches == sorted(batches)
    assert len(set(batches)) > 5


def _weights(digits: Digits, generate: Generate, share: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    first, _ = train_two_classifiers(
        digits.images, digits.labels, generate, classes=10, rng=_rng(), steps=9, share=share
    )
    return first.compute_logits(digits.test[0])


def test_without_a_share_the_first_classifier_sees_labelled_images_alone(digits: Digits) -> None:
    def black(count: int, rng: np.random.Generator) -> tuple[Codes, Images]:
        codes, images = digits.generate(count, rng)
        return codes, 0 * images

    assert np.array_equal(_weights(digits, digits.generate, 0.0), _weights(digits, black, 0.0))
    assert not np.array_equal(_weights(digits, digits.generate, 0.5), _weights(digits, black, 0.5))


def test_the_second_classifier_learns_the_answers_of_the_first_and_uses_codes(digits: Digits) -> None:
    first, second = train_two_classifiers(
        digits.images, digits.labels, digits.generate, classes=10, rng=_rng(), steps=150
    )
    codes, images = digits.generate(500, _rng(5))
    with torch.no_grad():
        answers = second(torch.from_numpy(codes), torch.from_numpy(images))
        others = second(torch.from_numpy(codes[::-1].copy()), torch.from_numpy(images))
    assert np.mean(answers.argmax(dim=1).numpy() == first.predict(images)) > 0.8
    assert not torch.allclose(answers, others)


# --- the same for all ---


def test_a_release_that_keeps_its_codes_to_itself_will_do(digits: Digits) -> None:
    def without_codes(count: int, rng: np.random.Generator) -> tuple[Codes, Images]:
        return np.empty((count, 0), np.float32), digits.generate(count, rng)[1]

    found = compare_methods(
        digits.images, digits.labels, without_codes, test=digits.test, classes=10, rng=_rng(), steps=4
    )
    assert set(found) == set(METRICS)


def test_a_seed_fixes_everything_and_leaves_torch_as_it_was(digits: Digits) -> None:
    state = torch.get_rng_state()

    def compute_logits(seed: int) -> list[bytes]:
        images, labels, generate = digits.images, digits.labels, digits.generate
        found = [
            train_supervised(images, labels, rng=_rng(seed), classes=10, steps=4, distortion=1.0),
            train_two_classifiers(images, labels, generate, rng=_rng(seed), classes=10, steps=4)[0],
            train_fixmatch(images, labels, generate, rng=_rng(seed), classes=10, steps=4),
        ]
        return [each.compute_logits(digits.test[0]).tobytes() for each in found]

    same, again, other = compute_logits(0), compute_logits(0), compute_logits(1)
    assert same == again
    assert all(one != two for one, two in zip(same, other, strict=True))
    assert torch.equal(torch.get_rng_state(), state)


def test_one_label_a_class_and_a_class_without_any_are_no_trouble(digits: Digits) -> None:
    few = np.unique(digits.labels, return_index=True)[1][:9]
    found = compare_methods(
        digits.images[few], digits.labels[few], digits.generate, test=digits.test, classes=10, rng=_rng(), steps=4
    )
    assert all(np.isfinite(measure.value) for measure in found.values())


# --- distortions ---


def test_no_distortion_leaves_images_as_they_are(digits: Digits) -> None:
    images = torch.from_numpy(digits.images)
    assert torch.allclose(distort(images, 0.0, _rng()), images, atol=1e-5)


def test_distortions_move_things_a_little_and_each_image_in_its_own_way() -> None:
    images = torch.zeros(400, 1, 16, 16)
    images[:, :, 7:9, 7:9] = 1
    moved = distort(images, 1.0, _rng()).numpy()[:, 0]
    total = moved.sum(axis=(1, 2))
    rows = (moved.sum(axis=2) * (np.arange(16) - 7.5)).sum(axis=1) / total
    assert np.abs(rows).max() < 3.2  # a shift of a tenth of the side, stretched and turned
    assert rows.std() > 0.5
    assert abs(rows.mean()) < 0.2
    assert total.min() > 2
    assert total.max() < 8


def test_the_border_goes_on_outside_the_image() -> None:
    assert torch.allclose(distort(torch.full((9, 3, 8, 8), 0.5), 1.5, _rng()), torch.full((9, 3, 8, 8), 0.5), atol=1e-6)
