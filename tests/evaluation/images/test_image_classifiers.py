"""Small classifiers: what they learn, for images of every size, and that a seed fixes all of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sundog.evaluation.images.image_classifiers import (
    Classifier,
    Images,
    Kind,
    Labels,
    _PixelBlocks,
    build_network,
    draw_batches,
    measure_accuracy,
    train_classifier,
)

KINDS: tuple[Kind, ...] = ("logistic", "mlp", "cnn")


def _bars(count: int, rng: np.random.Generator) -> tuple[Images, Labels]:
    """Bright rows (class 0) and bright columns (class 1) on noise: no pixel alone tells them apart."""
    images = rng.random((count, 1, 8, 8), np.float32) * np.float32(0.5)
    labels = rng.integers(0, 2, count)
    for image, label, place in zip(images, labels, rng.integers(0, 8, count), strict=True):
        image[0][(place, slice(None)) if label == 0 else (slice(None), place)] += 0.5
    return images, labels


def test_a_convolutional_network_learns_what_a_logistic_regression_cannot() -> None:
    rng = np.random.default_rng(0)
    seen, new = _bars(600, rng), _bars(400, rng)
    found = {
        kind: measure_accuracy(train_classifier(kind, *seen, classes=2, seed=0, steps=100), *new) for kind in KINDS
    }
    assert found["cnn"].low > 0.95
    assert found["logistic"].high < 0.65


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5, 3), (1, 8, 8), (3, 28, 28), (1, 62, 47), (3, 64, 64), (2, 5, 200)])
@pytest.mark.parametrize("kind", KINDS)
def test_networks_take_images_of_any_size(kind: Kind, shape: tuple[int, int, int]) -> None:
    images = np.random.default_rng(0).random((6, *shape), np.float32)
    classifier = Classifier(build_network(kind, images, classes=3, seed=0))
    assert classifier.predict_probabilities(images).shape == (6, 3)
    assert classifier.predict_probabilities(images).sum(axis=1) == pytest.approx(np.ones(6))
    assert classifier.extract_features(images).ndim == 2


def test_a_seed_fixes_everything_and_leaves_torch_as_it_was() -> None:
    images, labels = _bars(50, np.random.default_rng(0))
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    same = [
        train_classifier("cnn", images, labels, classes=2, seed=seed, steps=5).compute_logits(images)
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(same[0], same[1])
    assert not np.array_equal(same[0], same[2])
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_brightness_and_contrast_of_all_images_make_no_difference() -> None:
    images, labels = _bars(60, np.random.default_rng(0))
    other = (images * 0.125 + 0.25).astype(np.float32)  # exact in binary
    logits = [
        train_classifier("mlp", each, labels, classes=2, seed=0, steps=5).compute_logits(each)
        for each in (images, other)
    ]
    assert logits[0] == pytest.approx(logits[1], abs=1e-3)


def test_watching_other_images_keeps_the_weights_that_were_best_on_them() -> None:
    """With labels that mean nothing, the longer one learns the worse it gets."""
    rng = np.random.default_rng(0)
    images = rng.random((40, 1, 8, 8), np.float32)
    labels, watched = rng.integers(0, 2, 40), (rng.random((400, 1, 8, 8), np.float32), rng.integers(0, 2, 400))

    def loss(classifier: Classifier) -> float:
        p = classifier.predict_probabilities(watched[0])
        return float(-np.log(p[np.arange(400), watched[1]]).mean())

    last = loss(train_classifier("mlp", images, labels, classes=2, seed=0, steps=160))
    best = loss(train_classifier("mlp", images, labels, classes=2, seed=0, steps=160, watched=watched))
    assert best < last - 0.2


@pytest.mark.parametrize("kind", KINDS)
def test_constant_images_and_a_single_class_are_learned(kind: Kind) -> None:
    images = np.full((30, 1, 8, 8), 0.5, np.float32)
    classifier = train_classifier(kind, images, np.full(30, 2), classes=3, seed=0, steps=20)
    assert measure_accuracy(classifier, images, np.full(30, 2)).value == 1
    assert np.isfinite(classifier.compute_logits(images)).all()


def test_batches_show_every_image_equally_often() -> None:
    rows = np.concatenate(list(draw_batches(7, 21, np.random.default_rng(0), size=4)))
    assert np.bincount(rows).tolist() == [12] * 7
    assert sorted(rows[:7].tolist()) == list(range(7))


@pytest.mark.parametrize("side", [8, 28])
def test_no_image_at_all_has_logits_of_the_right_shape(side: int) -> None:
    images = np.zeros((20, 1, side, side), np.float32)
    assert Classifier(build_network("cnn", images, 3, seed=0)).compute_logits(images[:0]).shape == (0, 3)


@pytest.mark.parametrize("side", [1, 2, 3])
def test_blocks_of_pixels_become_channels(side: int) -> None:
    images = torch.from_numpy(np.random.default_rng(0).random((4, 2, 6, 12), np.float32))
    assert torch.equal(_PixelBlocks(side)(images), torch.nn.PixelUnshuffle(side)(images))
