"""The part about images, on scikit-learn's digits: real images at the ceiling, dealt pixels at the floor."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from sundog.data.records import Records
from sundog.data.schema import Schema
from sundog.errors import DataError
from sundog.evaluation.comparison import Comparison, split
from sundog.evaluation.images import feature_extractor
from sundog.evaluation.images.feature_extractor import fit_feature_extractor
from sundog.evaluation.images.image_classifiers import Classifier, train_classifier
from sundog.evaluation.images.image_evaluation import METRICS, evaluate_images
from sundog.evaluation.images.image_sample import find_images
from sundog.evaluation.images.image_scores import compute_frechet_distance, compute_inception_score
from sundog.evaluation.section import Section

LABELS = {"type": "categorical", "values": list(range(10))}
DIGITS = Schema.from_dict({"columns": {"image": {"type": "image", "shape": [8, 8], "levels": 17}, "label": LABELS}})
UNLABELLED = {"images.frechet", "images.jensen_shannon"}


def _compare_digits() -> Comparison:
    digits = load_digits()
    codes = {"image": digits.images.astype(np.uint8), "label": digits.target.astype(np.uint8)}
    train, test = split(Records(DIGITS, codes, len(digits.target)), 0.4, np.random.default_rng(0))
    synthetic, test = split(test, 0.5, np.random.default_rng(1))  # a perfect release: other real images
    return Comparison(train, synthetic, train, test, target="label")


COMPARISON = _compare_digits()


def _limit_steps(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Networks that learn for fewer steps: enough for digits, or hardly at all where it does not matter what."""
    feature_extractor._fit.cache_clear()
    monkeypatch.setattr(
        "sundog.evaluation.images.image_evaluation.train_classifier",
        lambda *args, **kwargs: train_classifier(*args, steps=steps, **kwargs),
    )
    monkeypatch.setattr("sundog.evaluation.images.feature_extractor.MOST_STEPS", steps)


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, Section]]:
    trials = {"release": COMPARISON, "ceiling": COMPARISON.build_ceiling(), "floor": COMPARISON.build_floor()}
    with pytest.MonkeyPatch.context() as monkeypatch:
        _limit_steps(monkeypatch, 150)
        yield {name: evaluate_images(trial, "image") for name, trial in trials.items()}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    _limit_steps(monkeypatch, 3)
    yield
    feature_extractor._fit.cache_clear()


def _add_noise(records: Records, level: float) -> Records:
    noise = level * 16 * np.random.default_rng(2).normal(size=records.codes["image"].shape)
    return replace(
        records, codes={**records.codes, "image": np.clip(records.codes["image"] + noise, 0, 16).astype("u1")}
    )


# --- what it says about digits ---


def test_other_real_images_are_as_good_as_real_images_can_be(found: dict[str, Section]) -> None:
    release, ceiling = found["release"].measures, found["ceiling"].measures
    assert release["images.inception_score"].value > 9.5
    assert ceiling["images.inception_score"].value > 9.8
    assert release["images.frechet"].low == ceiling["images.frechet"].low == 0
    assert release["images.frechet"].value < 0.02
    assert release["images.jensen_shannon"].low == 0
    assert release["images.jensen_shannon"].value < 0.03
    assert release["images.downstream.cnn"].value > 0.9


def test_pixels_that_know_nothing_of_each_other_are_far_below(found: dict[str, Section]) -> None:
    floor, ceiling = found["floor"].measures, found["ceiling"].measures
    assert floor["images.inception_score"].high < 6
    assert floor["images.frechet"].low > 0.2
    assert 0.5 < floor["images.jensen_shannon"].value <= math.log(2)
    for kind in ("logistic", "mlp", "cnn"):
        assert floor[f"images.downstream.{kind}"].value < 0.3
        assert ceiling[f"images.downstream.{kind}"].low > 0.9


def test_every_measure_is_explained_and_has_an_interval(found: dict[str, Section]) -> None:
    for section in found.values():
        assert set(section.measures) == set(section.metrics) == set(METRICS)
        for measure in section.measures.values():
            assert measure.low <= measure.value <= measure.high
    width = found["release"].measures["images.inception_score"]
    assert 0.01 < width.high - width.low < 1


def test_copies_are_found(found: dict[str, Section]) -> None:
    ratios = {name: section.details["images.nearest_ratio"]["value"] for name, section in found.items()}
    assert ratios["ceiling"] == 0
    assert ratios["release"] == pytest.approx(1, abs=0.1)
    assert ratios["floor"] > 1.5


def test_the_confusion_matrix_counts_the_test_images(found: dict[str, Section]) -> None:
    counts = np.array(found["release"].details["images.confusion"])
    assert counts.sum(axis=1).tolist() == np.bincount(COMPARISON.test.codes["label"]).tolist()
    accuracy = found["release"].measures["images.downstream.cnn"].value
    assert np.trace(counts) / counts.sum() == pytest.approx(accuracy)


def test_details_are_json(found: dict[str, Section]) -> None:
    for section in found.values():
        assert json.loads(json.dumps(section.details, allow_nan=False))
    assert found["release"].details["images.judge_accuracy"]["value"] > 0.97
    assert not any("network that judges images" in note for note in found["release"].notes)


def test_noise_makes_both_scores_worse_step_by_step() -> None:
    view = find_images(COMPARISON, "image")
    judge = fit_feature_extractor(COMPARISON, view)
    assert judge is not None
    assert judge.predict_probabilities is not None
    real = view.sample(COMPARISON.test, 1000, np.random.default_rng(0)).pixels
    scores, distances = [], []
    for level in (0.0, 0.1, 0.2, 0.4):
        pixels = view.sample(_add_noise(COMPARISON.synthetic, level), 1000, np.random.default_rng(0)).pixels
        scores.append(compute_inception_score(judge.predict_probabilities(pixels)))
        distances.append(compute_frechet_distance(judge.extract_features(real), judge.extract_features(pixels)))
    assert scores == sorted(scores, reverse=True)
    assert distances == sorted(distances)
    assert scores[-1] < scores[0] - 1
    assert distances[-1] > 3 * distances[0]


# --- how it does it ---


@pytest.mark.usefixtures("quick")
def test_one_judge_serves_release_ceiling_and_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    taught: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> Classifier:
        taught.append(kwargs["seed"])
        return train_classifier(*args, **kwargs)

    monkeypatch.setattr("sundog.evaluation.images.feature_extractor.train_classifier", counted)
    for trial in (
        COMPARISON,
        COMPARISON.build_ceiling(),
        COMPARISON.build_floor(),
        replace(COMPARISON, synthetic=COMPARISON.test),
    ):
        evaluate_images(trial, "image")
    assert len(taught) == 1
    evaluate_images(replace(COMPARISON, seed=1), "image")
    evaluate_images(
        replace(COMPARISON, train=COMPARISON.train.take(slice(None))), "image"
    )  # equal records are other records
    assert len(taught) == 3
    assert len(set(taught)) == 2


@pytest.mark.usefixtures("quick")
def test_the_same_seed_gives_the_same_figures_and_leaves_torch_alone() -> None:
    state = torch.get_rng_state()
    runs = []
    for seed in (0, 0, 1):
        feature_extractor._fit.cache_clear()
        runs.append(evaluate_images(replace(COMPARISON, seed=seed), "image"))
    assert runs[0].measures == runs[1].measures
    assert runs[0].details == runs[1].details
    assert runs[0].measures != runs[2].measures
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.usefixtures("quick")
def test_labels_of_test_images_are_only_used_to_count() -> None:
    """A network that peeked would predict something else when they change."""
    test = COMPARISON.test
    changed = replace(test, codes={**test.codes, "label": (test.codes["label"] + 1) % 10})
    predicted = [
        np.sum(evaluate_images(replace(COMPARISON, test=each), "image").details["images.confusion"], axis=0)
        for each in (test, changed)
    ]
    assert predicted[0].tolist() == predicted[1].tolist()


def test_samples_are_scaled_shuffled_and_keep_their_labels() -> None:
    records = COMPARISON.train
    sample = find_images(COMPARISON, "image").sample(records, 500, np.random.default_rng(0))
    assert sample.pixels.shape == (500, 1, 8, 8)
    assert sample.pixels.dtype == np.float32
    assert (sample.pixels.min(), sample.pixels.max()) == (0, 1)
    by_pixels = {
        image.tobytes(): int(label) for image, label in zip(records.codes["image"], records.codes["label"], strict=True)
    }
    codes = np.rint(sample.pixels[:, 0] * 16).astype(np.uint8)
    assert [by_pixels[image.tobytes()] for image in codes] == sample.labels.tolist()
    assert len({image.tobytes() for image in codes}) == 500
    assert [image.tobytes() for image in codes] != [image.tobytes() for image in records.codes["image"][:500]]


def test_channels_come_first() -> None:
    pixels = np.arange(30 * 4 * 5 * 3).reshape(30, 4, 5, 3) % 256
    comparison = _compare_photos(pixels.astype(np.uint8))
    sample = find_images(comparison, "photo").sample(comparison.real, 30, np.random.default_rng(0))
    assert sample.pixels.shape == (30, 3, 4, 5)
    found = {image.transpose(1, 2, 0).tobytes() for image in np.rint(sample.pixels * 255).astype(np.uint8)}
    assert found == {image.tobytes() for image in pixels.astype(np.uint8)}


# --- other images ---


def _compare_photos(pixels: Any, **columns: tuple[dict[str, Any], Any]) -> Comparison:
    """Photos with more columns, the same records in every role."""
    shape = list(pixels.shape[1:])
    declared = {"photo": {"type": "image", "shape": shape}} | {name: column for name, (column, _) in columns.items()}
    codes = {"photo": pixels} | {name: values for name, (_, values) in columns.items()}
    records = Records(Schema.from_dict({"columns": declared}), codes, len(pixels))
    return Comparison(records, records, records, records)


def _check_drawing(section: Section) -> None:
    for picture in section.pictures:
        figure = picture.draw()
        figure.draw_without_rendering()
        assert picture.title
        assert picture.caption.endswith(".")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("shape", [(8, 8), (5, 7, 3), (20, 3, 2), (1, 1)])
def test_images_without_labels_have_distances_and_pictures(shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, *shape)).astype(np.uint8)
    section = evaluate_images(_compare_photos(pixels), "photo")
    assert set(section.measures) == set(section.metrics) == UNLABELLED
    assert section.measures["images.frechet"].value == 0
    assert any("principal components" in note for note in section.notes)
    assert len(section.pictures) == 2
    _check_drawing(section)


@pytest.mark.usefixtures("quick")
def test_without_labels_the_distance_still_tells_real_images_from_others() -> None:
    plain = replace(COMPARISON, target=None)
    release, floor = evaluate_images(plain, "image"), evaluate_images(plain.build_floor(), "image")
    assert release.measures["images.frechet"].value < 0.02
    assert floor.measures["images.frechet"].low > 0.1


@pytest.mark.parametrize(
    "column", [{"type": "integer", "min": 0, "max": 9}, {"type": "categorical", "values": ["one"]}]
)
@pytest.mark.usefixtures("quick")
def test_a_target_that_has_no_classes_is_none(column: dict[str, Any]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 6, 6)).astype(np.uint8)
    comparison = replace(_compare_photos(pixels, what=(column, np.zeros(40, np.uint8))), target="what")
    assert set(evaluate_images(comparison, "photo").measures) == UNLABELLED


@pytest.mark.usefixtures("quick")
def test_a_judge_that_has_learned_little_is_called_that() -> None:
    section = evaluate_images(COMPARISON, "image")
    assert section.details["images.judge_accuracy"]["value"] < 0.9
    assert any("network that judges images" in note for note in section.notes)


@pytest.mark.usefixtures("quick")
def test_pictures_of_labelled_images_can_be_drawn() -> None:
    section = evaluate_images(COMPARISON, "image")
    assert len(section.pictures) == 3
    _check_drawing(section)


@pytest.mark.usefixtures("quick")
def test_many_classes_some_of_them_empty_can_be_drawn() -> None:
    rng = np.random.default_rng(0)
    column = {"type": "categorical", "values": [f"person {number}" for number in range(30)]}
    labels = rng.integers(3, 25, 60).astype(np.uint8)
    comparison = replace(
        _compare_photos(rng.integers(0, 256, (60, 9, 6, 3)).astype(np.uint8), who=(column, labels)), target="who"
    )
    section = evaluate_images(comparison, "photo")
    _check_drawing(section)
    assert "first 20 classes" in section.pictures[0].caption


# --- hostile records ---


@pytest.mark.usefixtures("quick")
def test_constant_images_of_one_class_are_measured() -> None:
    column = {"type": "boolean"}
    comparison = _compare_photos(np.full((30, 8, 8), 7, np.uint8), what=(column, np.ones(30, np.uint8)))
    section = evaluate_images(replace(comparison, target="what"), "photo")
    assert section.measures["images.frechet"].value == 0
    assert section.measures["images.inception_score"].value == pytest.approx(1)
    assert section.details["images.nearest_ratio"]["value"] is None  # nothing is any distance apart
    assert "nan" not in section.pictures[1].caption
    json.dumps(section.details, allow_nan=False)
    _check_drawing(section)


@pytest.mark.usefixtures("quick")
def test_images_whose_label_is_missing_are_left_out() -> None:
    column = {"type": "categorical", "values": ["a", "b"], "nullable": True}
    labels = np.repeat([0, 1, 2], 30).astype(np.uint8)
    pixels = np.random.default_rng(0).integers(0, 256, (90, 8, 8)).astype(np.uint8)
    comparison = replace(_compare_photos(pixels, what=(column, labels)), target="what")
    assert find_images(comparison, "photo").classes == ("a", "b")
    assert np.sum(evaluate_images(comparison, "photo").details["images.confusion"]) == 60


@pytest.mark.parametrize("role", ["train", "test", "synthetic"])
@pytest.mark.usefixtures("quick")
def test_too_few_images_are_not_compared(role: str) -> None:
    comparison: Comparison = replace(COMPARISON, **{role: COMPARISON.test.take(slice(0, 1))})  # type: ignore[arg-type]
    section = evaluate_images(comparison, "image")
    assert section.measures == {}
    assert any("too few images" in note for note in section.notes)


def test_a_column_without_images_is_refused() -> None:
    for name in ("label", "nothing"):
        with pytest.raises(DataError, match=f"column '{name}' holds no images"):
            evaluate_images(COMPARISON, name)
